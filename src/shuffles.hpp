// SPDX-License-Identifier: Apache-2.0
// Squares of elements transposed in registers. Shuffles stay within lanes of 16 bytes, or move whole lanes, because no others
// are as cheap. Local to each instruction set's file. Level: lane.
#pragma once

#include <bit>
#include <cstddef>
#include <utility>

namespace regroup {
namespace {

/// Calls step(0), ..., step(N - 1) with compile-time constants.
template <int N, class Step>
inline void unrolled(const Step& step) {
  [&]<int... I>(std::integer_sequence<int, I...>) { (step(std::integral_constant<int, I>{}), ...); }
  (std::make_integer_sequence<int, N>{});
}

template <class Vector>
inline constexpr int width_of = sizeof(Vector) / sizeof(std::declval<Vector>()[0]);
/// Elements in a lane of 16 bytes; 1 if Vector is a single element.
template <class Vector>
inline constexpr int lane_width = width_of<Vector> == 1 ? 1 : 16 / static_cast<int>(sizeof(std::declval<Vector>()[0]));

/// Element i is element Place{}(i) of a followed by b.
template <class Vector, class Place>
inline Vector shuffled(const Vector& a, const Vector& b, Place) {
  return [&]<int... I>(std::integer_sequence<int, I...>)->Vector {
    return __builtin_shufflevector(a, b, Place{}(I)...);
  }
  (std::make_integer_sequence<int, width_of<Vector>>{});
}

/// In every lane, the elements of one half of a's and b's lane, alternating between a and b.
template <int Half, class Vector>
inline Vector interleaved(const Vector& a, const Vector& b) {
  return shuffled(a, b, [](int i) {
    constexpr int n = lane_width<Vector>;
    return i / n * n + Half * (n / 2) + i % n / 2 + i % 2 * width_of<Vector>;
  });
}
/// The even lanes of a, then those of b; or the odd ones.
template <int Odd, class Vector>
inline Vector alternate_lanes(const Vector& a, const Vector& b) {
  return shuffled(a, b, [](int i) {
    constexpr int n = lane_width<Vector>;
    return (2 * (i / n) + Odd) * n + i % n;
  });
}

/// The default for work between shuffles: none.
struct nothing {
  void operator()(int) const {}
};

/// Transposes squares of a lane's width within lanes, by perfect shuffles of a square's halves. Calls between(i) after shuffle
/// pair i.
template <class Vector, std::size_t Rows, class Between = nothing>
inline void transpose_in_lanes(Vector (&x)[Rows], const Between& between = {}) {
  constexpr int n = lane_width<Vector>, half = n > 1 ? n / 2 : 1;
  constexpr int pairs = static_cast<int>(Rows) / 2;
  unrolled<std::countr_zero(unsigned{n})>([&](int round) {
    Vector y[Rows];
    unrolled<pairs>([&](int i) {
      const int row = i / half * n + i % half, to = i / half * n + i % half * 2;
      y[to] = interleaved<0>(x[row], x[row + half]);
      y[to + 1] = interleaved<1>(x[row], x[row + half]);
      between(round * pairs + i);
    });
    unrolled<static_cast<int>(Rows)>([&](int i) { x[i] = y[i]; });
  });
}

/// Transposes a square.
template <class Vector, std::size_t Rows, class Between = nothing>
inline void transpose_square(Vector (&x)[Rows], const Between& between = {}) {
  static_assert(Rows == width_of<Vector>);
  constexpr int n = lane_width<Vector>, lanes = static_cast<int>(Rows) / n, pairs = static_cast<int>(Rows) / 2;
  transpose_in_lanes(x, between);
  unrolled<std::countr_zero(unsigned{lanes})>([&](int round) {
    Vector y[Rows];
    unrolled<pairs>([&](int i) {
      const int from = i / n * 2 * n + i % n;
      y[i] = alternate_lanes<0>(x[from], x[from + n]);
      y[i + pairs] = alternate_lanes<1>(x[from], x[from + n]);
      between((std::countr_zero(unsigned{n}) + round) * pairs + i);
    });
    unrolled<static_cast<int>(Rows)>([&](int i) { x[i] = y[i]; });
  });
}

}  // namespace
}  // namespace regroup

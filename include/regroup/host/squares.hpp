// SPDX-License-Identifier: Apache-2.0
// Squares of elements in registers, transposed on their way from memory and back, so that contiguous pieces become lanes
// without a transpose in memory. Rows are arrays, on which a compiler vectorises a scalar operator, and which it keeps in
// registers. Moves bytes, computes nothing. Level: lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "regroup/executor.hpp"
#include "regroup/host/dispatch.hpp"
#include "regroup/memory.hpp"

namespace regroup::host {

// As in host/lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// Whether squares of X are worth it: X is a number type that vectors have.
template <class X>
inline constexpr bool has_squares =
#if defined(__x86_64__) && !defined(__CUDACC__)
    std::is_arithmetic_v<X> && (sizeof(X) == 4 || sizeof(X) == 8);
#else
    false;
#endif

/// A square on any processor, element by element. X may be a word of the type in memory.
template <class X>
struct plain_square {
  static constexpr std::size_t side = 4;
  using rows = X[side][side];
  typedef X anything __attribute__((may_alias));  // NOLINT: an alias cannot carry it in a template
  /// to[i][k] = from[k * step + i].
  static void load(const anything* from, index step, rows& to) {
    for (std::size_t k = 0; k < side; ++k, from += step) {
      for (std::size_t i = 0; i < side; ++i) to[i][k] = from[i];
    }
  }
  /// to[k * step + i] = from[i][k].
  static void store(const rows& from, anything* to, index step) {
    for (std::size_t k = 0; k < side; ++k, to += step) {
      for (std::size_t i = 0; i < side; ++i) to[i] = from[i][k];
    }
  }
  static void copy_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
    copy_lines_past_caches(to, from, bytes);
  }
};

#if defined(__x86_64__) && !defined(__CUDACC__)
// clang compiles what follows for the instruction set of its callers, g++ for the one given here.
#if !defined(__clang__) && !(defined(__AVX2__) && defined(__FMA__))
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#endif

/// The same by vectors of 32 bytes, in two halves, as integers: Intel has two ports that shuffle integers and one that
/// shuffles floats. (Scan of sums in a cache, g++: 1.35 times as fast. clang shuffles floats in any case.)
template <class X>
class vector_square {
  using word = std::conditional_t<sizeof(X) == 4, std::int32_t, std::int64_t>;
  typedef word vector __attribute__((vector_size(32), may_alias));  // NOLINT: an alias cannot carry these in a template
  typedef word half __attribute__((vector_size(16), may_alias));    // NOLINT
  typedef vector vector_anywhere __attribute__((aligned(sizeof(X))));
  typedef half half_anywhere __attribute__((aligned(sizeof(X))));

 public:
  static constexpr std::size_t side = 32 / sizeof(X);
  using rows = X[side][side];
  static void load(const X* from, index step, rows& to) {
    unrolled<2>([&](auto part) {
      vector x[in_half];
      unrolled<in_half>([&](auto k) {
        const X* const row = from + part * in_half + static_cast<index>(k) * step;
        const half low = *reinterpret_cast<const half_anywhere*>(row);
        const half high = *reinterpret_cast<const half_anywhere*>(row + static_cast<index>(in_half) * step);
        join(low, high, x[k], places{});
      });
      transpose_halves(x);
      unrolled<in_half>([&](auto i) {
        vector row = x[i];
        hide(row);
        *reinterpret_cast<vector*>(to[part * in_half + i]) = row;
      });
    });
  }
  static void store(const rows& from, X* to, index step) {
    vector x[2][in_half];
    unrolled<2>([&](auto part) {
      unrolled<in_half>([&](auto i) {
        vector row = *reinterpret_cast<const vector*>(from[part * in_half + i]);
#if !defined(__clang__)
        hide(row);
#endif
        x[part][i] = row;
      });
      transpose_halves(x[part]);
    });
    unrolled<2>([&](auto part) {
      unrolled<in_half>([&](auto k) {
        vector y;
        take_halves<part>(x[0][k], x[1][k], y, places{});
        *reinterpret_cast<vector_anywhere*>(to + static_cast<index>(part * in_half + k) * step) = y;
      });
    });
  }
  static void copy_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
    const auto copy = copy_half_lines;  // clang 22 refuses to flatten a call, by its name, of what has more instructions
    copy(to, from, bytes);
  }

 private:
  static constexpr std::size_t in_half = side / 2;
  using places = std::make_index_sequence<side>;

  /// Calls step(0), ..., step(N - 1), with constants.
  template <std::size_t N, class Step>
  static void unrolled(const Step& step) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (step(std::integral_constant<std::size_t, I>{}), ...); }
    (std::make_index_sequence<N>{});
  }
  /// A vector that the compiler takes as it is; else it would see single elements behind the shuffles, and combine those.
  static void hide(vector& x) {
#if defined(__clang__)  // which knows no such register where the caller's instruction set is not said
    asm("" : "+m"(x));
#else
    asm("" : "+x"(x));
#endif
  }
  template <std::size_t... I>
  static void join(const half& low, const half& high, vector& to, std::index_sequence<I...>) {
    to = __builtin_shufflevector(low, high, static_cast<int>(I)...);
  }
  /// One half of a, then that of b.
  template <std::size_t Half, std::size_t... I>
  static void take_halves(const vector& a, const vector& b, vector& to, std::index_sequence<I...>) {
    to = __builtin_shufflevector(a, b, static_cast<int>(I % in_half + (Half + I / in_half * 2) * in_half)...);
  }
  /// The first or second parts of both halves, from a and b in turn.
  template <std::size_t Part, std::size_t... I>
  static void interleave(const vector& a, const vector& b, vector& to, std::index_sequence<I...>) {
    to = __builtin_shufflevector(
        a, b, static_cast<int>(I / in_half * in_half + Part * (in_half / 2) + I % in_half / 2 + I % 2 * side)...);
  }
  /// Rows become columns, within halves: perfect shuffles of the rows.
  static void transpose_halves(vector (&x)[in_half]) {
    constexpr std::size_t pairs = in_half / 2;
    unrolled<pairs>([&](auto) {  // 1 or 2 rounds
      vector y[in_half];
      unrolled<pairs>([&](auto i) {
        interleave<0>(x[i], x[i + pairs], y[2 * i], places{});
        interleave<1>(x[i], x[i + pairs], y[2 * i + 1], places{});
      });
      unrolled<in_half>([&](auto i) { x[i] = y[i]; });
    });
  }
};

#if !defined(__clang__) && !(defined(__AVX2__) && defined(__FMA__))
#pragma GCC pop_options
#endif
#endif

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

/// Runs f(square) with squares for any processor: one instance for all callers, whatever they are compiled for.
template <class X, class F>
[[gnu::noinline]] void run_plain_squares(const F& f) {
  f(plain_square<X>{});
}

/// Runs f(square) with the best square of X that `dispatch` could choose, except AVX-512, for which g++ would join two rows.
template <class X, class F>
void dispatch_squares(const F& f) {
#if defined(__AVX2__) && defined(__FMA__) && defined(__x86_64__) && !defined(__CUDACC__)
  const auto by_vectors = [&f] { f(vector_square<X>{}); };
  run_by_32_bytes(by_vectors);
#else
#if defined(__x86_64__) && !defined(__CUDACC__)
  if constexpr (dispatches) {
    const auto by_vectors = [&f] { f(vector_square<X>{}); };
    if (current_target() != target::baseline) return run_v3(by_vectors);
  }
#endif
  run_plain_squares<X>(f);
#endif
}

}  // namespace regroup::host

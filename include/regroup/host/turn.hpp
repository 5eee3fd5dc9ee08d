// SPDX-License-Identifier: Apache-2.0
// Transposition, so that what a loop over lanes reads stands side by side. Moves bytes, computes nothing. Level: lane.
#pragma once

#include <cstring>
#include <type_traits>

#include "regroup/executor.hpp"

namespace regroup::host {

namespace turning {

/// The side of the square blocks that are transposed in registers.
template <class X>
struct side_of : std::integral_constant<index, 1> {};
template <class X>
inline constexpr index side = side_of<X>::value;

#if defined(__has_builtin) && !defined(__CUDACC__)  // nvcc loses the attribute of a vector type on its way to g++
#if __has_builtin(__builtin_shufflevector)
template <class X>
requires(sizeof(X) == 4) struct side_of<X> : std::integral_constant<index, 4> {};
template <class X>
requires(sizeof(X) == 8) struct side_of<X> : std::integral_constant<index, 2> {};

template <class Pack>
inline Pack load(const void* from) {
  Pack p;
  std::memcpy(&p, from, sizeof(Pack));
  return p;
}

template <class X>
requires(sizeof(X) == 4) inline void block(const X* from, index from_step, X* to, index to_step) {
  typedef std::uint32_t pack __attribute__((vector_size(16)));  // NOLINT: aliases cannot carry it
  const auto a = load<pack>(from), b = load<pack>(from + from_step);
  const auto c = load<pack>(from + 2 * from_step), d = load<pack>(from + 3 * from_step);
  const pack ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const pack cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const pack turned[] = {
      __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
      __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
  for (index i = 0; i < 4; ++i) std::memcpy(to + i * to_step, &turned[i], sizeof(pack));
}
template <class X>
requires(sizeof(X) == 8) inline void block(const X* from, index from_step, X* to, index to_step) {
  typedef std::uint64_t pack __attribute__((vector_size(16)));  // NOLINT
  const auto a = load<pack>(from), b = load<pack>(from + from_step);
  const pack turned[] = {__builtin_shufflevector(a, b, 0, 2), __builtin_shufflevector(a, b, 1, 3)};
  for (index i = 0; i < 2; ++i) std::memcpy(to + i * to_step, &turned[i], sizeof(pack));
}
#endif
#endif
template <class X>
requires(side<X> == 1) inline void block(const X* from, index, X* to, index) { *to = *from; }

}  // namespace turning

/// to[c * to_step + r] = from[r * from_step + c] for r < rows and c < columns.
template <class X>
requires std::is_trivially_copyable_v<X>
inline void turn(const X* from, index from_step, X* to, index to_step, index rows, index columns) {
  constexpr index side = turning::side<X>;
  const index whole_rows = rows / side * side, whole_columns = columns / side * side;
  for (index r = 0; r < whole_rows; r += side) {
    for (index c = 0; c < whole_columns; c += side) {
      turning::block(from + r * from_step + c, from_step, to + c * to_step + r, to_step);
    }
  }
  for (index r = 0; r < rows; ++r) {
    for (index c = r < whole_rows ? whole_columns : 0; c < columns; ++c) to[c * to_step + r] = from[r * from_step + c];
  }
}

}  // namespace regroup::host

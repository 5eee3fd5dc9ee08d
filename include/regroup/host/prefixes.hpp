// SPDX-License-Identifier: Apache-2.0
// What precedes the pieces of one tile, given the carry into it. Lanes are contiguous pieces for every monoid:
//   P = lane totals, then P[j] = P[j - d] P[j] for d = 1, 2, ..., L/2 (Kogge and Stone 1973)
//   y = (carry P[j - 1]) (prefix within the piece);  carry of tile t = perfect(totals of the tiles before it)
// so the first k results are the scan of the first k elements, bitwise. Level: lane.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "regroup/host/carries.hpp"
#include "regroup/host/lanes.hpp"

namespace regroup::host {

// As in lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// Lane j of `lane` becomes P[j].
template <class M>
constexpr void prefix_lanes(const M& m, columns<state_of<M>>& lane, index count) {
  constexpr int levels = std::countr_zero(static_cast<std::uint64_t>(lanes));
  static_assert(levels % 2 == 1);  // all but the last go by twos, there and back
  columns<state_of<M>> other;
  const auto step = [&](const auto d, const columns<state_of<M>>& from, columns<state_of<M>>& to) {
    for (index j = 0; j < d; ++j) to.set(j, from.get(j));
    for (index j = d; j < count; ++j) to.set(j, m(from.get(j - d), from.get(j)));
  };
  [&]<index... Round>(std::integer_sequence<index, Round...>) {
    const auto two_steps = [&]<index D>(std::integral_constant<index, D>) {
      if (D >= count) return;
      step(std::integral_constant<index, D>{}, lane, other);
      if (2 * D < count) {
        step(std::integral_constant<index, 2 * D>{}, other, lane);
      } else {
        lane = std::move(other);
      }
    };
    (two_steps(std::integral_constant<index, index{1} << 2 * Round>{}), ...);
  }(std::make_integer_sequence<index, levels / 2>{});
  for (index j = lanes / 2; j < count; ++j) lane.set(j, m(lane.get(j - lanes / 2), lane.get(j)));  // d = L/2
}

/// lane[j], the fold of piece j, becomes P[j]; returns what later tiles need.
template <class M>
constexpr tile_summary<state_of<M>> prefix_pieces(const M& m, columns<state_of<M>>& lane, index count) {
  const state_of<M> last = lane.get(count - 1);
  prefix_lanes(m, lane, count);
  if (count == 1) return {lane.get(0), std::nullopt, last};
  return {lane.get(count - 1), lane.get(count - 2), last};
}

/// before[j] = carry P[j - 1], which precedes piece j; for lane 0 only the carry.
template <class M>
constexpr columns<state_of<M>> before_pieces(const M& m, const std::optional<state_of<M>>& carry,
                                             const columns<state_of<M>>& total, index count) {
  columns<state_of<M>> before;
  if (carry) {
    const state_of<M> first = *carry;
    before.set(0, first);
    for (index j = 1; j < count; ++j) before.set(j, m(first, total.get(j - 1)));
  } else {
    before.set(0, m.identity());
    for (index j = 1; j < count; ++j) before.set(j, total.get(j - 1));
  }
  return before;
}

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

}  // namespace regroup::host

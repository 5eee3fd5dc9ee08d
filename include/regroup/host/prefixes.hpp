// SPDX-License-Identifier: Apache-2.0
// The prefixes of one tile, given the carry into it. Lanes are contiguous pieces for every monoid:
//   P = lane totals, then P[j] = P[j - d] P[j] for d = 1, 2, ..., L/2 (Kogge and Stone 1973)
//   y = (carry P[j - 1]) (prefix within the piece);  carry of tile t = perfect(totals of the tiles before it)
// so the first k results are the scan of the first k elements, bitwise. Level: lane.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
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

/// fold_pieces, whose lanes of elements 0 to i stay in kept_at(i), which may be where element i of the pieces was.
template <class M, class Tile, class Kept, class Seen>
constexpr void keep_pieces(const M& m, const Tile& t, columns<state_of<M>>& lane, const Kept& kept_at,
                           const Seen& seen) {
  with_pieces(t.size(), [&](const auto count, const auto rest) {
    auto&& first = kept_at(0);
    for (index j = 0; j < count; ++j) first.set(j, regroup::lift(m, t.at(0, j)));
    seen();
    for_steps(1, count, rest, [&](index i, const auto present) {
      auto&& before = kept_at(i - 1);
      auto&& kept = kept_at(i);
      for_lanes<state_of<M>>(
          present, [&](index j) { return regroup::append(m, i, before.get(j), t.at(i, j)); },
          [&](index j, const auto& s) { kept.set(j, s); });
      seen();
    });
    auto&& whole = kept_at(piece_elements - 1);
    for (index j = 0; j < count - 1; ++j) lane.set(j, whole.get(j));
    lane.set(count - 1, kept_at(rest - 1).get(count - 1));
  });
}

/// within[k] = the fold of an element's piece up to it, total[j] that of piece j: pieces by squares, meanwhile() after each,
/// and what is left over element by element.
template <class Square, class M, class X, class Meanwhile>
constexpr void fold_squares(const M& m, const X* from, index n, X* within, columns<X>& total, const Meanwhile& meanwhile) {
  constexpr index side = Square::side;
  const index whole = n / piece_elements, in_squares = whole < side ? 0 : whole;
  for (index j = 0; j < in_squares; j += side) {
    const index piece = std::min(j, whole - side), first = piece * piece_elements;
    std::array<X, Square::side> last;
    const auto fold = [&](index i, const auto begins) {
      alignas(32) typename Square::rows x;
      Square::load(from + first + i, piece_elements, x);
      for (std::size_t k = 0; k < Square::side; ++k) {
        x[0][k] = begins ? regroup::lift(m, x[0][k]) : regroup::append(m, i, last[k], x[0][k]);
      }
      for (std::size_t r = 1; r < Square::side; ++r) {
        for (std::size_t k = 0; k < Square::side; ++k) {
          x[r][k] = regroup::append(m, i + static_cast<index>(r), x[r - 1][k], x[r][k]);
        }
      }
      for (std::size_t k = 0; k < Square::side; ++k) last[k] = x[Square::side - 1][k];
      Square::store(x, within + first + i, piece_elements);
      meanwhile();
    };
    fold(0, std::true_type{});
    for (index i = side; i < piece_elements; i += side) fold(i, std::false_type{});
    for (std::size_t k = 0; k < Square::side; ++k) total.set(piece + static_cast<index>(k), last[k]);
  }
  for (index j = in_squares; j * piece_elements < n; ++j) {
    const index first = j * piece_elements, size = std::min(piece_elements, n - first);
    within[first] = regroup::lift(m, from[first]);
    for (index i = 1; i < size; ++i) within[first + i] = regroup::append(m, i, within[first + i - 1], from[first + i]);
    total.set(j, within[first + size - 1]);
  }
}

/// lane[j], the fold of piece j, becomes P[j]; what later tiles ask for.
template <class M>
constexpr tile_summary<state_of<M>> prefix_pieces(const M& m, columns<state_of<M>>& lane, index count) {
  const state_of<M> last = lane.get(count - 1);
  prefix_lanes(m, lane, count);
  if (count == 1) return {lane.get(0), std::nullopt, last};
  return {lane.get(count - 1), lane.get(count - 2), last};
}

/// before[j] = carry P[j - 1]: what precedes piece j. Lane 0 has the carry alone.
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

/// to[k] = answer(before[j] within[k]) for the elements of every piece j; `to` may be `within`.
template <class M, class X, class Answer, class Meanwhile>
constexpr void join_pieces(const M& m, const columns<X>& before, const X* within, index n, X* to, const Answer& answer,
                           const Meanwhile& meanwhile) {
  for (index j = 0; j < pieces_of(n); ++j) {
    const index first = j * piece_elements, size = std::min(piece_elements, n - first);
    const X left = before.get(j);
    const auto join = [&](const auto count) {
      for_lanes<X>(
          count, [&](index i) { return answer(m(left, within[first + i])); },
          [&](index i, X y) { to[first + i] = y; });
    };
    if (size == piece_elements) {
      join(std::integral_constant<index, piece_elements>{});
    } else {
      join(size);
    }
    meanwhile();
  }
}

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

}  // namespace regroup::host

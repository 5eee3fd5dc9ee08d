// SPDX-License-Identifier: Apache-2.0
// The order of combination, transcribed from the design's text as naively as it reads, with nothing of the library's
// executors. Every function works on a plain vector of operands, one a position; an absent operand is skipped. What
// this file computes is the meaning of `seq`; the tests compare every executor, layout and chunking with it.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "regroup/executor.hpp"
#include "regroup/monoid.hpp"

namespace reference {

template <class State>
using operand = std::optional<State>;
template <class State>
using operands = std::vector<operand<State>>;

/// T elements to a tile, L lanes to a leaf.
struct order {
  std::size_t tile = static_cast<std::size_t>(regroup::tile_elements);
  std::size_t lanes = static_cast<std::size_t>(regroup::lanes);
};

template <class M, class State>
operand<State> combine(const M& m, const operand<State>& a, const operand<State>& b) {
  if (!a) return b;
  if (!b) return a;
  return m(*a, *b);
}

/// Combine adjacent pairs, level by level, padded right to a power of two.
template <class M, class State>
operand<State> perfect(const M& m, operands<State> level) {
  if (level.empty()) return {};
  while (level.size() > 1) {
    if (level.size() % 2 == 1) level.push_back({});
    operands<State> above;
    for (std::size_t i = 0; i < level.size(); i += 2) above.push_back(combine(m, level[i], level[i + 1]));
    level = std::move(above);
  }
  return level[0];
}

/// The left fold of positions first, first + step, first + 2 step, ... below last.
template <class M, class State>
operand<State> left_fold(const M& m, const operands<State>& xs, std::size_t first, std::size_t last, std::size_t step) {
  operand<State> folded;
  for (std::size_t i = first; i < last && i < xs.size(); i += step) folded = combine(m, folded, xs[i]);
  return folded;
}

/// Lane j folds j, j + L, j + 2L, ...; then halves: lane[j] = lane[j] lane[j + h] for h = L/2, ..., 1.
template <class M, class State>
operand<State> striped_leaf(const M& m, const operands<State>& tile, order o) {
  operands<State> lane;
  for (std::size_t j = 0; j < o.lanes; ++j) lane.push_back(left_fold(m, tile, j, o.tile, o.lanes));
  for (std::size_t h = o.lanes / 2; h >= 1; h /= 2) {
    for (std::size_t j = 0; j < h; ++j) lane[j] = combine(m, lane[j], lane[j + h]);
  }
  return lane[0];
}

/// Lane j folds the contiguous piece [T/L j, T/L (j + 1)).
template <class M, class State>
operands<State> pieces(const M& m, const operands<State>& tile, order o) {
  const std::size_t length = o.tile / o.lanes;
  operands<State> lane;
  for (std::size_t j = 0; j < o.lanes; ++j) lane.push_back(left_fold(m, tile, length * j, length * (j + 1), 1));
  return lane;
}

/// The leaf of one tile that has no tile lift.
template <class M, class State>
operand<State> lane_leaf(const M& m, const operands<State>& tile, order o = {}) {
  return regroup::is_commutative<M> ? striped_leaf(m, tile, o) : perfect(m, pieces(m, tile, o));
}

/// Cut positions into tiles of T; the last one may be short.
template <class State>
std::vector<operands<State>> tiles(const operands<State>& xs, order o) {
  std::vector<operands<State>> cut;
  for (std::size_t first = 0; first < xs.size(); first += o.tile) {
    const std::size_t last = std::min(first + o.tile, xs.size());
    cut.emplace_back(xs.begin() + static_cast<std::ptrdiff_t>(first), xs.begin() + static_cast<std::ptrdiff_t>(last));
  }
  return cut;
}

/// reduce = perfect(leaves), without a tile lift.
template <class M, class State>
operand<State> reduce(const M& m, const operands<State>& xs, order o = {}) {
  operands<State> leaves;
  for (const auto& tile : tiles(xs, o)) leaves.push_back(lane_leaf(m, tile, o));
  return perfect(m, std::move(leaves));
}

/// reduce = perfect(leaves), with a tile lift: `lift_tile(elements)` of a tile's present elements, counted from the
/// first. A tile with none is absent.
template <class M, class X, class LiftTile>
auto reduce_tiles(const M& m, const operands<X>& xs, const LiftTile& lift_tile, order o = {}) {
  operands<regroup::state_of<M>> leaves;
  for (const auto& tile : tiles(xs, o)) {
    std::vector<X> present;
    for (const auto& x : tile) {
      if (x) present.push_back(*x);
    }
    leaves.emplace_back();
    if (!present.empty()) leaves.back() = lift_tile(present);
  }
  return perfect(m, std::move(leaves));
}

/// P[j] = lane[0] ... lane[j] by Kogge-Stone: for d = 1, 2, ..., L/2, all at once, P[j] = P[j - d] P[j] for j >= d.
template <class M, class State>
operands<State> lane_prefixes(const M& m, operands<State> p, order o) {
  for (std::size_t d = 1; d <= o.lanes / 2; d *= 2) {
    const operands<State> before = p;
    for (std::size_t j = d; j < o.lanes; ++j) p[j] = combine(m, before[j - d], before[j]);
  }
  return p;
}

/// The inclusive scan: y = (carry P[j - 1]) (prefix within the piece); carry = perfect(totals of the tiles before).
template <class M, class State>
operands<State> inclusive_scan(const M& m, const operands<State>& xs, order o = {}) {
  operands<State> totals;
  operands<State> ys;
  for (const auto& tile : tiles(xs, o)) {
    const operand<State> carry = perfect(m, totals);
    const operands<State> p = lane_prefixes(m, pieces(m, tile, o), o);
    const std::size_t length = o.tile / o.lanes;
    for (std::size_t i = 0; i < tile.size(); ++i) {
      const std::size_t j = i / length;
      const operand<State> left = combine(m, carry, j == 0 ? operand<State>{} : p[j - 1]);
      ys.push_back(combine(m, left, left_fold(m, tile, j * length, i + 1, 1)));
    }
    totals.push_back(p[o.lanes - 1]);
  }
  return ys;
}

/// The exclusive scan: the identity (here: absent), then the inclusive results before the last.
template <class M, class State>
operands<State> exclusive_scan(const M& m, const operands<State>& xs, order o = {}) {
  operands<State> ys = inclusive_scan(m, xs, o);
  if (!ys.empty()) {
    ys.pop_back();
    ys.insert(ys.begin(), operand<State>{});
  }
  return ys;
}

}  // namespace reference

// SPDX-License-Identifier: Apache-2.0
// The ordered scan in one pass over memory. Block after block takes a tile, in order, and hands on the nodes of the
// contract's tree that end with it: the carry into tile t is perfect(totals before it), one node for each bit of t, and
// tile t ends as many nodes as t has ones at its low end, and one. A block waits only for tiles whose blocks have begun;
// and a node for nodes below it, so none waits for more than log2 of the tiles before it. Level: block to device.
#pragma once

#include "regroup/cuda/scan_kernel.hpp"

namespace regroup::cuda {

/// Where lanes' states stand in shared memory: in fours, padded against bank conflicts.
inline constexpr int fours_of_lanes = block_threads / 4 * 5;
constexpr int place_in_fours(int lane) { return lane + lane / 4; }

/// P of the lanes' totals, in place, by Kogge and Stone's tree: the block's first warp, four lanes a thread.
template <class M, block Block, class Places>
constexpr void prefixes_of_lanes(const M& m, Block& b, const Places& all) {
  const int j = b.thread();
  const auto before = [&](const state_of<M>& s, int d) { return b.template shuffle_up<warp_threads>(s, d); };
  slots<state_of<M>, 4> lane;
  unrolled<4>([&](int k) { lane[k].value = all.get(place_in_fours(4 * j + k)); });
  const state_of<M> one = before(lane[3].value, 1);
  lane[3].value = m(lane[2].value, lane[3].value);
  lane[2].value = m(lane[1].value, lane[2].value);
  lane[1].value = m(lane[0].value, lane[1].value);
  if (j >= 1) lane[0].value = m(one, lane[0].value);
  const state_of<M> two[] = {before(lane[2].value, 1), before(lane[3].value, 1)};
  lane[3].value = m(lane[1].value, lane[3].value);
  lane[2].value = m(lane[0].value, lane[2].value);
  if (j >= 1) lane[1].value = m(two[1], lane[1].value);
  if (j >= 1) lane[0].value = m(two[0], lane[0].value);
  for (int d = 1; d < warp_threads; d *= 2) {
    unrolled<4>([&](int k) {
      const state_of<M> left = before(lane[k].value, d);
      if (j >= d) lane[k].value = m(left, lane[k].value);
    });
  }
  unrolled<4>([&](int k) { all.set(place_in_fours(4 * j + k), lane[k].value); });
}

/// Bits of t >= 0. (std::popcount and std::countr_one are constants in nvcc 13.0's device code, whatever they are asked.)
constexpr int ones_in(index t) {
  int ones = 0;
  for (; t > 0; t &= t - 1) ++ones;
  return ones;
}

/// perfect() by a warp of the nodes that end with t tiles, at t without its lowest bit, and so on, `count` of them, and of s on
/// their right where there is one; right in its first thread.
template <class M, block Block>
constexpr state_of<M> join_nodes(const M& m, Block& b, handed<state_of<M>>* ends, index t, int count, bool has_right,
                                 state_of<M> s) {
  const int j = b.thread() % warp_threads;
  state_of<M> node = s;
  if (j < count) {
    for (int k = 0; k < j; ++k) t &= t - 1;
    node = b.wait_for(ends[t - 1]);
  }
  if (!has_right) s = node;
  for (int k = has_right ? 0 : 1; k < count; ++k) s = m(b.template shuffle_down<warp_threads>(node, k), s);
  return s;
}

/// What comes before this thread's lane in the row: (carry P[j - 1]). The tile's own nodes are handed on, where another
/// tile follows.
template <class M, class Team>
constexpr state_of<M> chained_before(const M& m, Team& of, const state_of<M>& total, index tile, bool is_followed,
                                     handed<state_of<M>>* ends) {
  using state = state_of<M>;
  auto& b = of.block();
  auto all = b.template shared<state, fours_of_lanes>();
  auto into = b.template shared<state, 1>();
  const int j = of.rank();
  all.set(place_in_fours(j), total);
  b.barrier();
  if (j < warp_threads) {
    prefixes_of_lanes(m, b, all);
    if (is_followed) {
      b.template group_barrier<warp_threads>();
      const int ones = ones_in((tile ^ (tile + 1)) >> 1);
      const state node = join_nodes(m, b, ends, tile, ones, true, all.get(place_in_fours(block_threads - 1)));
      if (j == 0) b.publish(ends[tile], node);
    }
  } else if (j < 2 * warp_threads && tile > 0) {
    const int ones = ones_in(tile);
    const state carry = join_nodes(m, b, ends, tile, ones, false, total);
    if (j == warp_threads) into.set(0, carry);
  }
  b.barrier();
  if (tile == 0) return j == 0 ? m.identity() : all.get(place_in_fours(j - 1));
  const state carry = into.get(0);
  return j == 0 ? carry : m(carry, all.get(place_in_fours(j - 1)));
}

/// Before a chain: no ticket is taken, and no node there.
template <class State>
struct scan_begin {
  tickets* taken;
  handed<State>* ends;
  index tiles;

  template <block Block>
  constexpr void operator()(Block& b) const {
    const index first = b.block() * block_threads + b.thread();
    if (first == 0) *taken = {0};
    for (index i = first; i < tiles; i += b.blocks() * block_threads) ends[i].is_there = 0;
  }
};

/// The answers, of rows whose tiles have no gaps. `ends`: the nodes that end with each tile; null with `taken` where a tile
/// holds any row. `preceding` as scan_tiles has it.
template <scan_kind Kind, class M, class In, class Out>
struct scan_chain {
  static constexpr int resident_blocks = scan_blocks<M>;
  M m;
  In rows;
  Out answers;
  tickets* taken;
  handed<state_of<M>>* ends;
  state_of<M>* preceding;

  template <block Block>
  constexpr void operator()(Block& b) const {
    team<block_threads, Block> of(b);
    const index tiles = rows.slots(tile_elements, tile_elements);
    for (index slot = b.block(), done = slot; done < tiles; done += b.blocks(), slot = done) {
      if (taken != nullptr) slot = of.broadcast(of.rank() == 0 ? b.ticket(*taken) : 0);
      const auto [row, position] = rows.locate(slot, tile_elements, tile_elements);
      const auto source = rows[row];
      const index first = position * tile_elements;
      const int n = static_cast<int>(smaller(source.size() - first, tile_elements));
      const bool is_followed = first + n < source.size();
      const index at = slot - position;
      const state_of<M> last = scan_tile<M, Kind>(m, of, source, answers[row], first, n, [&](const state_of<M>& total) {
        return chained_before(m, of, total, position, is_followed, ends + at);
      });
      if (Kind == scan_kind::exclusive && is_followed && of.rank() == block_threads - 1) preceding[slot + 1] = last;
    }
  }
};

}  // namespace regroup::cuda

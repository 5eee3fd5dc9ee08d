// SPDX-License-Identifier: Apache-2.0
// The ordered scan in one pass over memory. Blocks take tiles in order, and each hands on its tile's total; the last of every
// 32 tiles also hands on the nodes of 32, 64, ... tiles that end with it. The carry into tile t is perfect(totals before it),
// computed from up to 31 totals and one node for each bit of t / 32. A block waits only for tiles whose blocks have begun,
// and directly for their totals: passing carries from node to node would cost a way through memory for each level. Level:
// block.
#pragma once

#include <bit>
#include <cstdint>

#include "regroup/cuda/scan_kernel.hpp"

namespace regroup::cuda {

/// Where lanes' states stand in shared memory: in fours, padded against bank conflicts.
inline constexpr int fours_of_lanes = block_threads / 4 * 5;
constexpr int place_in_fours(int lane) { return lane + lane / 4; }

/// P of the lanes' totals, in place, by Kogge and Stone's tree: computed by the block's first warp, four lanes a thread.
/// Returns the tile's total, valid in the warp's last thread.
template <class M, block Block, class Places>
constexpr state_of<M> prefixes_of_lanes(const M& m, Block& b, const Places& all) {
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
  return lane[3].value;
}

/// Bits of t >= 0. (std::popcount and std::countr_one are constants in nvcc 13.0's device code, whatever they are asked.)
constexpr int ones_in(index t) {
  int ones = 0;
  for (; t > 0; t &= t - 1) ++ones;
  return ones;
}

/// What the tiles of a row hand on: their totals, and the nodes that end with every 32nd tile.
template <class State>
struct handed_on {
  handed<State>* totals;
  handed<State>* nodes;
};

/// By a warp: perfect() of the first `count` threads' states, of which there may be none; on its left the nodes that end
/// with the 32s that t counts, one for each of the `ones` lowest bits; right in the warp's first thread.
template <class M, block Block>
constexpr state_of<M> join_nodes(const M& m, Block& b, state_of<M> s, int count, handed<state_of<M>>* nodes, index t,
                                 int ones) {
  const int j = b.thread() % warp_threads;
  state_of<M> node = s;
  if (j < ones) {
    for (int k = 0; k < j; ++k) t &= t - 1;
    node = b.wait_for(nodes[t - 1]);
  }
  for (int d = 1; d < count; d *= 2) {
    const state_of<M> other = b.template shuffle_down<warp_threads>(s, d);
    if (j % (2 * d) == 0 && j + d < count) s = m(s, other);
  }
  for (int k = 0; k < ones; ++k) {
    const state_of<M> left = b.template shuffle_down<warp_threads>(node, k);
    s = count == 0 && k == 0 ? left : m(left, s);
  }
  return s;
}

/// What comes before this thread's lane in the row: (carry P[j - 1]). The tile's own nodes are handed on, where another
/// tile follows.
template <class M, class Team>
constexpr state_of<M> chained_before(const M& m, Team& of, const state_of<M>& total, index tile, bool is_followed,
                                     const handed_on<state_of<M>>& row) {
  using state = state_of<M>;
  auto& b = of.block();
  auto all = b.template shared<state, fours_of_lanes>();
  auto into = b.template shared<state, 1>();
  const int j = of.rank();
  all.set(place_in_fours(j), total);
  b.barrier();
  const int past = static_cast<int>(tile % warp_threads);  // the last 32
  const index groups = tile / warp_threads;
  if (j < warp_threads) {
    state s = prefixes_of_lanes(m, b, all);
    if (is_followed && j == warp_threads - 1) b.publish(row.totals[tile], s);
    if (is_followed && past == warp_threads - 1) {
      if (j < past) s = b.wait_for(row.totals[tile - past + j]);
      s = join_nodes(m, b, s, warp_threads, row.nodes, groups, ones_in((groups ^ (groups + 1)) >> 1));
      if (j == 0) b.publish(row.nodes[groups], s);
    }
  } else if (j < 2 * warp_threads && tile > 0) {
    state s = total;
    if (j - warp_threads < past) s = b.wait_for(row.totals[tile - past + j - warp_threads]);
    s = join_nodes(m, b, s, past, row.nodes, groups, ones_in(groups));
    if (j == warp_threads) into.set(0, s);
  }
  b.barrier();
  if (tile == 0) return j == 0 ? m.identity() : all.get(place_in_fours(j - 1));
  const state carry = into.get(0);
  return j == 0 ? carry : m(carry, all.get(place_in_fours(j - 1)));
}

/// Before a chain: no ticket is taken, and nothing handed on.
template <class State>
struct scan_begin {
  tickets* taken;
  handed<State>* places;
  index count;

  template <block Block>
  constexpr void operator()(Block& b) const {
    const index first = b.block() * block_threads + b.thread();
    if (first == 0) *taken = {0};
    for (index i = first; i < count; i += b.blocks() * block_threads) {
      if constexpr (handed<State>::is_small) {  // all of what is read at once
        struct alignas(16) words {
          std::uint32_t of[4];
        };
        places[i] = std::bit_cast<handed<State>>(words{});
      } else {
        places[i].is_there = 0;
      }
    }
  }
};

/// Elements of 32 tiles.
inline constexpr index group_elements = warp_threads * tile_elements;

/// Writes the answers of rows whose list of tiles has no gaps; `taken` is null if no row is longer than a tile. `preceding`
/// is as in scan_tiles.
template <scan_kind Kind, class M, class In, class Out>
struct scan_chain {
  static constexpr int resident_blocks = scan_blocks<M, Kind, In>;
  M m;
  In rows;
  Out answers;
  tickets* taken;
  handed_on<state_of<M>> on;
  state_of<M>* preceding;

  template <block Block>
  constexpr void operator()(Block& b) const {
    team<block_threads, Block> of(b);
    const index tiles = rows.slots(tile_elements, tile_elements);
    for (index slot = b.block(), done = slot; done < tiles; done += b.blocks(), slot = done) {
      if (taken != nullptr) slot = of.broadcast(of.rank() == 0 ? b.ticket(*taken) : 0);
      const auto [row, place] = rows.locate(slot, tile_elements, tile_elements);
      const index position = place;  // clang 14 hands no binding to a lambda
      const auto source = rows[row];
      const index first = position * tile_elements;
      const int n = static_cast<int>(smaller(source.size() - first, tile_elements));
      const bool is_followed = first + n < source.size();
      const handed_on<state_of<M>> own{on.totals + (slot - position),
                                       on.nodes + rows.slot_of(row, group_elements, group_elements)};
      const state_of<M> last = scan_tile<M, Kind>(m, of, source, answers[row], first, n, [&](const state_of<M>& total) {
        return chained_before(m, of, total, position, is_followed, own);
      });
      if (Kind == scan_kind::exclusive && is_followed && of.rank() == block_threads - 1) preceding[slot + 1] = last;
      // All have read this tile's prefixes, as a ticket's barrier says too, or one where an exclusive scan hands on a prefix.
      if (Kind == scan_kind::inclusive && taken == nullptr && done + b.blocks() < tiles) b.barrier();
    }
  }
};

}  // namespace regroup::cuda

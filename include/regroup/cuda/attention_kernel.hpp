// SPDX-License-Identifier: Apache-2.0
// Attention as kernels: softmax_mean's reduction, its O sharded over the lanes of a warp (and past 128 columns over blocks)
// with m and l replicated, which is legal because the combine acts on O element by element. A block folds one leaf of keys
// for some queries that share them, tile by tile; a second kernel joins leaves by the combine itself. How a tile is folded
// is a type: on plain arithmetic (attention_tile.hpp), or on tensor cores (attention_mma.hpp).
// Level: lane to device. Law: leaves and their tree depend on a query's keys alone, so the grid changes no bit.
#pragma once

#include "regroup/cuda/attention_call.hpp"

namespace regroup::cuda {

/// A leaf's state as softmax_mean has it: one zero, NaN in every member, and of no keys the identity, whatever products with
/// a neighbour's have made of it.
template <class State>
constexpr State finished(State s) {
  if (s.l != s.l) s.m = s.l;
  s.m += 0;
  for (float& x : s.o.values) x = s.m == -math::detail::infinity<float> ? -0.0f : x + 0;
  return s;
}

/// Where a shard's state goes: to `put` where its keys are one leaf, else among those that wait to be merged, leaf by leaf,
/// all of a unit's shards side by side.
template <class Shape, class Put>
struct leaf_sink {
  typename Shape::state* nodes;  // null where there is nothing to merge
  Put put;
  constexpr void operator()(index number, const attention_place& at, int row, int lane,
                            const typename Shape::state& s) const {
    if (nodes != nullptr) {
      nodes[(number * Shape::rows + row) * Shape::row_lanes + lane] = s;
    } else {
      put(Shape{}, at, row, lane, s);
    }
  }
};

/// The states of the leaves [1024 t, 1024 (t + 1)) of the units [first, first + count), leaf by leaf. A unit is a place: a
/// key head's rows, a block's at a time, and as many columns.
template <class T, class Rule, class Tile, class Put>
struct attend_leaves {
  static constexpr int resident_blocks = Tile::resident_blocks;
  using shape = typename Tile::shape;
  using states = typename shape::state[static_cast<std::size_t>(shape::thread_rows)];
  static constexpr int warp_rows = shape::rows * warp_threads / block_threads;
  attention_call<T> call;
  Rule rule;
  index first, count, leaves;
  leaf_sink<shape, Put> sink;

  template <block Block>
  constexpr void operator()(Block& b) const {
    attention_turns turn;
    for (index number = b.block(); number < count * leaves; number += b.blocks()) {
      const attention_place at = place<shape>(call, first + number % count);
      if (!call.has_row(at, 0)) continue;
      states s;
      leaf(b, turn, at, number / count, s);
      unrolled<shape::thread_rows>([&](int r) {
        const int row = shape::row_of(b.thread(), r);
        if (call.has_row(at, row)) sink(number, at, row, shape::lane_of(b.thread()), finished(s[r]));
      });
    }
  }

 private:
  template <class Block>
  constexpr void leaf(Block& b, attention_turns& turn, const attention_place& at, index t, states& s) const {
    const index first_key = t * attention_leaf_keys;
    const auto sights = look(b, turn, at, first_key);
    int begin = static_cast<int>(attention_leaf_keys), end = 0;  // of what the block sees
    int own_begin = begin, own_end = 0;                          // and the warp
    for (int row = 0; row < shape::rows; ++row) {
      const row_sight seen = sights(row);
      if (seen.first >= seen.last) continue;
      begin = smaller(begin, seen.first);
      end = seen.last > end ? seen.last : end;
      if (row / warp_rows != b.thread() / warp_threads) continue;
      own_begin = smaller(own_begin, seen.first);
      own_end = seen.last > own_end ? seen.last : own_end;
    }
    unrolled<shape::thread_rows>([&](int r) { s[r] = typename shape::monoid{}.identity(); });
    const leaf_of_keys<T, decltype(sights)> keys{call, at, sights, first_key, begin, end, own_begin, own_end};
    Tile{call, rule}.fold_leaf(b, turn, keys, s);
  }

  template <class Block>
  constexpr auto look(Block& b, attention_turns& turn, const attention_place& at, index leaf_first) const {
    auto sights = b.template shared<row_sight, 2 * shape::rows>();
    turn.rows = shape::rows - turn.rows;
    if (const int row = b.thread(); row < shape::rows) {
      row_sight s{-1, 0, 0, 0};
      if (call.has_row(at, row)) {
        const index head = call.head_of(at, row), query = call.query_of(at, row);
        const key_range seen =
            mask_rules::both(mask_rules::range(rule, at.batch, head, query), {0, call.keys[at.batch]});
        const auto within = [&](index key) {
          key -= leaf_first;
          return static_cast<int>(key < 0 ? 0 : smaller(key, attention_leaf_keys));
        };
        s = {static_cast<int>(head), static_cast<int>(query), within(seen.first), within(seen.last)};
      }
      sights.set(turn.rows + row, s);
    }
    b.barrier();
    return [sights, base = turn.rows](int row) { return sights.get(base + row); };
  }
};

/// perfect(leaves) of every shard, by softmax_mean's combine: adjacent pairs, level by level, in place.
template <class T, class Shape, class Put>
struct merge_leaves {
  attention_call<T> call;
  index first, count, leaves;
  typename Shape::state* nodes;
  Put put;

  template <block Block>
  constexpr void operator()(Block& b) const {
    const typename Shape::monoid m;
    const index shards = count * Shape::shards;
    for (index i = b.block() * block_threads + b.thread(); i < shards; i += b.blocks() * block_threads) {
      const attention_place at = place<Shape>(call, first + i / Shape::shards);
      const int row = static_cast<int>(i % Shape::shards) / Shape::row_lanes;
      if (!call.has_row(at, row)) continue;
      auto* const leaf = nodes + i;
      for (index step = 1; step < leaves; step *= 2) {
        for (index t = 0; t + step < leaves; t += 2 * step) {
          leaf[t * shards] = m(leaf[t * shards], leaf[(t + step) * shards]);
        }
      }
      put(Shape{}, at, row, static_cast<int>(i % Shape::row_lanes), leaf[0]);
    }
  }
};

}  // namespace regroup::cuda

// SPDX-License-Identifier: Apache-2.0
// Attention as kernels: softmax_mean's reduction, with O split over the lanes of a warp (and past 128 columns over blocks)
// and m and l replicated, which is legal because the combine acts on O element by element. A block folds the leaves of a node
// of the contract's tree, tile by tile, for several queries that share them, and joins them by the combine itself; if blocks
// share a query's keys, a second kernel joins their nodes. How a tile is folded is a type: on plain arithmetic
// (attention_tile.hpp), or on tensor cores (attention_mma.hpp). Level: lane to device. Law: leaves and their tree depend only
// on a query's keys, so the grid changes no bit.
#pragma once

#include <concepts>
#include <limits>

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

/// The states of blocks in device memory, word by word: what a block's threads write at once is side by side.
template <class Shape>
struct waiting_states {
  using state = typename Shape::state;
  static constexpr int words = static_cast<int>(sizeof(state) / sizeof(float));
  static constexpr index of_block = index{Shape::thread_rows} * words * block_threads;
  float* first;

  [[nodiscard]] constexpr float* word(index block, int thread, int r, int number) const {
    return first + block * of_block + (r * words + number) * block_threads + thread;
  }
  constexpr void put(index block, int thread, int r, const state& s) const {
    *word(block, thread, r, 0) = s.m;
    *word(block, thread, r, 1) = s.l;
    unrolled<words - 2>([&](int c) { *word(block, thread, r, 2 + c) = s.o.values[c]; });
  }
  [[nodiscard]] constexpr state get(index block, int thread, int r) const {
    state s{*word(block, thread, r, 0), *word(block, thread, r, 1), {}};
    unrolled<words - 2>([&](int c) { s.o.values[c] = *word(block, thread, r, 2 + c); });
    return s;
  }
};

/// A shape of the same rows whose threads have so many columns side by side, m and l replicated.
template <class Shape, int Columns>
struct of_columns_side_by_side {
  static constexpr int columns = Shape::columns, row_lanes = columns / Columns;
  using monoid = softmax_mean<float, fixed_vector<float, Columns>>;
  using state = state_of<monoid>;
  static constexpr int column_of(int lane, int c) { return lane * Columns + c; }
};

/// A shape, and a tile of it, as a block has them: without wide products (block.hpp) so many rows would not fit registers,
/// so it takes half as many of twice as many units. States wait in the same memory.
template <class Block, class Shape>
struct shape_on_block {
  using type = Shape;
};
template <class Block, class Shape>
requires(!Block::has_wide_products && requires { typename Shape::narrow; })
struct shape_on_block<Block, Shape> {
  using type = typename Shape::narrow;
};
template <class Block, class Shape>
using shape_on = typename shape_on_block<Block, Shape>::type;
template <class Block, class Tile>
struct tile_on_block;
template <class Block, template <class, class, class> class Tile, class T, class Rule, class Shape>
struct tile_on_block<Block, Tile<T, Rule, Shape>> {
  using type = Tile<T, Rule, shape_on<Block, Shape>>;
};
template <class Block, class Tile>
using tile_on = typename tile_on_block<Block, Tile>::type;

/// Before attend_nodes: none is taken.
struct begin_tickets {
  tickets* taken;
  template <block Block>
  constexpr void operator()(Block& b) const {
    if (b.block() == 0 && b.thread() == 0) *taken = {0};
  }
};

/// The nodes of `reach` leaves (a power of two, or all) of every unit: part p has the leaves [reach p, reach (p + 1)). A
/// unit is a place: a key head's rows, a block's at a time, and as many columns. Nodes that are done wait in `stack`, one of
/// each level for every block of the grid; results go to `put` where a part has all, else to `nodes`, part by part. A block
/// that is done takes the next by ticket, or where `taken` is null that of its turn.
template <class T, class Rule, class Tile, class Put>
struct attend_nodes {
  static constexpr int resident_blocks = Tile::resident_blocks;
  static constexpr std::size_t large_bytes = cuda::large_bytes<Tile>;
  using shape = typename Tile::shape;
  using states = typename shape::state[static_cast<std::size_t>(shape::thread_rows)];
  static constexpr int warp_rows = shape::rows * warp_threads / block_threads;
  attention_call<T> call;
  Rule rule;
  index parts, reach;
  int depth;  // of the stack
  waiting_states<shape> stack, nodes;
  tickets* taken;
  Put put;

  template <block Block>
  [[gnu::always_inline]] constexpr void operator()(Block& b) const {
    using tile = tile_on<Block, Tile>;
    if constexpr (std::same_as<tile, Tile>) {
      fold_all(b);
    } else {
      attend_nodes<T, Rule, tile, Put>{call, rule, parts, reach, depth, {stack.first}, {nodes.first}, taken, put}(b);
    }
  }

 private:
  template <class Block>
  [[gnu::always_inline]] constexpr void fold_all(Block& b) const {
    attention_turns turn;
    for (index number = b.block(); number < units_of<shape>(call) * parts; number = next(b, turn, number)) {
      const attention_place at = place<shape>(call, number / parts);
      if (!call.has_row(at, 0)) continue;
      states s;
      turn.has_queries = false;
      fold(b, turn, at, number % parts * reach, s);
      if (parts > 1) {
        each_row(b, at, [&](int r, int) { nodes.put(number, b.thread(), r, s[r]); });
      } else if constexpr (large_bytes >= sizeof(float) * shape::rows * shape::columns) {
        put_rows(b, at, s);
      } else {
        each_row(b, at, [&](int r, int row) { put(shape{}, at, row, shape::lane_of(b.thread()), s[r]); });
      }
    }
  }
  /// The unit's part after `number`, for all of the block.
  template <class Block>
  constexpr index next(Block& b, attention_turns& turn, index number) const {
    if (taken == nullptr) return number + b.blocks();
    struct unit {
      index number;
    };
    const auto told = b.template shared<unit, 2>();
    turn.units = !turn.units;
    if (b.thread() == 0) told.set(turn.units, {b.blocks() + b.ticket(*taken)});
    b.barrier();
    return told.get(turn.units).number;
  }
  /// body(r, row) of the thread's rows that there are.
  template <class Block, class Body>
  constexpr void each_row(Block& b, const attention_place& at, const Body& body) const {
    unrolled<shape::thread_rows>([&](int r) {
      const int row = shape::row_of(b.thread(), r);
      if (call.has_row(at, row)) body(r, row);
    });
  }
  /// Puts every row by threads with eight columns side by side, which they take from shared memory.
  template <class Block>
  constexpr void put_rows(Block& b, const attention_place& at, const states& s) const {
    using fine = of_columns_side_by_side<shape, 8>;
    struct alignas(8) pair {
      float of[2];
    };
    const auto o = b.template large<pair, shape::rows * shape::columns / 2>();
    const auto totals = b.template shared<pair, shape::rows>();
    const auto place_of = [](int row, int column) { return (row * shape::columns + (column ^ row % 8 * 8)) / 2; };
    unrolled<shape::thread_rows>([&](int r) {
      const int row = shape::row_of(b.thread(), r), lane = shape::lane_of(b.thread());
      if (lane == 0) totals.set(row, {{s[r].m, s[r].l}});
      unrolled<shape::columns / shape::row_lanes / 2>([&](int two) {
        o.set(place_of(row, shape::column_of(lane, 2 * two)), {{s[r].o.values[2 * two], s[r].o.values[2 * two + 1]}});
      });
    });
    b.barrier();
    for (int i = b.thread(); i < shape::rows * fine::row_lanes; i += block_threads) {
      const int row = i / fine::row_lanes, lane = i % fine::row_lanes;
      if (!call.has_row(at, row)) continue;
      const pair total = totals.get(row);
      typename fine::state whole{total.of[0], total.of[1], {}};
      unrolled<4>([&](int two) {
        const pair x = o.get(place_of(row, 8 * lane + 2 * two));
        whole.o.values[2 * two] = x.of[0];
        whole.o.values[2 * two + 1] = x.of[1];
      });
      put(fine{}, at, row, lane, whole);
    }
  }
  /// The node of the leaves [first, first + reach): those that are done are joined as the digits of the next one's number
  /// carry (a binary counter); leaves that nobody sees before the first and after the last are absent.
  template <class Block>
  [[gnu::always_inline]] constexpr void fold(Block& b, attention_turns& turn, const attention_place& at, index first,
                                             states& s) const {
    const index keys = reach * attention_leaf_keys;
    const auto [begin, end] = seen(b, look(b, turn, at, first * attention_leaf_keys, keys)).all;
    const int leaf_keys = static_cast<int>(attention_leaf_keys);
    const int from = begin / leaf_keys, last = (end - 1) / leaf_keys;
    unsigned waiting = 0;  // levels of the stack
    const auto join = [&](int level) {
      waiting &= ~(1u << level);
      each_row(b, at, [&](int r, int) {
        s[r] = typename shape::monoid{}(stack.get(b.block() * depth + level, b.thread(), r), s[r]);
      });
    };
    unrolled<shape::thread_rows>([&](int r) { s[r] = typename shape::monoid{}.identity(); });
    for (int t = from; t <= last && begin < end; ++t) {
      leaf(b, turn, at, (first + t) * attention_leaf_keys, s);
      int level = 0;
      for (; t == last ? waiting >> level != 0 : t >> level & 1; ++level) {
        if (waiting >> level & 1) join(level);
      }
      if (t == last) break;
      waiting |= 1u << level;
      each_row(b, at, [&](int r, int) { stack.put(b.block() * depth + level, b.thread(), r, s[r]); });
    }
  }
  template <class Block>
  [[gnu::always_inline]] constexpr void leaf(Block& b, attention_turns& turn, const attention_place& at, index first_key,
                                             states& s) const {
    const auto sights = look(b, turn, at, first_key, attention_leaf_keys);
    const auto [all, own, whole] = seen(b, sights);
    unrolled<shape::thread_rows>([&](int r) { s[r] = typename shape::monoid{}.identity(); });
    const leaf_of_keys<T, decltype(sights)> keys{call, at, sights, first_key, all, own, whole};
    Tile{call, rule}.fold_leaf(b, turn, keys, s);
    unrolled<shape::thread_rows>([&](int r) { s[r] = finished(s[r]); });
  }

  /// What each row sees of the keys [first, first + keys).
  template <class Block>
  constexpr auto look(Block& b, attention_turns& turn, const attention_place& at, index first, index keys) const {
    auto sights = b.template shared<row_sight, 2 * shape::rows>();
    turn.rows = shape::rows - turn.rows;
    if (const int row = b.thread(); row < shape::rows) {
      row_sight s{-1, 0, 0, 0};
      if (call.has_row(at, row)) {
        const index head = call.head_of(at, row), query = call.query_of(at, row);
        const key_range seen =
            mask_rules::both(mask_rules::range(rule, at.batch, head, query), {0, call.keys[at.batch]});
        const auto within = [&](index key) {
          key -= first;
          return static_cast<int>(key < 0 ? 0 : smaller(key, keys));
        };
        s = {static_cast<int>(head), static_cast<int>(query), within(seen.first), within(seen.last)};
      }
      sights.set(turn.rows + row, s);
    }
    b.barrier();
    return [sights, base = turn.rows](int row) { return sights.get(base + row); };
  }
  /// The keys that some row of the block sees, and of the warp, and that every row of the block does; of none, the end is at
  /// the beginning or before it.
  struct seen_by {
    seen_keys all, own, whole;
  };
  template <class Block, class Sights>
  constexpr seen_by seen(Block& b, const Sights& sights) const {
    constexpr int warps = block_threads / warp_threads;
    constexpr int most = std::numeric_limits<int>::max();
    struct ranges {
      seen_keys some, every;
      constexpr ranges operator+(const ranges& x) const {
        const auto larger = [](int a, int b) { return a < b ? b : a; };
        return {{smaller(some.begin, x.some.begin), larger(some.end, x.some.end)},
                {larger(every.begin, x.every.begin), smaller(every.end, x.every.end)}};
      }
    };
    const auto of_warps = b.template shared<ranges, warps>();
    const int warp = b.thread() / warp_threads, i = b.thread() % warp_threads;
    ranges own{{most, 0}, {0, most}};
    if (i < warp_rows) {
      const row_sight s = sights(shape::row_of_warp(warp, i));
      if (s.first < s.last) own.some = {s.first, s.last};
      if (s.head >= 0) own.every = {s.first, s.last};
    }
    for (int d = warp_rows / 2; d >= 1; d /= 2) own = own + b.template shuffle_down<warp_threads>(own, d);
    own = b.template broadcast<warp_threads>(own);
    if (i == 0) of_warps.set(warp, own);
    b.barrier();  // nobody writes again before a row's next sights, which have one too
    ranges all = of_warps.get(0);
    unrolled<warps - 1>([&](int w) { all = all + of_warps.get(w + 1); });
    return {all.some, own.some, all.every};
  }
};

}  // namespace regroup::cuda

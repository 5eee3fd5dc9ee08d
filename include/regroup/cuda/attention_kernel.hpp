// SPDX-License-Identifier: Apache-2.0
// Attention on plain arithmetic: softmax_mean's reduction, its O sharded over the lanes of a warp (and past 128 columns
// over blocks) with m and l replicated, which is legal because the combine acts on O element by element. A block folds one
// leaf of keys for some queries that share them, tile by tile; a second kernel joins leaves by the combine itself. Every
// score, weight and sum is the chain of algorithms/attention_fold.hpp: the bits of the CPU, whatever the grid.
// Level: lane to device.
#pragma once

#include <tuple>

#include "regroup/cuda/attention_call.hpp"

namespace regroup::cuda {

/// A score through a bound rule; through several, of which each may hide the key for good.
template <class Rule>
inline constexpr bool changes_scores = mask_rules::has_function<Rule, float>;
template <class... Rules>
inline constexpr bool changes_scores<mask_rules::all_of<Rules...>> = (changes_scores<Rules> || ...);
template <class Rule>
constexpr float scored_by(const Rule& rule, float score, index batch, index head, index query, index key) {
  if constexpr (changes_scores<Rule>) {
    return static_cast<float>(rule(score, batch, head, query, key));
  } else {
    return score;
  }
}
template <class... Rules>
constexpr float scored_by(const mask_rules::all_of<Rules...>& all, float score, index batch, index head, index query,
                          index key) {
  bool hides = false;
  const auto apply = [&]<class Rule>(const Rule& rule) {
    score = scored_by(rule, score, batch, head, query, key);
    if constexpr (changes_scores<Rule>) hides = hides || score == -math::detail::infinity<float>;
  };
  std::apply([&](const auto&... rules) { (apply(rules), ...); }, all.rules);
  return hides ? -math::detail::infinity<float> : score;
}

/// The same state in the frame of a maximum that is not lower: what a tile's keys are added to.
template <class State>
constexpr State raised(const State& s, float m) {
  if (!(m > s.m)) return s;
  const float factor = math::decay(s.m - m);
  return {m, math::fma(s.l, factor, -0.0f), scale(s.o, factor)};
}
/// A leaf's state as softmax_mean has it: one zero, and NaN in every member.
template <class State>
constexpr State finished(State s) {
  if (s.l != s.l) s.m = s.l;
  if (s.m == -math::detail::infinity<float>) return s;
  s.m += 0;
  for (float& x : s.o.values) x += 0;
  return s;
}

/// Four columns of a row, which shared memory hands over at once.
struct alignas(16) quad {
  float x[4];
};
/// The weights of two keys. A hidden key's is negative: it is left out, whatever its value holds.
struct weight_pair {
  float of[2];
};
inline constexpr float hidden_weight = -1;

/// Where a shard's state goes: to `put` where its keys are one leaf, else among those that wait to be merged, leaf by leaf,
/// all of a unit's shards side by side.
template <class Shape, class Put>
struct leaf_sink {
  typename Shape::state* nodes;  // null where there is nothing to merge
  Put put;
  constexpr void operator()(index number, const attention_place& at, int row, int lane, const typename Shape::state& s) const {
    if (nodes != nullptr) {
      nodes[(number * Shape::rows + row) * warp_threads + lane] = s;
    } else {
      put(at, row, lane, s);
    }
  }
};

/// The states of the leaves [1024 t, 1024 (t + 1)) of the units [first, first + count), leaf by leaf. A unit is a place: a
/// key head's rows, `Shape::rows` at a time, and as many columns.
template <class T, class Rule, class Shape, class Put>
struct attend_leaves {
  static constexpr int resident_blocks = Shape::warp_rows * Shape::columns > 512 ? 3 : 4;
  using state = typename Shape::state;
  static constexpr int tile_keys = static_cast<int>(attention_tile_keys);
  static constexpr int panel = warp_threads;  // columns of q and k in shared memory at once
  attention_call<T> call;
  Rule rule;
  index first, count, leaves;
  leaf_sink<Shape, Put> sink;

  template <block Block>
  constexpr void operator()(Block& b) const {
    turns turn;
    for (index number = b.block(); number < count * leaves; number += b.blocks()) {
      const attention_place at = place<Shape>(call, first + number % count);
      leaf(b, turn, at, number / count, [&](int row, const state& s) {
        if (call.has_row(at, row)) sink(number, at, row, b.thread() % warp_threads, finished(s));
      });
    }
  }

 private:
  /// Buffers that take turns: who writes one again has passed a barrier that all reached after reading it.
  struct turns {
    int rows = 0, places = 0, panels = 0;
  };
  /// A row's query, and which keys of the leaf it sees.
  struct row_sight {
    int head, query, first, last;
  };

  template <class Block, class Done>
  constexpr void leaf(Block& b, turns& turn, const attention_place& at, index t, const Done& done) const {
    const int warp = b.thread() / warp_threads;
    const auto sights = look(b, turn, at, t * attention_leaf_keys);
    int begin = static_cast<int>(attention_leaf_keys), end = 0;          // of what the block sees
    int own_begin = begin, own_end = 0;                                  // and the warp
    for (int row = 0; row < Shape::rows; ++row) {
      const row_sight s = sights(row);
      if (s.first >= s.last) continue;
      begin = smaller(begin, s.first);
      end = s.last > end ? s.last : end;
      if (row / Shape::warp_rows != warp) continue;
      own_begin = smaller(own_begin, s.first);
      own_end = s.last > own_end ? s.last : own_end;
    }
    state s[Shape::warp_rows];
    unrolled<Shape::warp_rows>([&](int r) { s[r] = typename Shape::monoid{}.identity(); });
    for (int tile = begin / tile_keys * tile_keys; tile < end; tile += tile_keys) {
      const int keys = smaller(end - tile, tile_keys);
      const bool looks = own_begin < tile + keys && tile < own_end;
      const auto places = find(b, turn, at, t * attention_leaf_keys + tile, keys);
      float score[Shape::warp_rows][2] = {};
      products(b, turn, at, sights, places, keys, looks, score);
      if (!looks) continue;
      weigh(b, at, sights, t * attention_leaf_keys, tile, score, s);
      values(b, at, places, keys, s);
    }
    unrolled<Shape::warp_rows>([&](int r) { done(warp * Shape::warp_rows + r, s[r]); });
  }

  template <class Block>
  constexpr auto look(Block& b, turns& turn, const attention_place& at, index leaf_first) const {
    auto sights = b.template shared<row_sight, 2 * Shape::rows>();
    turn.rows = Shape::rows - turn.rows;
    if (const int row = b.thread(); row < Shape::rows) {
      row_sight s{0, 0, 0, 0};
      if (call.has_row(at, row)) {
        const index head = call.head_of(at, row), query = call.query_of(at, row);
        const key_range seen = mask_rules::both(mask_rules::range(rule, at.batch, head, query), {0, call.lengths[at.batch]});
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

  template <class Block>
  constexpr auto find(Block& b, turns& turn, const attention_place& at, index first_key, int keys) const {
    using key_place = typename attention_call<T>::key_place;
    auto places = b.template shared<key_place, 2 * tile_keys>();
    turn.places = tile_keys - turn.places;
    if (b.thread() < keys) places.set(turn.places + b.thread(), call.locate(at, first_key + b.thread()));
    b.barrier();
    return [places, base = turn.places](int key) { return places.get(base + key); };
  }

  /// score = q scale k over columns ascending, of the keys 2 lane and 2 lane + 1 and the warp's rows.
  template <class Block, class Sights, class Places>
  constexpr void products(Block& b, turns& turn, const attention_place& at, const Sights& sights, const Places& places,
                          int keys, bool looks, float (&score)[Shape::warp_rows][2]) const {
    constexpr int quads = panel / 4, step = quads + 1;  // a step that spreads keys over the banks
    auto q = b.template shared<quad, 2 * Shape::rows * quads>();
    auto k = b.template shared<quad, 2 * tile_keys * step>();
    const int lane = b.thread() % warp_threads, warp = b.thread() / warp_threads;
    const auto load = [](const T* row, index stride, int column, int end) {
      quad x{};
      unrolled<4>([&](int i) {
        if (column + i < end) x.x[i] = widen(row[(column + i) * stride]);
      });
      return x;
    };
    for (int column = 0; column < call.d; column += panel) {
      turn.panels = 1 - turn.panels;
      const int q_panel = turn.panels * Shape::rows * quads, k_panel = turn.panels * tile_keys * step;
      for (int i = b.thread(); i < Shape::rows * quads; i += block_threads) {
        quad x{};
        if (call.has_row(at, i / quads)) {
          const row_sight s = sights(i / quads);
          x = load(call.q.row(at.batch, s.head, s.query), call.q.strides[3], column + i % quads * 4, call.d);
          unrolled<4>([&](int j) { x.x[j] *= call.scale; });
        }
        q.set(q_panel + i, x);
      }
      for (int i = b.thread(); i < tile_keys * quads; i += block_threads) {
        const int key = i / quads;
        const quad x = key < keys ? load(call.k.data + places(key).k, call.k.strides[3], column + i % quads * 4, call.d)
                                  : quad{};
        k.set(k_panel + (key % 2 * warp_threads + key / 2) * step + i % quads, x);
      }
      b.barrier();
      const int left = smaller(call.d - column, panel);
      for (int c = 0; looks && 4 * c < left; ++c) {
        const quad k_0 = k.get(k_panel + lane * step + c), k_1 = k.get(k_panel + (lane + warp_threads) * step + c);
        unrolled<Shape::warp_rows>([&](int r) {
          const quad x = q.get(q_panel + (warp * Shape::warp_rows + r) * quads + c);
          unrolled<4>([&](int i) {
            if (4 * c + i >= left) return;
            score[r][0] = math::fma(x.x[i], k_0.x[i], score[r][0]);
            score[r][1] = math::fma(x.x[i], k_1.x[i], score[r][1]);
          });
        });
      }
    }
  }

  /// Raises each row's state to the tile's maximum and leaves the weights of its keys in shared memory.
  template <class Block, class Sights>
  constexpr void weigh(Block& b, const attention_place& at, const Sights& sights, index leaf_first, int tile,
                       float (&score)[Shape::warp_rows][2], state (&s)[Shape::warp_rows]) const {
    auto weights = b.template shared<weight_pair, Shape::shards>();
    const int lane = b.thread() % warp_threads, warp = b.thread() / warp_threads;
    unrolled<Shape::warp_rows>([&](int r) {
      const row_sight sight = sights(warp * Shape::warp_rows + r);
      float top = s[r].m;
      unrolled<2>([&](int i) {
        const int key = tile + 2 * lane + i;
        score[r][i] = sight.first <= key && key < sight.last
                          ? scored_by(rule, score[r][i], at.batch, sight.head, sight.query, leaf_first + key)
                          : -math::detail::infinity<float>;
        top = score[r][i] > top ? score[r][i] : top;  // a NaN is none
      });
      for (int d = warp_threads / 2; d >= 1; d /= 2) {
        const float other = b.template shuffle_down<warp_threads>(top, d);
        top = other > top ? other : top;
      }
      top = b.template broadcast<warp_threads>(top);
      s[r] = raised(s[r], top);
      const softmax_weight<float> weight{top};
      weight_pair w{};
      unrolled<2>([&](int i) {
        w.of[i] = score[r][i] == -math::detail::infinity<float> ? hidden_weight : weight(score[r][i]);
      });
      weights.set((warp * Shape::warp_rows + r) * warp_threads + lane, w);
    });
    b.template group_barrier<warp_threads>();  // those of the next tile's have a block's barrier before them
  }

  /// l = l + w and O = fma(w, v, O) over keys ascending.
  template <class Block, class Places>
  constexpr void values(Block& b, const attention_place& at, const Places& places, int keys,
                        state (&s)[Shape::warp_rows]) const {
    auto weights = b.template shared<weight_pair, Shape::shards>();
    const int lane = b.thread() % warp_threads, warp = b.thread() / warp_threads;
    constexpr int columns = Shape::columns / warp_threads;
    for (int pair = 0; 2 * pair < keys; ++pair) {
      weight_pair w[Shape::warp_rows];
      unrolled<Shape::warp_rows>(
          [&](int r) { w[r] = weights.get((warp * Shape::warp_rows + r) * warp_threads + pair); });
      unrolled<2>([&](int i) {
        if (2 * pair + i >= keys) return;
        const T* const row = call.v.data + places(2 * pair + i).v;
        fixed_vector<float, columns> v{};
        unrolled<columns>([&](int c) {
          const int column = at.first_column + c * warp_threads + lane;
          if (column < call.dv) v.values[c] = widen(row[column * call.v.strides[3]]);
        });
        unrolled<Shape::warp_rows>([&](int r) {
          if (w[r].of[i] < 0) return;
          s[r].l += w[r].of[i];
          s[r].o = axpy(v, w[r].of[i], s[r].o);
        });
      });
    }
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
      const int row = static_cast<int>(i % Shape::shards) / warp_threads;
      if (!call.has_row(at, row)) continue;
      auto* const leaf = nodes + i;
      for (index step = 1; step < leaves; step *= 2) {
        for (index t = 0; t + step < leaves; t += 2 * step) {
          leaf[t * shards] = m(leaf[t * shards], leaf[(t + step) * shards]);
        }
      }
      put(at, row, static_cast<int>(i % warp_threads), leaf[0]);
    }
  }
};

}  // namespace regroup::cuda

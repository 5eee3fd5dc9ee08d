// SPDX-License-Identifier: Apache-2.0
// A tile of keys on plain arithmetic: the chains of algorithms/attention_fold.hpp, each in one thread, so the bits are those
// of the CPU. For scores a lane has two keys and the warp's rows; for O it has some columns of V and the warp's rows. The
// weights pass between the two through shared memory. Level: block.
#pragma once

#include "regroup/cuda/attention_call.hpp"

namespace regroup::cuda {

/// A score through a bound rule.
template <class Rule>
inline constexpr bool changes_scores = mask_rules::has_function<Rule, float>;
template <class Rule>
constexpr float scored_by(const Rule& rule, float score, index batch, index head, index query, index key) {
  mask_rules::require_rule<Rule>();
  if constexpr (changes_scores<Rule>) {
    return static_cast<float>(rule(score, batch, head, query, key));
  } else {
    return score;
  }
}

/// The same state in the frame of a maximum that is not lower: what a tile's keys are added to, and softmax_mean's combine
/// with a state of that maximum and no keys.
template <class State>
constexpr State in_frame(const State& s, float m) {
  const rescale<float> merge{s.m, m};
  return {m, math::product(s.l, merge.factor), scale(s.o, merge.factor)};
}
template <class State>
constexpr State raised(const State& s, float m) {
  return s.m < m ? in_frame(s, m) : s;
}
/// Four columns of a row, which shared memory hands over at once.
struct alignas(16) column_quad {
  float x[4];
};
/// The weights of two keys. A hidden key's is negative: it is left out, whatever its value holds.
struct weight_pair {
  float of[2];
};
inline constexpr float hidden_weight = -1;

/// How a block folds a tile on plain arithmetic.
template <class T, class Rule, class Shape>
struct plain_tile {
  using shape = Shape;
  using state = typename shape::state;
  static constexpr int resident_blocks = shape::thread_rows > 2 ? 3 : 4;
  static constexpr int thread_rows = shape::thread_rows, rows = shape::rows;
  static constexpr int tile_keys = static_cast<int>(attention_tile_keys);
  static constexpr int panel = warp_threads;  // columns of q and k in shared memory at once
  static constexpr bool reuses_memory = false;  // that no barrier of its own is between
  using states = state[static_cast<std::size_t>(thread_rows)];
  using scores = float[static_cast<std::size_t>(thread_rows)][2];
  const attention_call<T>& call;
  const Rule& rule;

  template <class Block, class Leaf>
  constexpr void fold_leaf(Block& b, attention_turns& turn, const Leaf& leaf, states& s) const {
    fold_each_tile(*this, b, turn, leaf, s);
  }
  /// Adds the keys of a tile to the thread's states.
  template <class Block, class Keys>
  constexpr void fold(Block& b, attention_turns& turn, const Keys& tile, states& s) const {
    scores score = {};
    products(b, turn, tile, score);
    if (!tile.looks) return;
    weigh(b, tile, score, s);
    values(b, tile, s);
  }

 private:
  /// score = q scale k over columns ascending, of the keys 2 lane and 2 lane + 1 and the warp's rows.
  template <class Block, class Keys>
  constexpr void products(Block& b, attention_turns& turn, const Keys& tile, scores& score) const {
    constexpr int quads = panel / 4, step = quads + 1;  // a step that spreads keys over the banks
    auto q = b.template shared<column_quad, 2 * rows * quads>();
    auto k = b.template shared<column_quad, 2 * tile_keys * step>();
    const int lane = b.thread() % warp_threads, warp = b.thread() / warp_threads;
    constexpr int own_q = (rows * quads + block_threads - 1) / block_threads, own_k = tile_keys * quads / block_threads;
    constexpr int apart = block_threads / quads;  // a thread's rows
    const int quad = b.thread() % quads, first = b.thread() / quads;
    const auto load = [&](const T* row, index stride, int column) {  // no condition: of what nobody reads a neighbour
      column_quad x{};
      unrolled<4>([&](int i) { x.x[i] = regroup::widen(row[smaller(column + i, call.d - 1) * stride]); });
      return x;
    };
    // Of no columns one panel too: its barrier is what the weights of the tile before wait for.
    for (int column = 0; column == 0 || column < call.d; column += panel) {
      turn.panels = 1 - turn.panels;
      const int q_panel = turn.panels * rows * quads, k_panel = turn.panels * tile_keys * step;
      column_quad of_q[static_cast<std::size_t>(own_q)] = {}, of_k[static_cast<std::size_t>(own_k)] = {};
      if (call.d > 0) {
        unrolled<own_q>([&](int n) {
          const row_sight s = tile.sights(smaller(first + n * apart, rows - 1));
          const T* const row = s.head >= 0 ? call.query(tile.at.batch, s.head, s.query) : call.q.data;
          of_q[n] = load(row, call.q.strides[3], column + 4 * quad);
        });
        unrolled<own_k>([&](int n) {
          const int key = smaller(first + n * apart, tile.keys - 1);
          of_k[n] = load(call.k.data + tile.places(key).k, call.k.strides[3], column + 4 * quad);
        });
      }
      unrolled<own_q>([&](int n) {
        if (first + n * apart >= rows) return;
        unrolled<4>([&](int i) { of_q[n].x[i] *= call.scale; });
        q.set(q_panel + (first + n * apart) * quads + quad, of_q[n]);
      });
      unrolled<own_k>([&](int n) {
        const int key = first + n * apart;
        k.set(k_panel + (key % 2 * warp_threads + key / 2) * step + quad, of_k[n]);
      });
      b.barrier();
      const int left = smaller(call.d - column, panel);
      for (int c = 0; tile.looks && 4 * c < left; ++c) {
        const column_quad k_0 = k.get(k_panel + lane * step + c), k_1 = k.get(k_panel + (lane + warp_threads) * step + c);
        unrolled<thread_rows>([&](int r) {
          const column_quad x = q.get(q_panel + (warp * thread_rows + r) * quads + c);
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
  template <class Block, class Keys>
  constexpr void weigh(Block& b, const Keys& tile, scores& score, states& s) const {
    auto weights = b.template shared<weight_pair, rows * warp_threads>();
    const int lane = b.thread() % warp_threads, warp = b.thread() / warp_threads;
    unrolled<thread_rows>([&](int r) {
      const row_sight sight = tile.sights(warp * thread_rows + r);
      float top = s[r].m;
      unrolled<2>([&](int i) {
        const int key = tile.first + 2 * lane + i;
        score[r][i] = sight.first <= key && key < sight.last
                          ? scored_by(rule, score[r][i], tile.at.batch, sight.head, sight.query, tile.leaf_first + key)
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
      weights.set((warp * thread_rows + r) * warp_threads + lane, w);
    });
    b.template group_barrier<warp_threads>();  // those of the next tile's have a block's barrier before them
  }

  /// l = l + w and O = fma(w, v, O) over keys ascending.
  template <class Block, class Keys>
  constexpr void values(Block& b, const Keys& tile, states& s) const {
    auto weights = b.template shared<weight_pair, rows * warp_threads>();
    const int lane = b.thread() % warp_threads, warp = b.thread() / warp_threads;
    constexpr int columns = shape::columns / warp_threads;
    constexpr int at_once = 4;  // keys whose values are on their way
    // A load without a condition waits for no other, so what nobody reads is a neighbour's.
    const int last = call.dv - 1;
    index place[static_cast<std::size_t>(columns)];
    unrolled<columns>([&](int c) {
      place[c] = smaller(tile.at.first_column + shape::column_of(lane, c), last) * call.v.strides[3];
    });
    for (int first = 0; first < tile.keys; first += at_once) {
      fixed_vector<float, columns> v[static_cast<std::size_t>(at_once)] = {};
      if (last >= 0) {
        unrolled<at_once>([&](int i) {
          const T* const row = call.v.data + tile.places(smaller(first + i, tile.keys - 1)).v;
          unrolled<columns>([&](int c) { v[i].values[c] = regroup::widen(row[place[c]]); });
        });
      }
      unrolled<at_once / 2>([&](int pair) {
        if (first + 2 * pair >= tile.keys) return;
        weight_pair w[static_cast<std::size_t>(thread_rows)];
        unrolled<thread_rows>(
            [&](int r) { w[r] = weights.get((warp * thread_rows + r) * warp_threads + first / 2 + pair); });
        unrolled<2>([&](int i) {
          if (first + 2 * pair + i >= tile.keys) return;
          unrolled<thread_rows>([&](int r) {
            if (w[r].of[i] < 0) return;
            s[r].l += w[r].of[i];
            s[r].o = axpy(v[2 * pair + i], w[r].of[i], s[r].o);
          });
        });
      });
    }
  }
};

}  // namespace regroup::cuda

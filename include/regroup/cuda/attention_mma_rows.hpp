// SPDX-License-Identifier: Apache-2.0
// What tiles on tensor cores share, whatever the type: a warp has 16 rows, or twice 16; the four lanes that share a row
// replicate m and l and hold the scores of 64 keys in registers; scores are masked and raise the maximum. Level: warp and
// block.
#pragma once

#include "regroup/cuda/attention_tile.hpp"
#include "regroup/cuda/mma.hpp"

namespace regroup::cuda {

/// A lane of a row has the columns 2 t and 2 t + 1 of each of `Eights` times 8. A block has 64 rows, or twice as many, of
/// which a warp has 16 in each half.
template <int Eights, int Halves = 1>
struct mma_shape {
  using narrow = mma_shape<Eights>;
  static constexpr int halves = Halves;
  static constexpr int thread_rows = 2 * Halves;
  static constexpr int rows = 16 * Halves * block_threads / warp_threads;
  static constexpr int row_lanes = 4;
  static constexpr int columns = 8 * Eights;
  using monoid = softmax_mean<float, fixed_vector<float, 2 * Eights>>;
  using state = state_of<monoid>;

  static constexpr int row_of(int thread, int r) {
    return r / 2 * (rows / Halves) + thread / warp_threads * 16 + thread % warp_threads / 4 + r % 2 * 8;
  }
  static constexpr int row_of_warp(int warp, int i) { return i / 16 * (rows / Halves) + warp * 16 + i % 16; }
  static constexpr int lane_of(int thread) { return thread % 4; }
  static constexpr int column_of(int lane, int c) { return c / 2 * 8 + lane * 2 + c % 2; }
};

/// A hidden key's weight: a zero that no other has.
inline constexpr float hidden_zero = -0.0f;
inline constexpr float hidden_score = -math::detail::infinity<float>;

template <class T, class Rule, class Shape>
struct mma_rows {
  using shape = Shape;
  using state = typename shape::state;
  using states = state[static_cast<std::size_t>(shape::thread_rows)];
  static constexpr int tile_keys = static_cast<int>(attention_tile_keys);
  using scores = float[2][static_cast<std::size_t>(tile_keys / 4)];  // of rows g and g + 8: of the keys 8 n + 2 t, + 1
  static_assert(shape::rows == shape::halves * tile_keys);
  /// How far scores may be above a row's frame m. A state is the same in any frame where its sums fit, weights of 16 bits are
  /// as exact in it, and O is seldom multiplied again. Of fp32 the error of an exponential grows with the distance.
  static constexpr float slack = sizeof(T) == 2 ? 5.0f : 0.0f;
  const attention_call<T>& call;
  const Rule& rule;

 protected:
  static constexpr int g_of(int thread) { return thread % warp_threads / 4; }
  static constexpr int t_of(int thread) { return thread % 4; }
  /// body(score, the last digits of its key), of the thread's keys of row r, whose first one is 2 t.
  template <class Body>
  static constexpr void each(scores& score, int r, const Body& body) {
    unrolled<tile_keys / 8>([&](int n) {
      unrolled<2>([&](int i) { body(score[r][2 * n + i], 8 * n + i); });
    });
  }
  /// join() of what the four lanes of each row hold, in each of them.
  using of_rows = mma_pair<float>;
  template <class Block, class Join>
  static constexpr of_rows over_rows(Block& b, of_rows x, const Join& join) {
    const auto with = [&](const of_rows& y) { return of_rows{{join(x.of[0], y.of[0]), join(x.of[1], y.of[1])}}; };
    x = with(b.template shuffle_xor<warp_threads>(x, 2));
    return with(b.template shuffle_xor<warp_threads>(x, 1));
  }

  /// What is left to multiply scores with: the scale, unless a rule asks for whole ones, or it would change their order.
  [[nodiscard]] constexpr float unit() const {
    return !changes_scores<Rule> && call.scale > 0 && call.scale < math::detail::infinity<float> ? call.scale : 1;
  }
  /// Whether no score of a tile has to be looked at by itself.
  template <class Keys>
  [[nodiscard]] constexpr bool is_plain(const Keys& tile) const {
    return !changes_scores<Rule> && tile.is_whole && unit() == call.scale;
  }
  /// Products become scores, or what unit() makes scores of, hidden ones -inf. Raises the frames of the states for
  /// the tile's maximum.
  template <class Block, class Keys>
  [[gnu::always_inline]] constexpr void raise(Block& b, const Keys& tile, int half, scores& score, states& s) const {
    if (!is_plain(tile)) [[unlikely]] {
      if (unit() != call.scale) {
        unrolled<2>([&](int r) { each(score, r, [&](float& x, int) { x = math::product(x, call.scale); }); });
      }
      unrolled<2>([&](int r) {
        const row_sight sight = tile.sights(shape::row_of(b.thread(), 2 * half + r));
        const int own = tile.first + 2 * t_of(b.thread());
        each(score, r, [&](float& x, int key) {
          const bool is_seen = sight.first - own <= key && key < sight.last - own;
          x = is_seen ? scored_by(rule, x, tile.at.batch, sight.head, sight.query, tile.leaf_first + own + key)
                      : hidden_score;
        });
      });
    }
    of_rows tops[2] = {{{hidden_score, hidden_score}}, {{hidden_score, hidden_score}}};  // of keys by turns
    unrolled<2>([&](int r) {
      each(score, r, [&](float& x, int key) {
        float& top = tops[key % 2].of[r];
        top = __builtin_fmaxf(x, top);  // of a NaN and another, the other
      });
    });
    of_rows top;
    unrolled<2>([&](int r) { top.of[r] = __builtin_fmaxf(tops[0].of[r], tops[1].of[r]); });
    top = over_rows(b, top, [](float a, float c) { return c > a ? c : a; });
    unrolled<2>([&](int r) { top.of[r] = math::product(top.of[r], unit()); });
    const auto rises = [&](int r) { return s[2 * half + r].m + slack < top.of[r]; };
    if (rises(0) || rises(1)) {  // both, side by side
      unrolled<2>([&](int r) {
        state& of = s[2 * half + r];
        of = in_frame(of, rises(r) ? top.of[r] : of.m);
      });
    }
  }
  /// O = fma(w, v, O) for the elements of v that no product takes, where a row sees them.
  template <class Block, class Keys, class Weight>
  constexpr void add_others(Block& b, const Keys& tile, int half, const Weight& weight, states& s) const {
    const index stride = call.v.strides[3];
    const int first = tile.at.first_column + 2 * t_of(b.thread());
    for (int key = 0; key < tile.keys; ++key) {
      const T* v = call.v.data + tile.places(key).v + first * stride;  // one address: one a column would cost registers
      int left = call.dv - first;
      unrolled<shape::columns / 4>([&](int c) {
        const T x = left > 0 ? *v : T(0.0f);
        v += c % 2 == 0 ? stride : 7 * stride;
        left -= c % 2 == 0 ? 1 : 7;
        if (has_factor(x)) return;
        unrolled<2>([&](int r) {
          const float of = weight(r, key);
          if (std::bit_cast<std::uint32_t>(of) != std::bit_cast<std::uint32_t>(hidden_zero)) {
            float& o = s[2 * half + r].o.values[c];
            o = math::fma(of, regroup::widen(x), o);
          }
        });
      });
    }
  }
};

}  // namespace regroup::cuda

// SPDX-License-Identifier: Apache-2.0
// A leaf of keys of 16 bits on tensor cores. q stays in registers; k and v lie in shared memory as in memory, and warps load
// their fragments as matrices (v transposed). While scores are computed v is on its way, and while weights and O are, the
// next tile's k: each buffer is filled again as soon as all have read it. l is the product of the weights and ones, O of
// them and v: the same rounded weights in numerator and denominator. Level: warp and block (FlashAttention-2: Dao 2023).
#pragma once

#include "regroup/cuda/attention_mma_rows.hpp"

namespace regroup::cuda {

/// How a block folds a leaf.
template <class T, class Rule, class Shape>
struct mma16_leaf : mma_rows<T, Rule, Shape> {
  using rows = mma_rows<T, Rule, Shape>;
  using typename rows::scores, typename rows::shape, typename rows::states;
  using rows::call, rows::tile_keys, rows::t_of;
  static constexpr int resident_blocks = shape::columns > 64 ? 2 : 3;
  static constexpr int panel = shape::columns;  // columns of q and k at once, and all of v's
  static constexpr int pieces = panel / 8;      // of 16 bytes
  static constexpr int step = pieces + 1;       // from a key to the next: eight rows of a matrix are in 32 banks
  using queries = mma_left[static_cast<std::size_t>(panel / 16)];
  using weights = mma_left[static_cast<std::size_t>(tile_keys / 16)];
  static_assert(block_threads % pieces == 0);

  /// Where row `lane` of four matrices is: of k those of 16 keys and 16 columns, of v the same, to be transposed.
  static constexpr int k_place(int lane, int key, int column) {
    return (key + lane % 8 + lane / 16 * 8) * step + column / 8 + lane / 8 % 2;
  }
  static constexpr int v_place(int lane, int key, int column) { return (key + lane % 16) * step + column / 8 + lane / 16; }

  /// A value that is not finite leaves O so in every row of a warp that looks at its tile, hidden or not. The leaf is then
  /// folded again with such values apart: what a row has is the same as if that had been done at once.
  template <class Block, class Leaf>
  constexpr void fold_leaf(Block& b, attention_turns& turn, const Leaf& leaf, states& s) const {
    if (leaf.first_tile() >= leaf.end) return;
    bool is_careful = false;
    do {
      unrolled<2>([&](int r) { s[r] = typename shape::monoid{}.identity(); });
      fold_tiles(b, turn, leaf, is_careful, s);
      is_careful = !is_careful && b.any(!is_finite(s));
    } while (is_careful);
  }

 private:
  static constexpr bool is_finite(const states& s) {
    float zero = 0;
    unrolled<2>([&](int r) {
      for (const float x : s[r].o.values) zero = math::fma(x, 0.0f, zero);
    });
    return zero == 0;
  }
  template <class Block, class Leaf>
  constexpr void fold_tiles(Block& b, attention_turns& turn, const Leaf& leaf, bool is_careful, states& s) const {
    int first = leaf.first_tile(), column = 0;
    leaf.note(b, turn, leaf.locate(b, first));
    b.barrier();
    stage_k(b, leaf.tile(first, leaf.places(b, turn)), column);
    queries q = {};
    scores score = {};
    while (first < leaf.end) {
      const auto places = leaf.places(b, turn);
      const auto tile = leaf.tile(first, places);
      const bool is_whole = column + panel >= call.d;  // the scores, after this panel of q and k
      const auto next_place = leaf.locate(b, first + tile_keys);
      if (first == leaf.first_tile() || call.d > panel) load_q(b, leaf, column, q);
      b.wait_for_copies();
      b.barrier();  // k is there, and v read
      if (is_whole) stage_v(b, tile);
      if (tile.looks) products(b, q, score);
      bool fits = true;
      if (is_whole) {
        leaf.note(b, turn, next_place);
        b.wait_for_copies();
        if (is_careful) fits = clear_v(b);
      }
      const bool all_fit = !b.any(!fits);  // v is there, and k read
      const int next = is_whole ? first + tile_keys : first;
      column = is_whole ? 0 : column + panel;
      if (next < leaf.end) stage_k(b, leaf.tile(next, leaf.places(b, turn)), column);
      if (is_whole && tile.looks) {
        weights weight = {};
        weigh(b, tile, score, weight, s);
        values(b, weight, s);
        if (!all_fit) add_values_without_factors(b, tile, weight, s);
        unrolled<tile_keys / 8>([&](int n) { unrolled<4>([&](int i) { score[n][i] = 0; }); });
      }
      first = next;
    }
  }

  /// k, and behind it v.
  static constexpr int v_first = tile_keys * step;
  template <class Block>
  static constexpr auto rows_of(Block& b) {
    return b.template shared<mma_row, 2 * v_first>();
  }
  template <class Block, class Leaf>
  constexpr void load_q(Block& b, const Leaf& leaf, int column, queries& q) const {
    unrolled<2>([&](int r) {
      const row_sight s = leaf.sights(shape::row_of(b.thread(), r));
      const index stride = call.q.strides[3];
      const int first = column + 2 * t_of(b.thread());
      const T* x = s.head >= 0 ? call.query(leaf.at.batch, s.head, s.query) + first * stride : call.q.data;
      int left = s.head >= 0 ? call.d - first : 0;
      unrolled<panel / 8>([&](int eight) {
        mma_pair<T> pair{{T(0.0f), T(0.0f)}};
        if (left > 0) pair.of[0] = *x;
        if (left > 1) pair.of[1] = x[stride];
        x += 8 * stride;
        left -= 8;
        q[eight / 2].words[eight % 2 * 2 + r] = factor_of(pair).words[0];
      });
    });
  }

  template <class Block, class Keys>
  constexpr void stage_k(Block& b, const Keys& tile, int column) const {
    stage(b, 0, call.k.data, call.has_k_rows, call.k.strides[3], column, call.d, tile.keys,
          [&](int key) { return tile.places(key).k; });
  }
  template <class Block, class Keys>
  constexpr void stage_v(Block& b, const Keys& tile) const {
    stage(b, v_first, call.v.data, call.has_v_rows, call.v.strides[3], tile.at.first_column, call.dv, tile.keys,
          [&](int key) { return tile.places(key).v; });
  }
  /// The columns [column, column + panel) of a tile's keys, 0 where there is none, to `to`. Each thread has one piece of
  /// every so many keys.
  template <class Block, class Place>
  constexpr void stage(Block& b, int to, const T* from, bool has_rows, index stride, int column, int width, int keys,
                       const Place& place) const {
    const auto x = rows_of(b);
    column += b.thread() % pieces * 8;
    if (has_rows) {
      const int some = column < width ? keys : 0;
      const T* const row = from + (some > 0 ? column : 0);
      const T* of[static_cast<std::size_t>(tile_keys * pieces / block_threads)];
      each_piece(b, [&](int i, int key, int) { of[i] = row + place(key); });  // all first: no load moves over a copy
      each_piece(b, [&](int i, int key, int at) { b.copy(x, to + at, of[i], key < some); });
    } else {
      for (int key = b.thread() / pieces; key < tile_keys; key += block_threads / pieces) {
        mma_row row{};
        const T* of = from + (key < keys ? place(key) + column * stride : 0);
        const int left = key < keys ? width - column : 0;
        unrolled<8>([&](int i) {
          if (i < left) row.words[i / 2] |= static_cast<std::uint32_t>(of->bits) << i % 2 * 16;
          of += stride;
        });
        x.set(to + key * step + b.thread() % pieces, row);
      }
    }
  }
  /// body(i, key, place) of the pieces of a tile that are the thread's.
  template <class Block, class Body>
  static constexpr void each_piece(Block& b, const Body& body) {
    unrolled<tile_keys * pieces / block_threads>([&](int i) {
      const int key = b.thread() / pieces + i * (block_threads / pieces);
      body(i, key, key * step + b.thread() % pieces);
    });
  }
  /// Whether all is finite of v that the thread has staged; what is not, and would be so times 0 too, becomes 0.
  template <class Block>
  constexpr bool clear_v(Block& b) const {
    const auto x = rows_of(b);
    bool fits = true;
    for (int key = b.thread() / pieces; key < tile_keys; key += block_threads / pieces) {
      const int at = v_first + key * step + b.thread() % pieces;
      mma_row row = x.get(at);
      bool fit = true;
      unrolled<8>([&](int i) {
        const int shift = i % 2 * 16;
        if (has_factor(T::from_bits(static_cast<std::uint16_t>(row.words[i / 2] >> shift)))) return;
        row.words[i / 2] &= ~(0xffffu << shift);
        fit = false;
      });
      if (fit) continue;
      x.set(at, row);
      fits = false;
    }
    return fits;
  }

  /// score = score + q k over a panel. Columns past the last are zeros: a branch around them would keep loads behind
  /// products.
  template <class Block>
  constexpr void products(Block& b, const queries& q, scores& score) const {
    const auto k = rows_of(b);
    const int lane = b.thread() % warp_threads;
    unrolled<panel / 16>([&](int c) {
      unrolled<tile_keys / 16>([&](int n) {
        const mma_left right = b.template matrices<false>(k, k_place(lane, 16 * n, 16 * c));
        unrolled<2>([&](int j) {
          float* const of = score[2 * n + j];
          add(b, q[c], right, j, of[0], of[1], of[2], of[3]);
        });
      });
    });
  }
  template <class Block>
  static constexpr void add(Block& b, const mma_left& left, const mma_left& right, int i, float& s_0, float& s_1, float& s_2,
                            float& s_3) {
    const mma_sums sums =
        b.template mma<T>(left, {{right.words[2 * i], right.words[2 * i + 1]}}, {{s_0, s_1, s_2, s_3}});
    s_0 = sums.sums[0];
    s_1 = sums.sums[1];
    s_2 = sums.sums[2];
    s_3 = sums.sums[3];
  }

  /// Raises each row's state to the tile's maximum; scores become weights, rounded, as products take them.
  template <class Block, class Keys>
  constexpr void weigh(Block& b, const Keys& tile, scores& score, weights& w, states& s) const {
    this->raise(b, tile, score, s);
    unrolled<2>([&](int r) {
      const float m = s[r].m;
      if (m == -hidden_score) rows::each(score, r, [&](float& x, int) { x = x == m ? 0 : x - m; });  // its weight is 1
      const float frame = m - m == 0 ? m : 0;
      rows::each(score, r, [&](float& x, int) {
        const float seen = b.exp2(math::product(x - frame, 0x1.715476p+0f));  // log2 e
        x = x == hidden_score ? hidden_zero : seen;
      });
      unrolled<tile_keys / 8>([&](int n) {
        w[n / 2].words[n % 2 * 2 + r] = b.template narrowed<T>(score[n][2 * r], score[n][2 * r + 1]);
      });
    });
  }

  /// l = l + weights, O = O + weights v.
  template <class Block>
  constexpr void values(Block& b, const weights& w, states& s) const {
    constexpr std::uint32_t one = factor_of(mma_pair<T>{{T(1.0f), T(1.0f)}}).words[0];
    const auto v = rows_of(b);
    const int lane = b.thread() % warp_threads;
    unrolled<tile_keys / 16>([&](int k) {
      float l[2] = {s[0].l, s[1].l};  // the same in the next column
      add(b, w[k], {{one, one, one, one}}, 0, s[0].l, l[0], s[1].l, l[1]);
      unrolled<panel / 16>([&](int n) {
        const mma_left right = b.template matrices<true>(v, v_first + v_place(lane, 16 * k, 16 * n));
        unrolled<2>([&](int i) {
          float *const o_0 = s[0].o.values + 2 * (2 * n + i), *const o_1 = s[1].o.values + 2 * (2 * n + i);
          add(b, w[k], right, i, o_0[0], o_0[1], o_1[0], o_1[1]);
        });
      });
    });
  }
  template <class Block, class Keys>
  constexpr void add_values_without_factors(Block& b, const Keys& tile, const weights& w, states& s) const {
    constexpr int pairs = tile_keys / 2 + 1;
    const auto x = b.template shared<std::uint32_t, shape::rows * pairs>();
    unrolled<2>([&](int r) {
      unrolled<tile_keys / 8>([&](int n) {
        x.set(shape::row_of(b.thread(), r) * pairs + 4 * n + t_of(b.thread()), w[n / 2].words[n % 2 * 2 + r]);
      });
    });
    b.template group_barrier<warp_threads>();
    this->add_others(b, tile, [&](int r, int key) {
      const std::uint32_t pair = x.get(shape::row_of(b.thread(), r) * pairs + key / 2);
      return widen(T::from_bits(static_cast<std::uint16_t>(pair >> key % 2 * 16)));
    }, s);
  }
};

}  // namespace regroup::cuda

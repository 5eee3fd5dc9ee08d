// SPDX-License-Identifier: Apache-2.0
// A tile of keys of float on tensor cores, by three products of tf32: every panel of q, k and v goes through shared memory,
// where k and v are split in two parts once. Level: warp and block.
#pragma once

#include "regroup/cuda/attention_mma_rows.hpp"

namespace regroup::cuda {

/// How a block folds a tile of float on tensor cores.
template <class T, class Rule, class Shape>
struct tf32_tile : mma_rows<T, Rule, Shape> {
  using rows = mma_rows<T, Rule, Shape>;
  using typename rows::scores, typename rows::shape, typename rows::states;
  using rows::call, rows::tile_keys, rows::g_of, rows::t_of;
  using pair = mma_pair<T>;
  using factor = mma_factor<T>;
  static constexpr int resident_blocks = 2;
  static constexpr bool reuses_memory = true;
  static constexpr int panel = warp_threads;      // columns of q, k or v in shared memory at once
  static constexpr int step = tile_keys / 2 + 4;  // pairs from a row of q, or of weights, to the next, over the banks
  static constexpr int k_step = panel / 2 + 4;    // factors from a key of k to the next
  static constexpr int v_step = panel + 2;        // and from two keys of v to the next two
  static constexpr int held = tile_keys * k_step;  // factors of a panel of k, or of v
  static_assert(panel / 2 <= step && tile_keys / 2 * v_step <= held);

  template <class Block, class Leaf>
  constexpr void fold_leaf(Block& b, attention_turns& turn, const Leaf& leaf, states& s) const {
    fold_each_tile(*this, b, turn, leaf, s);
  }
  /// Adds the keys of a tile to the thread's states.
  template <class Block, class Keys>
  constexpr void fold(Block& b, attention_turns&, const Keys& tile, states& s) const {
    scores score = {};
    products(b, tile, score);
    if (tile.looks) weigh(b, tile, score, s);
    values(b, tile, score, s);
  }

 private:
  /// A panel of q, then weights; and a panel of k, then of v.
  template <class Block>
  static constexpr auto left_of(Block& b) {
    return b.template shared<pair, shape::rows * step>();
  }
  template <class Block>
  static constexpr auto right_of(Block& b) {
    return b.template shared<factor, held>();
  }
  /// score = q k.
  template <class Block, class Keys>
  constexpr void products(Block& b, const Keys& tile, scores& score) const {
    auto q = left_of(b);
    auto k = right_of(b);
    const auto load = [](const T* row, index stride, int column, int end) {
      pair p{{T(0.0f), T(0.0f)}};
      unrolled<2>([&](int i) {
        if (column + i < end) p.of[i] = row[(column + i) * stride];
      });
      return p;
    };
    for (int column = 0; column < call.d; column += panel) {
      for (int i = b.thread(); i < tile_keys * panel / 2; i += block_threads) {
        const int row = i / (panel / 2), two = i % (panel / 2), of = column + two * 2;
        const row_sight s = tile.sights(row);
        q.set(row * step + two, s.head >= 0
                                    ? load(call.query(tile.at.batch, s.head, s.query), call.q.strides[3], of, call.d)
                                    : pair{{T(0.0f), T(0.0f)}});
        k.set(row * k_step + two,
              factor_of(row < tile.keys ? load(call.k.data + tile.places(row).k, call.k.strides[3], of, call.d)
                                        : pair{{T(0.0f), T(0.0f)}}));
      }
      b.barrier();
      const int left = smaller(call.d - column, panel);
      for (int c = 0; tile.looks && c < left; c += 8) {
        const int first = c / 2 + t_of(b.thread());
        const factor upper = factor_of(q.get(shape::row_of(b.thread(), 0) * step + first));
        const factor lower = factor_of(q.get(shape::row_of(b.thread(), 1) * step + first));
        unrolled<tile_keys / 8>([&](int n) {
          const factor right = k.get((8 * n + g_of(b.thread())) * k_step + first);
          add_product(b, upper, lower, right, score[0] + 2 * n, score[1] + 2 * n);
        });
      }
      b.barrier();
    }
    fit(b, tile, score);
  }

  /// The sums of two neighbouring columns in both rows.
  template <class Block>
  static constexpr void add_product(Block& b, const factor& upper, const factor& lower, const factor& right, float* of_upper,
                                    float* of_lower) {
    const mma_sums sums =
        multiply(b, upper, lower, right, {{of_upper[0], of_upper[1], of_lower[0], of_lower[1]}});
    of_upper[0] = sums.sums[0];
    of_upper[1] = sums.sums[1];
    of_lower[0] = sums.sums[2];
    of_lower[1] = sums.sums[3];
  }

  /// Floats that are infinite, or do not fit, make NaN of products: such scores are chains instead.
  template <class Block, class Keys>
  constexpr void fit(Block& b, const Keys& tile, scores& score) const {
    bool fits = true;
    unrolled<2>([&](int r) { rows::each(score, r, [&](float& x, int) { fits = fits && x == x; }); });
    if (fits) return;
    for (int own = 0; own < tile_keys / 2; ++own) {
      const int row = own / (tile_keys / 4), last = own % (tile_keys / 4) / 2 * 8 + own % 2;
      const int key = last + 2 * t_of(b.thread());
      const row_sight s = tile.sights(shape::row_of(b.thread(), row));
      float sum = 0;
      if (s.head >= 0 && key < tile.keys) {
        const T *const q = call.query(tile.at.batch, s.head, s.query), *const k = call.k.data + tile.places(key).k;
        for (int c = 0; c < call.d; ++c) sum = math::fma(q[c * call.q.strides[3]], k[c * call.k.strides[3]], sum);
      }
      unrolled<2>([&](int r) {
        rows::each(score, r, [&](float& x, int of) {
          if (r == row && of == last && x != x) x = sum;
        });
      });
    }
  }

  /// Scores become weights; l = l + their sum.
  template <class Block, class Keys>
  constexpr void weigh(Block& b, const Keys& tile, scores& score, states& s) const {
    this->raise(b, tile, 0, score, s);
    typename rows::of_rows sum{};
    unrolled<2>([&](int r) {
      const softmax_weight<float> weight{s[r].m};
      rows::each(score, r, [&](float& x, int) {
        x = math::select(x == hidden_score, hidden_zero, weight(math::product(x, this->unit())));
        sum.of[r] += x;
      });
    });
    sum = rows::over_rows(b, sum, [](float a, float c) { return a + c; });
    unrolled<2>([&](int r) { s[r].l += sum.of[r]; });
  }

  /// O = O + weights v. Elements of v that no product takes are 0 there; those who see them add them after it.
  template <class Block, class Keys>
  constexpr void values(Block& b, const Keys& tile, const scores& weight, states& s) const {
    auto x = right_of(b);
    bool all_fit = true;
    unrolled<shape::columns / panel>([&](int number) {
      if (number > 0) b.barrier();
      bool own_fit = true;
      for (int i = b.thread(); i < tile_keys / 2 * panel; i += block_threads) {
        const int two = i / panel;
        pair p{{T(0.0f), T(0.0f)}};
        unrolled<2>([&](int j) {
          const T v = value(tile, 2 * two + j, number * panel + i % panel);
          const bool fits = has_factor(v);
          own_fit = own_fit && fits;
          if (fits) p.of[j] = v;
        });
        x.set(two * v_step + i % panel, factor_of(p));
      }
      if (b.any(!own_fit)) all_fit = false;
      if (tile.looks) {
        float sum[2][panel / 4] = {};  // a tensor core cuts what it adds: O would shrink at every step
        unrolled<tile_keys / 8>([&](int k) {
          const factor upper = factor_of<T>({{weight[0][2 * k], weight[0][2 * k + 1]}});
          const factor lower = factor_of<T>({{weight[1][2 * k], weight[1][2 * k + 1]}});
          unrolled<panel / 8>([&](int n) {
            const factor right = x.get((k * 4 + t_of(b.thread())) * v_step + 8 * n + g_of(b.thread()));
            add_product(b, upper, lower, right, sum[0] + 2 * n, sum[1] + 2 * n);
          });
        });
        unrolled<2>([&](int r) {
          unrolled<panel / 4>([&](int i) { s[r].o.values[number * panel / 4 + i] += sum[r][i]; });
        });
      }
    });
    if (!all_fit && tile.looks) add_values_without_factors(b, tile, weight, s);
  }
  /// An element of v; 0 past the tile's keys and the columns.
  template <class Keys>
  constexpr T value(const Keys& tile, int key, int column) const {
    column += tile.at.first_column;
    if (key >= tile.keys || column >= call.dv) return T(0.0f);
    return call.v.data[tile.places(key).v + column * call.v.strides[3]];
  }
  template <class Block, class Keys>
  constexpr void add_values_without_factors(Block& b, const Keys& tile, const scores& weight, states& s) const {
    auto x = left_of(b);
    unrolled<2>([&](int r) {
      unrolled<tile_keys / 8>([&](int n) {
        x.set(shape::row_of(b.thread(), r) * step + 4 * n + t_of(b.thread()), {{weight[r][2 * n], weight[r][2 * n + 1]}});
      });
    });
    b.template group_barrier<warp_threads>();
    this->add_others(b, tile, 0, [&](int r, int key) {
      const pair w = x.get(shape::row_of(b.thread(), r) * step + key / 2);
      return key % 2 == 0 ? w.of[0] : w.of[1];
    }, s);
  }
};

}  // namespace regroup::cuda

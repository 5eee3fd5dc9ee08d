// SPDX-License-Identifier: Apache-2.0
// A tile of keys of float on tensor cores, by three products of tf32. Panels of k and v go through shared memory, where each
// is split into two parts once; q is read from memory when it is multiplied. A thread loads its share of a panel at once; a
// tile's later panels are loaded while the one before is multiplied. Level: warp and block.
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
  static constexpr int panel = warp_threads;      // columns of q, k or v at once
  static constexpr int eights = panel / 8;
  static constexpr int k_step = panel / 2 + 4;    // factors from a key of k to the next in shared memory, over the banks
  static constexpr int v_step = panel + 2;        // and from two keys of v to the next two
  static constexpr int held = tile_keys * k_step;  // factors of a panel of k, or of v
  static_assert(tile_keys / 2 * v_step <= held);
  static constexpr int own_pairs = tile_keys * panel / 2 / block_threads;  // a thread's of k or v: two columns of every eighth
  static constexpr int k_apart = block_threads / (panel / 2);              // key, or a column of two keys of every eight
  static constexpr int v_apart = 2 * block_threads / panel;
  using pairs = pair[static_cast<std::size_t>(own_pairs)];

  template <class Block, class Leaf>
  constexpr void fold_leaf(Block& b, attention_turns& turn, const Leaf& leaf, states& s) const {
    fold_each_tile(*this, b, turn, leaf, s);
  }
  /// Adds the keys of a tile to the thread's states.
  template <class Block, class Keys>
  constexpr void fold(Block& b, attention_turns&, const Keys& tile, states& s) const {
    scores score = {};
    products(b, tile, score);
    pairs v;
    load_v(b, tile, 0, v);
    if (tile.looks) weigh(b, tile, score, s);
    values(b, tile, score, v, s);
  }

 private:
  /// A panel of k, then of v.
  template <class Block>
  static constexpr auto right_of(Block& b) {
    return b.template shared<factor, held>();
  }
  /// x[n] = the elements (key + n Apart, column) and, where they are `ByKeys`, (key + n Apart + 1, column), or else (key + n
  /// Apart, column + 1); 0 past the tile's keys and `width`. No load waits for another.
  template <int Apart, bool ByKeys, class Keys, class Place>
  constexpr void load(const Keys& tile, const attention_array<const T>& from, const Place& place, int key, int column,
                      int width, pairs& x) const {
    const auto is_there = [&](int n, int i) {
      return key + n * Apart + (ByKeys ? i : 0) < tile.keys && column + (ByKeys ? 0 : i) < width;
    };
    if (call.table == nullptr) {
      const T* row = from.data + place(tile.places(key)) + column * from.strides[3];
      unrolled<own_pairs>([&](int n) {
        unrolled<2>([&](int i) { x[n].of[i] = is_there(n, i) ? row[i * from.strides[ByKeys ? 2 : 3]] : T(0.0f); });
        row += Apart * from.strides[2];
      });
    } else {
      unrolled<own_pairs>([&](int n) {
        unrolled<2>([&](int i) {
          const T* const row = from.data + place(tile.places(key + n * Apart + (ByKeys ? i : 0)));
          x[n].of[i] = is_there(n, i) ? row[(column + (ByKeys ? 0 : i)) * from.strides[3]] : T(0.0f);
        });
      });
    }
  }
  template <class Block, class Keys>
  constexpr void load_k(Block& b, const Keys& tile, int column, pairs& k) const {
    constexpr int twos = panel / 2;
    load<k_apart, false>(tile, call.k, [](const auto& at) { return at.k; }, b.thread() / twos, column + b.thread() % twos * 2,
                         call.d, k);
  }
  template <class Block, class Keys>
  constexpr void load_v(Block& b, const Keys& tile, int column, pairs& v) const {
    load<v_apart, true>(tile, call.v, [](const auto& at) { return at.v; }, b.thread() / panel * 2,
                        tile.at.first_column + column + b.thread() % panel, call.dv, v);
  }
  /// score = q k.
  template <class Block, class Keys>
  constexpr void products(Block& b, const Keys& tile, scores& score) const {
    const auto x = right_of(b);
    const T* row[2];
    int width[2];
    unrolled<2>([&](int r) {
      const row_sight s = tile.sights(shape::row_of(b.thread(), r));
      const int first = 2 * t_of(b.thread());
      width[r] = s.head >= 0 ? call.d - first : 0;
      row[r] = s.head >= 0 ? call.query(tile.at.batch, s.head, s.query) + first * call.q.strides[3] : call.q.data;
    });
    pair q[2][static_cast<std::size_t>(eights)];  // the columns 8 c + 2 t, + 1 of rows g and g + 8
    pairs k;
    load_k(b, tile, 0, k);
    for (int column = 0; column < call.d; column += panel) {
      unrolled<2>([&](int r) {
        unrolled<eights>([&](int c) {
          unrolled<2>([&](int i) { q[r][c].of[i] = column + 8 * c + i < width[r] ? row[r][i * call.q.strides[3]] : T(0.0f); });
          row[r] += 8 * call.q.strides[3];
        });
      });
      unrolled<own_pairs>([&](int n) {
        const int two = b.thread() % (panel / 2), key = b.thread() / (panel / 2) + n * k_apart;
        x.set(key * k_step + two, factor_of(k[n]));
      });
      b.barrier();
      if (column + panel < call.d) load_k(b, tile, column + panel, k);
      if (tile.looks) {
        unrolled<eights>([&](int c) {
          if (column + 8 * c >= call.d) return;
          const factor upper = factor_of(q[0][c]), lower = factor_of(q[1][c]);
          unrolled<tile_keys / 8>([&](int n) {
            const factor right = x.get((8 * n + g_of(b.thread())) * k_step + 4 * c + t_of(b.thread()));
            add_product(b, upper, lower, right, score[0] + 2 * n, score[1] + 2 * n);
          });
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
  constexpr void values(Block& b, const Keys& tile, const scores& weight, pairs& v, states& s) const {
    auto x = right_of(b);
    bool all_fit = true;
    unrolled<shape::columns / panel>([&](int number) {
      if (number > 0) b.barrier();
      bool own_fit = true;
      unrolled<own_pairs>([&](int n) {
        unrolled<2>([&](int j) {
          const bool fits = has_factor(v[n].of[j]);
          own_fit = own_fit && fits;
          if (!fits) v[n].of[j] = 0;
        });
        x.set((b.thread() / panel + n * v_apart / 2) * v_step + b.thread() % panel, factor_of(v[n]));
      });
      if (b.any(!own_fit)) all_fit = false;
      if (number + 1 < shape::columns / panel) load_v(b, tile, (number + 1) * panel, v);
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
  template <class Block, class Keys>
  constexpr void add_values_without_factors(Block& b, const Keys& tile, const scores& weight, states& s) const {
    constexpr int step = tile_keys / 2 + 4;  // over the banks
    const auto x = b.template shared<pair, shape::rows * step>();
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

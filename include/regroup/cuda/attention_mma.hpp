// SPDX-License-Identifier: Apache-2.0
// A tile of keys on tensor cores: scores and O are products of small matrices (cuda/mma.hpp), 16 rows to a warp, m and l
// replicated over the four lanes that share a row. float16 and bfloat16 as they are, weights rounded to them for l and O
// alike; float by three products of tf32. The states, the frame and the combine are those of the plain tile; the order inside a product is the hardware's,
// so bits are those of one kind of device, still with any grid, batch and pages.
// Level: warp and block (FlashAttention-2: Dao 2023).
#pragma once

#include "regroup/cuda/attention_tile.hpp"
#include "regroup/cuda/mma.hpp"

namespace regroup::cuda {

/// A lane of a row has the columns 2 t and 2 t + 1 of each of `Eights` times 8.
template <int Eights>
struct mma_shape {
  static constexpr int thread_rows = 2;
  static constexpr int rows = 16 * block_threads / warp_threads;
  static constexpr int row_lanes = 4;
  static constexpr int columns = 8 * Eights;
  static constexpr int shards = rows * row_lanes;
  using monoid = softmax_mean<float, fixed_vector<float, 2 * Eights>>;
  using state = state_of<monoid>;

  static constexpr int row_of(int thread, int r) { return thread / warp_threads * 16 + thread % warp_threads / 4 + 8 * r; }
  static constexpr int lane_of(int thread) { return thread % 4; }
  static constexpr int column_of(int lane, int c) { return c / 2 * 8 + lane * 2 + c % 2; }
};

/// A hidden key's weight: a zero that no other has.
inline constexpr float hidden_zero = -0.0f;

/// How a block folds a tile on tensor cores.
template <class T, class Rule, class Shape>
struct mma_tile {
  using shape = Shape;
  using state = typename shape::state;
  using states = state[2];
  using pair = mma_pair<T>;
  using factor = mma_factor<T>;
  using factors = mma_factors<T>;
  static constexpr int resident_blocks = 2;
  static constexpr int tile_keys = static_cast<int>(attention_tile_keys);
  static constexpr int eights = mma_eights<T>;   // eight columns that one product takes
  static constexpr int panel = 32 * eights;      // columns of q, k or v in shared memory at once
  static constexpr int step = tile_keys / 2 + 4; // pairs from a row of q, or of weights, to the next, over the banks
  static constexpr int k_step = panel / 2 + 4;   // factors from a key of k to the next
  static constexpr int v_step = panel + (eights == 2 ? 8 : 2);  // and from two keys of v to the next two
  static constexpr int held = tile_keys * k_step;               // factors of a panel of k, or of v
  using scores = float[static_cast<std::size_t>(tile_keys / 8)][4];  // of keys 8 n + 2 t, + 1; rows g, g, g + 8, g + 8
  static_assert(panel / 2 <= step && tile_keys / 2 * v_step <= held && shape::rows == tile_keys);
  const attention_call<T>& call;
  const Rule& rule;

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
  static constexpr int g_of(int thread) { return thread % warp_threads / 4; }
  static constexpr int t_of(int thread) { return thread % 4; }

  /// score = scale q k.
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
      for (int c = 0; tile.looks && c < left; c += 8 * eights) {
        const int first = c / 2 + t_of(b.thread());
        factors upper, lower, right;
        unrolled<eights>([&](int e) {
          upper[e] = factor_of(q.get(shape::row_of(b.thread(), 0) * step + first + 4 * e));
          lower[e] = factor_of(q.get(shape::row_of(b.thread(), 1) * step + first + 4 * e));
        });
        unrolled<tile_keys / 8>([&](int n) {
          unrolled<eights>([&](int e) { right[e] = k.get((8 * n + g_of(b.thread())) * k_step + first + 4 * e); });
          add_product(b, upper, lower, right, score[n][0], score[n][1], score[n][2], score[n][3]);
        });
      }
      b.barrier();
    }
    if constexpr (eights == 1) fit(b, tile, score);
    unrolled<tile_keys / 8>([&](int n) {
      unrolled<4>([&](int i) { score[n][i] = math::product(score[n][i], call.scale); });
    });
  }

  template <class Block>
  static constexpr void add_product(Block& b, const factors& upper, const factors& lower, const factors& right, float& s_0,
                                    float& s_1, float& s_2, float& s_3) {
    const mma_sums sums = multiply<T>(b, upper, lower, right, {{s_0, s_1, s_2, s_3}});
    s_0 = sums.sums[0];
    s_1 = sums.sums[1];
    s_2 = sums.sums[2];
    s_3 = sums.sums[3];
  }

  /// Floats that are infinite, or do not fit, make NaN of products: such scores are chains instead.
  template <class Block, class Keys>
  constexpr void fit(Block& b, const Keys& tile, scores& score) const {
    bool fits = true;
    unrolled<tile_keys / 8>([&](int n) {
      unrolled<4>([&](int i) { fits = fits && score[n][i] == score[n][i]; });
    });
    if (fits) return;
    for (int own = 0; own < tile_keys / 2; ++own) {
      const int key = own / 4 * 8 + 2 * t_of(b.thread()) + own % 2;
      const row_sight s = tile.sights(shape::row_of(b.thread(), own / 2 % 2));
      float sum = 0;
      if (s.head >= 0 && key < tile.keys) {
        const T *const q = call.query(tile.at.batch, s.head, s.query), *const k = call.k.data + tile.places(key).k;
        for (int c = 0; c < call.d; ++c) sum = math::fma(q[c * call.q.strides[3]], k[c * call.k.strides[3]], sum);
      }
      unrolled<tile_keys / 8>([&](int n) {
        unrolled<4>([&](int i) {
          if (4 * n + i == own && score[n][i] != score[n][i]) score[n][i] = sum;
        });
      });
    }
  }

  /// Raises each row's state to the tile's maximum; scores become weights; l = l + their sum.
  template <class Block, class Keys>
  constexpr void weigh(Block& b, const Keys& tile, scores& score, states& s) const {
    constexpr float hides = -math::detail::infinity<float>;
    unrolled<2>([&](int r) {
      const row_sight sight = tile.sights(shape::row_of(b.thread(), r));
      const auto each = [&](const auto& body) {  // body(score, its key)
        unrolled<tile_keys / 8>([&](int n) {
          unrolled<2>([&](int i) { body(score[n][2 * r + i], tile.first + 8 * n + 2 * t_of(b.thread()) + i); });
        });
      };
      float top = s[r].m;
      each([&](float& x, int key) {
        const bool is_seen = sight.first <= key && key < sight.last;
        x = is_seen ? scored_by(rule, x, tile.at.batch, sight.head, sight.query, tile.leaf_first + key) : hides;
        top = x > top ? x : top;
      });
      top = over_row(b, top, [](float a, float c) { return c > a ? c : a; });
      s[r] = raised(s[r], top);
      const softmax_weight<float> weight{top};
      float sum = 0;
      each([&](float& x, int) {
        x = x == hides ? hidden_zero : widen(static_cast<T>(weight(x)));
        sum += x;
      });
      s[r].l += over_row(b, sum, [](float a, float c) { return a + c; });
    });
  }
  /// join() of what the four lanes of a row hold, in each of them.
  template <class Block, class Join>
  static constexpr float over_row(Block& b, float x, const Join& join) {
    x = join(x, b.template shuffle_down<4>(x, 2));
    x = join(x, b.template shuffle_down<4>(x, 1));
    return b.template broadcast<4>(x);
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
        unrolled<tile_keys / 8 / eights>([&](int k) {
          factors upper, lower, right;
          unrolled<eights>([&](int e) {
            const auto& w = weight[k * eights + e];
            upper[e] = factor_of<T>({{T(w[0]), T(w[1])}});
            lower[e] = factor_of<T>({{T(w[2]), T(w[3])}});
          });
          unrolled<panel / 8>([&](int n) {
            unrolled<eights>([&](int e) {
              right[e] = x.get(((k * eights + e) * 4 + t_of(b.thread())) * v_step + 8 * n + g_of(b.thread()));
            });
            float* const o_0 = s[0].o.values + number * panel / 4 + 2 * n;
            float* const o_1 = s[1].o.values + number * panel / 4 + 2 * n;
            add_product(b, upper, lower, right, o_0[0], o_0[1], o_1[0], o_1[1]);
          });
        });
      }
    });
    if (!all_fit && tile.looks) add_others(b, tile, weight, s);
  }
  /// An element of v; 0 past the tile's keys and the columns.
  template <class Keys>
  constexpr T value(const Keys& tile, int key, int column) const {
    column += tile.at.first_column;
    if (key >= tile.keys || column >= call.dv) return T(0.0f);
    return call.v.data[tile.places(key).v + column * call.v.strides[3]];
  }
  /// O = fma(w, v, O) for the elements of v that no product takes, where a row sees them.
  template <class Block, class Keys>
  constexpr void add_others(Block& b, const Keys& tile, const scores& weight, states& s) const {
    auto x = left_of(b);
    unrolled<2>([&](int r) {
      unrolled<tile_keys / 8>([&](int n) {
        x.set(shape::row_of(b.thread(), r) * step + 4 * n + t_of(b.thread()),
              {{T(weight[n][2 * r]), T(weight[n][2 * r + 1])}});
      });
    });
    b.template group_barrier<warp_threads>();
    for (int key = 0; key < tile.keys; ++key) {
      unrolled<shape::columns / 4>([&](int c) {
        const T v = value(tile, key, shape::column_of(t_of(b.thread()), c));
        if (has_factor(v)) return;
        unrolled<2>([&](int r) {
          const pair w = x.get(shape::row_of(b.thread(), r) * step + key / 2);
          const float of = widen(key % 2 == 0 ? w.of[0] : w.of[1]);
          if (std::bit_cast<std::uint32_t>(of) != std::bit_cast<std::uint32_t>(hidden_zero)) {
            s[r].o.values[c] = math::fma(of, widen(v), s[r].o.values[c]);
          }
        });
      });
    }
  }
};

/// Tensor cores, and their shapes: 64 rows to a block, and 64 or 128 columns.
struct tensor_arithmetic {
  template <class T, class Rule, class Shape>
  using tile = mma_tile<T, Rule, Shape>;
  template <class Plan, class Run>
  static void with_shape(const Plan& plan, const Run& run) {
    if (plan.columns == 64) return run(mma_shape<8>{});
    run(mma_shape<16>{});
  }
  static constexpr int few_rows = 64, many_rows = 64;
};

}  // namespace regroup::cuda

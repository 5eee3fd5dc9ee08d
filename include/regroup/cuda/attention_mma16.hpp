// SPDX-License-Identifier: Apache-2.0
// A leaf of keys of 16 bits on tensor cores: while a tile is folded the next k and v are being loaded. l is the sum of the
// weights before they are rounded, kept per lane until the leaf is done. Two halves of rows take turns with what is staged;
// two blocks of a multiprocessor keep its tensor cores busy in turn. Level: warp and block (FlashAttention-2: Dao 2023;
// halves that overlap: FlashAttention-3, Shah et al. 2024).
#pragma once

#include <utility>

#include "regroup/cuda/attention_mma16_buffers.hpp"

namespace regroup::cuda {

/// How a block folds a leaf. Two halves only of what one panel of columns holds, in whole pieces of 16 bytes.
template <class T, class Rule, class Shape>
struct mma16_leaf : mma16_buffers<T, Rule, Shape> {
  using buffers = mma16_buffers<T, Rule, Shape>;
  using rows = mma_rows<T, Rule, Shape>;
  using typename rows::scores, typename rows::shape, typename rows::states;
  using rows::call, rows::tile_keys, rows::t_of, buffers::panel, buffers::q_rows, buffers::k_rows, buffers::v_rows;
  static constexpr int halves = shape::halves;
  static constexpr int resident_blocks = 2;
  static constexpr bool overlaps = halves == 2 && shape::columns <= 64;  // with more of O registers would spill
  using weights = mma_left[static_cast<std::size_t>(tile_keys / 16)];
  static constexpr std::size_t large_bytes = sizeof(mma_row) * buffers::held;

  /// A value that is not finite leaves O so in every row of a block that looks at its tile, hidden or not. The leaf is then
  /// folded again with such values apart: what a row has is the same as if that had been done at once.
  template <class Block, class Leaf>
  [[gnu::always_inline]] constexpr void fold_leaf(Block& b, attention_turns& turn, const Leaf& leaf, states& s) const {
    if (leaf.first_tile() >= leaf.end()) return;
    bool is_careful = false;
    if (halves > 1 || call.has_rows()) {
      fold_tiles<true, false>(b, turn, leaf, false, s);
      is_careful = b.any(!is_finite(s));
      if (!is_careful) return;
    }
    do {
      unrolled<shape::thread_rows>([&](int r) { s[r] = typename shape::monoid{}.identity(); });
      fold_tiles<(halves > 1), true>(b, turn, leaf, is_careful, s);
      const bool again = b.any(!is_finite(s));  // a barrier too: what follows uses the same memory
      is_careful = !is_careful && again;
    } while (is_careful);
  }

 private:
  static constexpr bool is_finite(const states& s) {
    float zero = 0;
    unrolled<shape::thread_rows>([&](int r) {
      for (const float x : s[r].o.values) zero = math::fma(x, 0.0f, zero);
    });
    return zero == 0;
  }
  /// Half the rows' weights are computed while the products of v with the other half's run. The next tile's k is on its way
  /// from the first half on, and its v from the second, when all have read the buffer that it comes to.
  /// `HasPieces`: all rows are whole pieces. Values that are not finite are apart where the fold may be, and is, careful.
  template <bool HasPieces, bool MayBeCareful, class Block, class Leaf>
  requires overlaps
  [[gnu::always_inline]] constexpr void fold_tiles(Block& b, attention_turns& turn, const Leaf& leaf, bool is_careful,
                                                   states& s) const {
    if constexpr (!MayBeCareful) is_careful = false;
    int tile = leaf.first_tile(), now = 0;  // and its buffers
    /// Waits for what is staged; whether all of v fits products.
    const auto arrive = [&](int to) {
      b.wait_for_copies();
      if (is_careful) return !b.any(!this->clear_v(b, v_rows(to)));
      b.barrier();
      return true;
    };
    leaf.note(b, turn, tile);
    if (!leaf.is_dense()) b.barrier();
    if (!turn.has_queries) this->template stage_q<HasPieces>(b, leaf, 0);
    turn.has_queries = true;
    const auto staged = [&](int first) { return leaf.tile(first, leaf.places(b, turn, first)); };
    this->template stage_k<HasPieces>(b, leaf, staged(tile), now, 0);
    this->template stage_v<HasPieces>(b, leaf, staged(tile), now);
    leaf.note(b, turn, tile + tile_keys);
    bool all_fit = arrive(now);
    scores score;
    weights weight;
    products(b, now, 0, 0, score);
    b.template wait_for_products<0>(score[0], score[1]);
    while (tile < leaf.end()) {
      const int next = tile + tile_keys;
      const bool is_followed = next < leaf.end();
      const auto keys = leaf.tile(tile, leaf.places(b, turn, tile, 1));
      if (is_followed) this->template stage_k<HasPieces>(b, leaf, staged(next), 1 - now, 0);
      const int then = is_followed ? 1 - now : now;  // of the last tile once more, for nobody: no product is in a branch
      const auto fold_half = [&](int half) __attribute__((always_inline)) {
        weigh(b, keys, half, is_careful, score, weight, s);
        [[maybe_unused]] const bool fits = all_fit;
        if (half == 1) {
          if (is_followed) leaf.note(b, turn, next + tile_keys);
          all_fit = arrive(then);
        }
        products(b, half == 0 ? now : then, 1 - half, 0, score);
        values(b, now, half, weight, s);
        if (half == 0) {
          b.barrier();  // all have added up the values before
          if (is_followed) this->template stage_v<HasPieces>(b, leaf, staged(next), 1 - now);
        }
        b.template wait_for_products<1>(score[0], score[1]);
        if constexpr (MayBeCareful) {
          settle(b, s, weight);
          if (!fits) add_values_without_factors(b, keys, half, weight, s);
        }
      };
      fold_half(0);
      fold_half(1);
      tile = next;
      now = 1 - now;
    }
    settle(b, s, weight);
    sum_weights(b, s);
  }
  /// The columns [column, column + panel) of a tile's keys, and which buffers they are in.
  struct step {
    int tile, column, k_turn, v_turn;
  };
  /// One half after the other, or one alone, whose rows may be longer than a panel.
  template <bool HasPieces, bool MayBeCareful, class Block, class Leaf>
  requires(!overlaps)
  [[gnu::always_inline]] constexpr void fold_tiles(Block& b, attention_turns& turn, const Leaf& leaf, bool is_careful,
                                                   states& s) const {
    if constexpr (!MayBeCareful) is_careful = false;
    const auto is_last = [&](const step& of) { return halves > 1 || of.column + panel >= call.d; };  // of its tile's
    const auto after = [&](const step& of) {
      return is_last(of) ? step{of.tile + tile_keys, 0, 1 - of.k_turn, 1 - of.v_turn}
                         : step{of.tile, of.column + panel, 1 - of.k_turn, of.v_turn};
    };
    const auto stage = [&](const step& of, int before) {  // by the places noted so many times before the last
      const auto tile = leaf.tile(of.tile, leaf.places(b, turn, of.tile, before));
      this->template stage_k<HasPieces>(b, leaf, tile, of.k_turn, of.column);
      if (is_last(of)) this->template stage_v<HasPieces>(b, leaf, tile, of.v_turn);
    };
    /// Waits for what is staged; whether all of v fits products.
    const auto arrive = [&](const step& of) {
      b.wait_for_copies();
      if (!is_careful) {
        b.barrier();
        return true;
      }
      return !b.any(is_last(of) && !this->clear_v(b, v_rows(of.v_turn)));
    };
    step now{leaf.first_tile(), 0, 0, 0};
    leaf.note(b, turn, now.tile);
    if (!leaf.is_dense()) b.barrier();
    if (!turn.has_queries) this->template stage_q<HasPieces>(b, leaf, 0);
    turn.has_queries = halves > 1 || call.d <= panel;
    stage(now, 0);
    leaf.note(b, turn, now.tile + tile_keys);
    bool all_fit = arrive(now);
    scores score;
    while (now.tile < leaf.end()) {
      const step next = after(now);
      if (next.tile < leaf.end()) stage(next, next.tile == now.tile ? 1 : 0);
      const auto tile = leaf.tile(now.tile, leaf.places(b, turn, now.tile, 1));
      products(b, now.k_turn, 0, now.column, score);
      b.template wait_for_products<0>(score[0], score[1]);  // and for the tile's before
      weights weight[static_cast<std::size_t>(halves)];
      const auto fold_half = [&](int half) __attribute__((always_inline)) {
        const bool is_followed = half + 1 < halves;
        weigh(b, tile, half, is_careful, score, weight[half], s);
        if (is_followed) products(b, now.k_turn, half + 1, now.column, score);
        values(b, now.v_turn, half, weight[half], s);
        if (is_followed) b.template wait_for_products<1>(score[0], score[1]);  // while these values are added up
        if (!is_careful || all_fit) return;
        settle(b, s);
        add_values_without_factors(b, tile, half, weight[half], s);
      };
      if (is_last(now)) {
        fold_half(0);
        if constexpr (halves > 1) fold_half(1);
      }
      settle(b, s);
      if (is_last(now)) leaf.note(b, turn, next.tile + tile_keys);
      if (next.tile < leaf.end()) {
        if (halves == 1 && call.d > panel) {
          b.barrier();  // q is read
          this->template stage_q<HasPieces>(b, leaf, next.column);
        }
        all_fit = arrive(next);
      }
      now = next;
    }
    sum_weights(b, s);
  }
  /// l of each row, in all of its lanes.
  template <class Block>
  [[gnu::always_inline]] static constexpr void sum_weights(Block& b, states& s) {
    unrolled<halves>([&](int half) {
      typename rows::of_rows l{{s[2 * half].l, s[2 * half + 1].l}};
      l = rows::over_rows(b, l, [](float x, float y) { return x + y; });
      s[2 * half].l = l.of[0];
      s[2 * half + 1].l = l.of[1];
    });
  }
  /// Waits for all products: O is there, and what they have read of weights may be written.
  template <class Block, class... Weights>
  [[gnu::always_inline]] static constexpr void settle(Block& b, states& s, Weights&... w) {
    [&]<int... r>(std::integer_sequence<int, r...>) {
      b.template wait_for_products<0>(w..., s[r].o.values...);
    }(std::make_integer_sequence<int, shape::thread_rows>{});
  }

  /// score = q k, or score + q k of a later panel. Columns past the last are zeros: a branch around them would keep loads
  /// behind products.
  template <class Block>
  [[gnu::always_inline]] constexpr void products(Block& b, int k_turn, int half, int column, scores& score) const {
    const auto x = this->rows_of(b);
    b.begin_products(score[0], score[1]);
    unrolled<panel / 16>([&](int c) {
      b.template multiply_rows<T, tile_keys / 8>(x, q_rows(), half * tile_keys, k_rows(k_turn), 2 * c,
                                                 c > 0 || (halves == 1 && column > 0), score[0], score[1]);
    });
    b.end_products();
  }

  /// Raises each row's state to the tile's maximum; scores become weights, l = l + a lane's own, and are rounded as products
  /// take them: 2^(x slope - frame), or where a frame would round by as much as weights do, exact differences first.
  template <class Block, class Keys>
  [[gnu::always_inline]] constexpr void weigh(Block& b, const Keys& tile, int half, bool is_careful, scores& score, weights& w,
                                              states& s) const {
    this->raise(b, tile, half, score, s);
    constexpr float log2_e = 0x1.715476p+0f;
    float slope = math::product(this->unit(), log2_e), frames[2];
    const auto is_near = [](float frame) { return frame < 0x1p16f && -frame < 0x1p16f; };
    bool is_far = false;
    unrolled<2>([&](int r) {
      const float m = s[2 * half + r].m;
      frames[r] = m == hidden_score ? 0 : math::product(m, log2_e);
      is_far = is_far || !is_near(frames[r]);
    });
    if (is_far) [[unlikely]] {  // each row as if it were alone
      // Only what is hidden becomes -inf: any other weight may be 0, and meets its value.
      const auto take = [](float& x, float y) { x = x == hidden_score ? x : y < -0x1p20f ? -0x1p20f : y; };
      unrolled<2>([&](int r) {
        if (is_near(frames[r])) {
          rows::each(score, r, [&](float& x, int) { take(x, math::fma(x, slope, -frames[r])); });
        } else {
          const float m = s[2 * half + r].m, base = m == hidden_score ? 0 : m;
          rows::each(score, r, [&](float& x, int) {
            const float whole = math::product(x, this->unit());
            take(x, math::product(whole == base ? 0 : whole - base, log2_e));
          });
        }
      });
      slope = 1;
      frames[0] = frames[1] = 0;
    }
    unrolled<2>([&](int r) {
      auto& of = s[2 * half + r];
      rows::each(score, r, [&](float& x, int) {
        const float seen = b.exp2(math::fma(x, slope, -frames[r]));
        of.l += seen;
        x = is_careful && x == hidden_score ? hidden_zero : seen;
      });
    });
    if constexpr (overlaps) {  // those of the other half read w
      b.template wait_for_products<0>(w, s[2 * (1 - half)].o.values, s[2 * (1 - half) + 1].o.values);
    }
    unrolled<2>([&](int r) {
      unrolled<tile_keys / 8>([&](int n) {
        w[n / 2].words[n % 2 * 2 + r] = b.template narrowed<T>(score[r][2 * n], score[r][2 * n + 1]);
      });
    });
  }

  /// O = O + weights v.
  template <class Block>
  [[gnu::always_inline]] constexpr void values(Block& b, int v_turn, int half, weights& w, states& s) const {
    const auto x = this->rows_of(b);
    auto& upper = s[2 * half];
    auto& lower = s[2 * half + 1];
    b.begin_products(w, upper.o.values, lower.o.values);
    unrolled<tile_keys / 16>([&](int k) {
      b.template multiply_columns<T, shape::columns / 8>(w[k], x, v_rows(v_turn), 16 * k, upper.o.values, lower.o.values);
    });
    b.end_products();
  }
  template <class Block, class Keys>
  constexpr void add_values_without_factors(Block& b, const Keys& tile, int half, const weights& w, states& s) const {
    constexpr int pairs = tile_keys / 2 + 1;
    const auto x = b.template shared<std::uint32_t, tile_keys * pairs>();
    const auto row = [&](int r) { return shape::row_of(b.thread(), r); };
    unrolled<2>([&](int r) {
      unrolled<tile_keys / 8>([&](int n) { x.set(row(r) * pairs + 4 * n + t_of(b.thread()), w[n / 2].words[n % 2 * 2 + r]); });
    });
    b.template group_barrier<warp_threads>();
    this->add_others(b, tile, half, [&](int r, int key) {
      const std::uint32_t pair = x.get(row(r) * pairs + key / 2);
      return regroup::widen(T::from_bits(static_cast<std::uint16_t>(pair >> key % 2 * 16)));
    }, s);
    if (halves > 1 && !overlaps) b.template group_barrier<warp_threads>();  // the other half's come to the same places
  }
};

}  // namespace regroup::cuda

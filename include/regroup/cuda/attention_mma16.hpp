// SPDX-License-Identifier: Apache-2.0
// A leaf of keys of 16 bits on tensor cores. q, two tiles of k and two of v lie in shared memory as in memory, from where
// products take them (mma_buffer); while a tile is folded the next k and v are on their way, so a tile has one barrier.
// l is the sum of the weights before they are rounded, a lane's own until the leaf is done. Two halves of rows share what is
// staged, one after the other; two blocks of a multiprocessor keep its tensor cores busy in turn.
// Level: warp and block (FlashAttention-2: Dao 2023).
#pragma once

#include <utility>

#include "regroup/cuda/attention_mma_rows.hpp"

namespace regroup::cuda {

/// How a block folds a leaf. Two halves only of what one panel of columns holds, in whole pieces of 16 bytes.
template <class T, class Rule, class Shape>
struct mma16_leaf : mma_rows<T, Rule, Shape> {
  using rows = mma_rows<T, Rule, Shape>;
  using typename rows::scores, typename rows::shape, typename rows::states;
  using rows::call, rows::tile_keys, rows::t_of;
  static constexpr int halves = shape::halves;
  static constexpr int resident_blocks = 2;
  static constexpr int panel = shape::columns;  // columns of q and k at once, and all of v's
  static constexpr int pieces = panel / 8;      // of 16 bytes
  using weights = mma_left[static_cast<std::size_t>(tile_keys / 16)];
  static_assert(block_threads % pieces == 0);

  static constexpr mma_buffer q_rows() { return {0, shape::rows}; }
  static constexpr mma_buffer k_rows(int turn) { return {(shape::rows + turn * tile_keys) * pieces, tile_keys}; }
  static constexpr mma_buffer v_rows(int turn) { return k_rows(2 + turn); }
  static constexpr int held = (shape::rows + 4 * tile_keys) * pieces;
  static constexpr std::size_t large_bytes = sizeof(mma_row) * held;

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
  /// The columns [column, column + panel) of a tile's keys, and which buffers they are in.
  struct step {
    int tile, column, k_turn, v_turn;
  };
  /// `HasPieces`: all rows are whole pieces. Values that are not finite are apart where the fold may be, and is, careful.
  template <bool HasPieces, bool MayBeCareful, class Block, class Leaf>
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
      stage_keys<HasPieces>(b, leaf, tile, k_rows(of.k_turn), call.k, call.has_k_rows, leaf.origin.k, of.column, call.d,
                            [&](int key) { return tile.places(key).k; });
      if (!is_last(of)) return;
      stage_keys<HasPieces>(b, leaf, tile, v_rows(of.v_turn), call.v, call.has_v_rows, leaf.origin.v, tile.at.first_column,
                            call.dv, [&](int key) { return tile.places(key).v; });
    };
    /// Waits for what is staged; whether all of v fits products.
    const auto arrive = [&](const step& of) {
      b.wait_for_copies();
      if (!is_careful) {
        b.barrier();
        return true;
      }
      return !b.any(is_last(of) && !clear_v(b, v_rows(of.v_turn)));
    };
    step now{leaf.first_tile(), 0, 0, 0};
    leaf.note(b, turn, now.tile);
    if (!leaf.is_dense()) b.barrier();
    if (!turn.has_queries) stage_q<HasPieces>(b, leaf, 0);
    turn.has_queries = halves > 1 || call.d <= panel;
    stage(now, 0);
    leaf.note(b, turn, now.tile + tile_keys);
    bool all_fit = arrive(now);
    scores score;
    while (now.tile < leaf.end()) {
      const step next = after(now);
      if (next.tile < leaf.end()) stage(next, next.tile == now.tile ? 1 : 0);
      const auto tile = leaf.tile(now.tile, leaf.places(b, turn, now.tile, 1));
      unrolled<halves>([&](int half) {
        products(b, now, half, score);
        b.template wait_for_products<0>(score[0], score[1]);  // and for the half's before
        if (!is_last(now)) return;
        weights weight;
        weigh(b, tile, half, is_careful, score, weight, s);
        values(b, now, half, weight, s);
        if (!is_careful || all_fit) return;
        settle(b, s);
        add_values_without_factors(b, tile, half, weight, s);
      });
      settle(b, s);
      if (is_last(now)) leaf.note(b, turn, next.tile + tile_keys);
      if (next.tile < leaf.end()) {
        if (halves == 1 && call.d > panel) {
          b.barrier();  // q is read
          stage_q<HasPieces>(b, leaf, next.column);
        }
        all_fit = arrive(next);
      }
      now = next;
    }
    unrolled<halves>([&](int half) {
      typename rows::of_rows l{{s[2 * half].l, s[2 * half + 1].l}};
      l = rows::over_rows(b, l, [](float x, float y) { return x + y; });
      s[2 * half].l = l.of[0];
      s[2 * half + 1].l = l.of[1];
    });
  }
  template <class Block>
  static constexpr void settle(Block& b, states& s) {
    [&]<int... r>(std::integer_sequence<int, r...>) {
      b.template wait_for_products<0>(s[r].o.values...);
    }(std::make_integer_sequence<int, shape::thread_rows>{});
  }

  template <class Block>
  static constexpr auto rows_of(Block& b) {
    return b.template large<mma_row, held>();
  }
  template <bool HasPieces, class Block, class Leaf>
  constexpr void stage_q(Block& b, const Leaf& leaf, int column) const {
    const auto row_at = [&](int row) {
      const row_sight s = leaf.sights(row);
      return s.head >= 0 ? call.query(leaf.at.batch, s.head, s.query) : nullptr;
    };
    stage_rows<shape::rows, HasPieces>(b, q_rows(), call.has_q_rows, call.q.strides[3], column, call.d, row_at);
  }
  template <bool HasPieces, class Block, class Leaf, class Keys, class Place>
  constexpr void stage_keys(Block& b, const Leaf& leaf, const Keys& tile, mma_buffer to, const attention_array<const T>& from,
                            bool has_pieces, index origin, int column, int width, const Place& place) const {
    if (HasPieces && leaf.is_dense()) {  // no place is looked up, or multiplied
      const int piece = b.thread() % pieces, first = b.thread() / pieces;
      const index stride = from.strides[2];
      const T* row = from.data + (origin + (tile.first + first) * stride + column + 8 * piece);
      const int keys = column + 8 * piece < width ? tile.keys : 0;
      const auto x = rows_of(b);
      unrolled<tile_keys / apart>([&](int i) {
        b.copy(x, to.place(first + i * apart, piece), row, first + i * apart < keys);
        row += apart * stride;
      });
    } else {
      const auto row_at = [&](int key) { return key < tile.keys ? from.data + place(key) : nullptr; };
      stage_rows<tile_keys, HasPieces>(b, to, has_pieces, from.strides[3], column, width, row_at);
    }
  }
  /// The columns [column, column + panel) of some rows, 0 past `width` and where `row_at` has none. Each thread has one
  /// piece of every so many rows.
  static constexpr int apart = block_threads / pieces;
  template <int Rows, bool HasPieces, class Block, class RowAt>
  constexpr void stage_rows(Block& b, mma_buffer to, bool has_pieces, index stride, int column, int width,
                            const RowAt& row_at) const {
    const auto x = rows_of(b);
    const int piece = b.thread() % pieces, first = b.thread() / pieces;
    column += 8 * piece;
    if (HasPieces || has_pieces) {
      unrolled<Rows / apart / 4>([&](int four) {
        const T* of[4];
        unrolled<4>([&](int i) { of[i] = row_at(first + (4 * four + i) * apart); });  // first: no load moves over a copy
        unrolled<4>([&](int i) {
          const bool is_there = of[i] != nullptr && column < width;
          b.copy(x, to.place(first + (4 * four + i) * apart, piece), is_there ? of[i] + column : nullptr, is_there);
        });
      });
    } else {
      for (int i = first; i < Rows; i += apart) {
        mma_row row{};
        const T* of = row_at(i);
        const int left = of != nullptr ? width - column : 0;
        if (left > 0) of += column * stride;
        unrolled<8>([&](int j) {
          if (j < left) row.words[j / 2] |= static_cast<std::uint32_t>(of[j * stride].bits) << j % 2 * 16;
        });
        x.set(to.place(i, piece), row);
      }
    }
  }
  /// Whether all is finite of v that the thread has staged; what is not, and would be so times 0 too, becomes 0.
  template <class Block>
  constexpr bool clear_v(Block& b, mma_buffer of) const {
    const auto x = rows_of(b);
    bool fits = true;
    for (int key = b.thread() / pieces; key < tile_keys; key += block_threads / pieces) {
      const int at = of.place(key, b.thread() % pieces);
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

  /// score = q k, or score + q k of a later panel. Columns past the last are zeros: a branch around them would keep loads
  /// behind products.
  template <class Block>
  constexpr void products(Block& b, const step& now, int half, scores& score) const {
    const auto x = rows_of(b);
    b.begin_products(score[0], score[1]);
    unrolled<panel / 16>([&](int c) {
      b.template multiply_rows<T, tile_keys / 8>(x, q_rows(), half * tile_keys, k_rows(now.k_turn), 2 * c,
                                                 c > 0 || (halves == 1 && now.column > 0), score[0], score[1]);
    });
    b.end_products();
  }

  /// Raises each row's state to the tile's maximum; scores become weights, l = l + a lane's own, and are rounded as products
  /// take them: 2^(x slope - frame), or where a frame would round by as much as weights do, exact differences first.
  template <class Block, class Keys>
  constexpr void weigh(Block& b, const Keys& tile, int half, bool is_careful, scores& score, weights& w, states& s) const {
    this->raise(b, tile, half, score, s);
    constexpr float log2_e = 0x1.715476p+0f;
    float slope = math::product(this->unit(), log2_e), frames[2];
    bool is_far = false;
    unrolled<2>([&](int r) {
      const float m = s[2 * half + r].m;
      frames[r] = m == hidden_score ? 0 : math::product(m, log2_e);
      is_far = is_far || !(frames[r] < 0x1p16f && -frames[r] < 0x1p16f);
    });
    if (is_far) [[unlikely]] {
      slope = log2_e;
      unrolled<2>([&](int r) {
        const float m = s[2 * half + r].m, base = m == hidden_score ? 0 : m;
        frames[r] = 0;
        rows::each(score, r, [&](float& x, int) {
          x = math::product(x, this->unit());
          x = x == base ? 0 : x - base;
        });
      });
    }
    unrolled<2>([&](int r) {
      auto& of = s[2 * half + r];
      rows::each(score, r, [&](float& x, int) {
        const float seen = b.exp2(math::fma(x, slope, -frames[r]));
        of.l += seen;
        x = is_careful && x == hidden_score ? hidden_zero : seen;
      });
      unrolled<tile_keys / 8>([&](int n) {
        w[n / 2].words[n % 2 * 2 + r] = b.template narrowed<T>(score[r][2 * n], score[r][2 * n + 1]);
      });
    });
  }

  /// O = O + weights v.
  template <class Block>
  constexpr void values(Block& b, const step& now, int half, weights& w, states& s) const {
    const auto x = rows_of(b);
    auto& upper = s[2 * half];
    auto& lower = s[2 * half + 1];
    b.begin_products(w, upper.o.values, lower.o.values);
    unrolled<tile_keys / 16>([&](int k) {
      b.template multiply_columns<T, shape::columns / 8>(w[k], x, v_rows(now.v_turn), 16 * k, upper.o.values, lower.o.values);
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
      return widen(T::from_bits(static_cast<std::uint16_t>(pair >> key % 2 * 16)));
    }, s);
    if (halves > 1) b.template group_barrier<warp_threads>();  // the other half's come to the same places
  }
};

}  // namespace regroup::cuda

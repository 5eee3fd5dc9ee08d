// SPDX-License-Identifier: Apache-2.0
// What a leaf of 16 bits keeps in shared memory: q, two tiles of k and two of v, laid out as in memory, from where products
// read them (mma_buffer). A thread copies a piece of 16 bytes of every n-th row. Level: block.
#pragma once

#include "regroup/cuda/attention_mma_rows.hpp"

namespace regroup::cuda {

template <class T, class Rule, class Shape>
struct mma16_buffers : mma_rows<T, Rule, Shape> {
  using rows = mma_rows<T, Rule, Shape>;
  using typename rows::shape;
  using rows::call, rows::tile_keys;
  static constexpr int panel = shape::columns;  // columns of q and k at once, and all of v's
  static constexpr int pieces = panel / 8;      // of 16 bytes
  static_assert(block_threads % pieces == 0);

  static constexpr mma_buffer q_rows() { return {0, shape::rows}; }
  static constexpr mma_buffer k_rows(int turn) { return {(shape::rows + turn * tile_keys) * pieces, tile_keys}; }
  static constexpr mma_buffer v_rows(int turn) { return k_rows(2 + turn); }
  static constexpr int held = (shape::rows + 4 * tile_keys) * pieces;

 protected:
  static constexpr int apart = block_threads / pieces;  // a thread's rows

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
  /// The columns [column, column + panel) of a tile's k, or all of its v, on their way to a buffer.
  template <bool HasPieces, class Block, class Leaf, class Keys>
  constexpr void stage_k(Block& b, const Leaf& leaf, const Keys& tile, int turn, int column) const {
    stage_keys<HasPieces>(b, leaf, tile, k_rows(turn), call.k, call.has_k_rows, leaf.origin.k, column, call.d,
                          [&](int key) { return tile.places(key).k; });
  }
  template <bool HasPieces, class Block, class Leaf, class Keys>
  constexpr void stage_v(Block& b, const Leaf& leaf, const Keys& tile, int turn) const {
    stage_keys<HasPieces>(b, leaf, tile, v_rows(turn), call.v, call.has_v_rows, leaf.origin.v, tile.at.first_column, call.dv,
                          [&](int key) { return tile.places(key).v; });
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
  /// The columns [column, column + panel) of some rows, 0 past `width` and where `row_at` has none.
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
    for (int key = b.thread() / pieces; key < tile_keys; key += apart) {
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
};

}  // namespace regroup::cuda

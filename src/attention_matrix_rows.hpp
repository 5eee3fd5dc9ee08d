// SPDX-License-Identifier: Apache-2.0
// Up to 16 queries by AMX's matrices, as in decoding: queries are the rows of O and of the weights, O += P V. Where a tile has
// all 64 keys, K's rows are used as matrices where they lie; V's rows are put in pairs just before their products. Memory sets
// the pace, so a tile prefetches the rows that come next: its scores the values of keys 16 to 31, its weights the values of
// the later keys and the next tile's first 16 keys, its values the next tile's other keys and first 16 values.
// Local to src/attention_tile_v4_amx.cpp. Level: block.
#pragma once

#include <algorithm>

#include "attention_matrix_packing.hpp"

namespace regroup::tiles {
namespace {

/// A barrier for the compiler. Without it, compilers drop or move stores that precede the instructions that load matrices.
inline void written() { asm volatile("" ::: "memory"); }

/// The keys that some query of the block may see, widened to whole steps of 32.
struct span_of_keys {
  index first, last;
  explicit span_of_keys(const tile<T>& t) {
    first = t.group_first[0];
    last = t.group_last[0];
    if (t.queries > group_lanes && t.group_first[1] < t.group_last[1]) {
      first = first < last ? std::min<index>(first, t.group_first[1]) : t.group_first[1];
      last = std::max<index>(last, t.group_last[1]);
    }
    first = first / keys_at_once * keys_at_once;
    last = (last + keys_at_once - 1) / keys_at_once * keys_at_once;
  }
  [[nodiscard]] bool empty() const { return first >= last; }
};

/// The rows [first, last) of a tile to be prefetched; none if there is no tile.
inline rows_ahead<T>::rows part_of(const T* const* rows, index first, index last, index width) {
  if (rows == nullptr) return {};
  return {rows + first, last - first, width};
}

/// Scores of 64 keys whose rows can be loaded as matrices where they lie.
inline void score_rows(const tile<T>& t) {
  const index steps = steps_of(t.d), step = t.k_step * index{sizeof(T)};
  rows_ahead<T> values(part_of(t.v, side, 2 * side, t.dv));
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (index s = 0; s < steps; ++s) {
    _tile_loadd(6, t.q + s * side * side, 64);
    _tile_stream_loadd(4, t.k[0] + s * 32, step);
    _tile_dpbf16ps(0, 4, 6);
    values.fetch_row();
    _tile_stream_loadd(5, t.k[side] + s * 32, step);
    _tile_dpbf16ps(1, 5, 6);
    values.fetch_row();
    _tile_stream_loadd(4, t.k[2 * side] + s * 32, step);
    _tile_dpbf16ps(2, 4, 6);
    values.fetch_row();
    _tile_stream_loadd(5, t.k[3 * side] + s * 32, step);
    _tile_dpbf16ps(3, 5, 6);
    values.fetch_row();
  }
  _tile_stored(0, t.s, 64);
  _tile_stored(1, t.s + side * side, 64);
  _tile_stored(2, t.s + 2 * side * side, 64);
  _tile_stored(3, t.s + 3 * side * side, 64);
  written();
}

/// Multiplies 16 rows of O by their factors.
inline void correct_rows(float* o, index dv, const float* factor) {
  const index width = whole(dv, 32);
  for (index row = 0; row < side; ++row) {
    if (factor[row] == 1) continue;
    for (float* at = o + row * width; at < o + (row + 1) * width; at += side) {
      Pack::product(Pack::load(at), Pack::all(factor[row])).store(at);
    }
  }
}

/// o = o factor + p v.
inline void add_rows_of_values(const tile<T>& t) {
  const span_of_keys keys(t);
  if (keys.empty() || t.dv == 0) return;
  if (t.grows[0]) correct_rows(t.o, t.dv, t.factor);
  const index width = whole(t.dv, 32), step = width * index{sizeof(float)};
  const index first = keys.first / keys_at_once;
  const bool has_two = keys.last - keys.first > keys_at_once;
  rows_ahead<T> next(part_of(t.next_k, side, tile_keys, t.d), part_of(t.next_v, 0, side, t.dv));
  const index rows = tile_keys * 32 / width + 1;  // prefetched with each 32 columns
  const auto pack = [&](index c) {                // into one of two places
    auto* const to = reinterpret_cast<float*>(t.v_tiles) + c / 32 % 2 * 4 * side * side;
    pack_rows_of_values(t, c, to, next, rows);
    return to + first * 2 * side * side;
  };
  const float* v = pack(0);
  written();
  _tile_loadd(4, t.pairs + first * side * side, 64);
  if (has_two) _tile_loadd(5, t.pairs + side * side, 64);
  for (index c = 0; c < width; c += 32) {
    const float* const now = v;
    if (c + 32 < width) v = pack(c + 32);
    written();
    float* const o = t.o + c;
    _tile_loadd(0, o, step);
    _tile_loadd(6, now, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(1, o + side, step);
    _tile_loadd(7, now + side * side, 64);
    _tile_dpbf16ps(1, 4, 7);
    if (has_two) {
      _tile_loadd(6, now + 2 * side * side, 64);
      _tile_dpbf16ps(0, 5, 6);
      _tile_loadd(7, now + 3 * side * side, 64);
      _tile_dpbf16ps(1, 5, 7);
    }
    _tile_stored(0, o, step);
    _tile_stored(1, o + side, step);
  }
  written();
}

/// Transposes weights, 32 keys at a time: from pairs of keys with a query in each lane to one row for each query.
inline void transpose_weights(const tile<T>& t, const span_of_keys& keys) {
  for (index j = keys.first / 2; j < keys.last / 2; j += side) {
    packs<Pack, side> x;
    unrolled<side>([&](int i) { x[i] = Pack::load(t.pairs + (j + i) * side); });
    transpose(x);
    unrolled<side>([&](int i) { x[i].store(t.pairs + (j + i) * side); });
  }
}

/// Puts the columns of O's rows, which are in the order of pair_of_rows, into their own order.
inline void put_columns_right(float* o, index dv) {
  const Pack::integers first = {0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23};
  for (float* at = o; at < o + side * whole(dv, 32); at += 2 * side) {
    const __m512 low = __m512(Pack::load(at).x), high = __m512(Pack::load(at + side).x);
    Pack{Pack::vector(_mm512_maskz_permutex2var_ps(0xffff, low, __m512i(first), high))}.store(at);
    Pack{Pack::vector(_mm512_maskz_permutex2var_ps(0xffff, low, __m512i(first + 8), high))}.store(at + side);
  }
}

}  // namespace
}  // namespace regroup::tiles

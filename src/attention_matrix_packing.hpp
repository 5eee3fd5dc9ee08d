// SPDX-License-Identifier: Apache-2.0
// K and V of one tile as AMX's matrices: 16 rows of 64 bytes each, stored in the order in which the kernels read them.
// Local to src/attention_tile_v4_amx.cpp. Level: block.
#pragma once

#include <algorithm>

#include "attention_tile.hpp"
#include "packs.hpp"
#include "regroup/memory.hpp"
#include "rows_ahead.hpp"

namespace regroup::tiles {
namespace {

using Pack = pack<float, 64>;
using T = bfloat16;

constexpr index side = 16;           // rows of a matrix, and words of 32 bits in each
constexpr index matrix = side * 32;  // numbers in a matrix
constexpr index keys_at_once = 32;

inline index steps_of(index n) { return (n + 31) / 32; }

inline __m512i zero() { return __m512i(Pack::integers{}); }
/// The first `count` numbers of 32, then zeros; reads no more.
inline __m512i load_row(const T* from, index count) {
  if (count >= 32) return _mm512_maskz_loadu_epi16(~0u, from);
  return _mm512_maskz_loadu_epi16((1u << count) - 1, from);
}

/// Prefetches row `i` of the next tile's keys and values, if that tile is to be packed. Packing this tile's keys and values
/// each prefetch part of the rows.
[[gnu::always_inline]] inline void fetch(const tile<T>& t, index i) {
  if (t.next_k == nullptr) return;
  fetch_lines<1, 1>(t.next_k[i], static_cast<std::size_t>(t.d) * sizeof(T));
  fetch_lines<1, 1>(t.next_v[i], static_cast<std::size_t>(t.dv) * sizeof(T));
}

/// K as matrices of 16 keys and 32 columns, in the order (pairs of 16 keys, columns / 32, 2).
inline void pack_keys(const tile<T>& t) {
  const index steps = steps_of(t.d);
  for (index j = 0; j < tile_keys; ++j) {
    if (j % 4 == 0) fetch(t, j / 4);
    T* const to = t.k_tiles + (j / 32 * steps * 2 + j / 16 % 2) * matrix + j % 16 * 32;
    for (index s = 0; s < steps; ++s) {
      _mm512_store_si512(to + s * 2 * matrix, load_row(t.k[j] + s * 32, t.d - s * 32));
    }
  }
}

/// 32 columns of two keys, interleaved in pairs: half<0> has columns 0 to 3 of every 8, half<1> columns 4 to 7. Zeros where
/// there are no keys or columns.
struct pair_of_rows {
  __m512i even, odd;
  pair_of_rows(const T* const* rows, index j, index n, index column, index count)
      : even(j < n ? load_row(rows[j] + column, count) : zero()),
        odd(j + 1 < n ? load_row(rows[j + 1] + column, count) : zero()) {}
  template <int Half>
  [[nodiscard]] Pack half() const {
    return {reinterpret_cast<Pack::vector>(Half == 0 ? _mm512_maskz_unpacklo_epi16(~0u, even, odd)
                                                     : _mm512_maskz_unpackhi_epi16(~0u, even, odd))};
  }
};

/// 32 columns of 64 values from `column` on, as matrices of 32 keys (in pairs) by 16 columns, in the order (32 keys, half).
inline void pack_rows_of_values(const tile<T>& t, index column, float* to, rows_ahead<T>& ahead, index rows_to_fetch) {
  const T* const* const v = t.v;
  const index n = t.n, dv = t.dv;
  for (index j = 0; j < tile_keys; j += 2, to += j % 32 == 0 ? side * side + side : side) {
    if ((j + 2) * rows_to_fetch / tile_keys > j * rows_to_fetch / tile_keys) ahead.fetch_row();
    const pair_of_rows rows(v, j, n, column, dv - column);
    rows.half<0>().store(to);
    rows.half<1>().store(to + side * side);
  }
}

/// V as matrices of 16 columns and 32 keys, in the order (pairs of 16 columns, 32 keys, 2).
inline void pack_values(const tile<T>& t) {
  for (index step = 0; step < tile_keys / 32; ++step) {
    for (index i = 0; i < 8; ++i) fetch(t, 16 + step * 8 + i);
    for (index c = 0; c < t.dv; c += 32) {
      auto* const to = reinterpret_cast<float*>(t.v_tiles + (c / 32 * 2 + step) * 2 * matrix);
      unrolled<2>([&]<int Half>(std::integral_constant<int, Half>) {
        packs<Pack, side> x;
        unrolled<side>([&](int i) { x[i] = pair_of_rows(t.v, step * 32 + 2 * i, t.n, c, t.dv - c).half<Half>(); });
        transpose(x);
        unrolled<side>([&](int i) { x[i].store(to + (i / 4 * 8 + i % 4 + Half * 4) * side); });
      });
    }
  }
}

}  // namespace
}  // namespace regroup::tiles

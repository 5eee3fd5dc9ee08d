// SPDX-License-Identifier: Apache-2.0
// Rows of Q, K and V of one tile in fixed point: 16-bit integers, two in a word, and a scale for each row. Local to
// src/attention_tile_v4_vnni.cpp. Level: block.
#pragma once

#include <algorithm>
#include <limits>

#include "attention_tile.hpp"
#include "packs.hpp"
#include "regroup/memory.hpp"

namespace regroup::tiles {
namespace {

using Pack = pack<float, 64>;
using words = Pack::integers;
constexpr index width = Pack::width;

/// Limits of the integers. A row is scaled to a norm of 32,766, or a little more after rounding, so that no sum of products of
/// two rows exceeds 32 bits (Cauchy-Schwarz). Values are at most 16,383. The weights of a tile are at most 32,766 each and
/// 131,000 together.
constexpr float most_norm = 32766, most_value = 16383, most_weight = 32766, most_weights = 131000;
/// Outside these sizes a row's squares, or its products with weights, may not fit a float.
constexpr float least_size = 0x1p-45f, most_size = 0x1p+45f;

inline words rounded(const Pack& x) { return words(_mm512_maskz_cvtps_epi32(0xffff, __m512(x.x))); }

/// The numbers from c on of a row of n, then zeros.
template <class T>
[[gnu::always_inline]] inline Pack load_from(const T* row, index c, index n) {
  return n - c >= width ? Pack::load(row + c) : Pack::load_some(row + c, n - c);
}

/// Scales of 16 rows: the factors from numbers to integers and back. A row without a scale has 0 and NaN, and its bit in
/// `none`; a row of zeros has 0 and 0.
struct row_scales {
  Pack of_numbers, of_integers;
  std::uint64_t none;
};

/// The scales that turn each row's size into `most`. `is_zero(i)` says whether row i is all zeros.
template <class IsZero>
[[gnu::always_inline]] inline row_scales scales_of(const Pack& size, float most, const IsZero& is_zero) {
  const Pack top = Pack::all(most), none = Pack::all(std::numeric_limits<float>::quiet_NaN());
  const auto fits = (size.x >= Pack::all(least_size).x) & (size.x <= Pack::all(most_size).x);
  row_scales all = {{fits ? top.x / size.x : Pack::vector{}}, {fits ? size.x / top.x : none.x}, 0};
  for (index i = 0; i < width && Pack::any(~fits); ++i) {
    if (fits[i]) continue;
    if (is_zero(i)) {
      all.of_integers.x[i] = 0;
    } else {
      all.none |= std::uint64_t{1} << i;
    }
  }
  return all;
}

/// The Euclidean norms of 16 rows of n.
template <class T>
[[gnu::always_inline]] inline Pack norms_of(const T* const* rows, index n) {
  packs<Pack, width> squares;
  for (index i = 0; i < width; ++i) {
    Pack sum = {};
    for (index c = 0; c < n; c += width) {
      const Pack x = load_from(rows[i], c, n);
      sum = Pack::fma(x, x, sum);
    }
    squares[i] = sum;
  }
  transpose(squares);
  unrolled<8>([&](int i) { squares[i].x += squares[i + 8].x; });
  unrolled<4>([&](int i) { squares[i].x += squares[i + 4].x; });
  unrolled<2>([&](int i) { squares[i].x += squares[i + 2].x; });
  squares[0].x += squares[1].x;
  return {Pack::vector(_mm512_maskz_sqrt_ps(0xffff, __m512(squares[0].x)))};
}

/// The largest magnitudes of 16 rows, compared as integers by their bits, so that NaN counts as more than infinity.
template <class T>
[[gnu::always_inline]] inline Pack largest_of(const T* const* rows, index n) {
  packs<Pack, width> tops;
  const auto larger = [](const words& a, const words& b) {
    return words(_mm512_maskz_max_epi32(0xffff, __m512i(a), __m512i(b)));
  };
  for (index i = 0; i < width; ++i) {
    words top = {};
    for (index c = 0; c < n; c += 2 * width) {
      const auto mask = n - c >= 2 * width ? ~0u : (1u << (n - c)) - 1;
      const auto x = words(_mm512_maskz_loadu_epi16(mask, rows[i] + c)) & 0x7fff7fff;
      top = larger(top, larger(x & 0xffff, x >> 16));
    }
    tops[i].x = reinterpret_cast<Pack::vector>(top);
  }
  transpose(tops);
  words top = {};
  unrolled<width>([&](int i) { top = larger(top, reinterpret_cast<words>(tops[i].x)); });
  return Pack::part<T, 0>({reinterpret_cast<Pack::vector>(top)});
}

template <class T>
bool is_zero(const T* row, index n) {
  return std::all_of(row, row + n, [](T x) { return regroup::widen(x) == 0; });
}

/// 16 numbers of a row from c on, times the row's scale, rounded.
template <class T>
[[gnu::always_inline]] inline words round_from(const T* row, index c, index n, float scale) {
  return rounded(Pack::product(load_from(row, c, n), Pack::all(scale)));
}
/// 32 such numbers, two in a word.
template <class T>
[[gnu::always_inline]] inline Pack pairs_from(const T* row, index c, index n, float scale) {
  const auto narrow = [&](index from) {
    return from < n ? _mm512_maskz_cvtepi32_epi16(0xffff, __m512i(round_from(row, from, n, scale))) : __m256i{};
  };
  return {
      reinterpret_cast<Pack::vector>(__builtin_shufflevector(narrow(c), narrow(c + width), 0, 1, 2, 3, 4, 5, 6, 7))};
}

/// 16 rows of n numbers as words of two, (n / 2, 16); their scales.
template <class T>
[[gnu::always_inline]] inline row_scales round_rows(const T* const* rows, index n, std::int32_t* to) {
  const row_scales scales = scales_of(norms_of(rows, n), most_norm, [&](index i) { return is_zero(rows[i], n); });
  const index steps = (n + 1) / 2;
  for (index step = 0; step < steps; step += width) {
    packs<Pack, width> x;
    unrolled<width>([&](int i) { x[i] = pairs_from(rows[i], 2 * step, n, scales.of_numbers.x[i]); });
    transpose(x);
    const index count = std::min(steps - step, width);
    for (index i = 0; i < count; ++i) x[i].store(reinterpret_cast<float*>(to) + (step + i) * width);
  }
  return scales;
}

template <class T>
[[gnu::flatten]] void round_queries(const T* const* rows, index d, std::int32_t* to, float* scale) {
  round_rows(rows, d, to).of_integers.store(scale);
}

/// How many of the 16 keys from j on exist.
template <class T>
std::uint64_t present(const integer_tile<T>& t, index j, std::uint64_t keys) {
  const index count = std::clamp<index>(t.n - j, 0, width);
  return (keys & ((1u << count) - 1)) << j;
}

template <class T>
[[gnu::flatten]] rows_without_scale pack_rows(const integer_tile<T>& t) {
  rows_without_scale without = {0, 0};
  const index steps = (t.d + 1) / 2;
  for (index j = 0; j < whole(t.n, width); j += width) {
    for (index i = j; t.next_k != nullptr && i < j + width; ++i) {
      fetch_lines<1>(t.next_k[i], static_cast<std::size_t>(t.d) * sizeof(T));
      fetch_lines<1>(t.next_v[i], static_cast<std::size_t>(t.dv) * sizeof(T));
    }
    const row_scales of_keys = round_rows(t.k + j, t.d, t.k_pairs + j * steps);
    of_keys.of_integers.store(t.k_scale + j);
    without.keys |= present(t, j, of_keys.none);
    row_scales of_values =
        scales_of(largest_of(t.v + j, t.dv), most_value, [&](index i) { return is_zero(t.v[j + i], t.dv); });
    without.values |= present(t, j, of_values.none);
    for (index i = 0; i < width; ++i) {
      const bool is_there = j + i < t.n && (of_values.none >> i & 1) == 0;
      t.v_scale[j + i] = is_there ? of_values.of_integers.x[i] : 0;
      if (!is_there) of_values.of_numbers.x[i] = 0;
    }
    for (index i = 0; i < width; i += 2) {
      for (index c = 0; c < t.dv; c += width) {
        const words even = round_from(t.v[j + i], c, t.dv, of_values.of_numbers.x[i]);
        const words odd = round_from(t.v[j + i + 1], c, t.dv, of_values.of_numbers.x[i + 1]);
        const words pair = (even & 0xffff) | odd << 16;
        std::memcpy(t.v_pairs + c * tile_keys / 2 + (j + i) / 2 * width, &pair, sizeof pair);
      }
    }
  }
  return without;
}

}  // namespace
}  // namespace regroup::tiles

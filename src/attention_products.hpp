// SPDX-License-Identifier: Apache-2.0
// What a step of attention's chains multiplies: one product of numbers of the accumulator's type, or two of bfloat16 at
// once where the processor has an instruction for it. In the latter case the bits of one float hold a pair of 16-bit numbers:
// in q, in the weights (rounded to bfloat16 before they are summed), and in the values of two keys. Local to each instruction
// set's file. Level: lane.
#pragma once

#include "attention_tile.hpp"
#include "packs.hpp"

namespace regroup::tiles {
namespace {

/// One product a step, as an fma; elements of type E are widened.
template <class P, class E>
struct single_products {
  using Pack = P;
  using T = E;
  using Real = typename Pack::Real;
  static constexpr int at_once = 1;

  static Pack add(const Pack& sum, const Pack& a, const Pack& b) { return Pack::fma(a, b, sum); }
  /// One number (or pair) in every lane: `all` reads a row in memory; `all_of` reads q, the weights or `value_rows`.
  static Pack all(const T* x) { return Pack::all(*x); }
  static Pack all_of(const Real* x) { return Pack::all(*x); }
  /// Consecutive words of a row, one a lane. A word has `parts` parts, one for each step: one number, or two of 16 bits.
  static constexpr int parts = sizeof(Real) / sizeof(T);
  static Pack load_words(const T* from) { return Pack::load_words(from); }
  static Pack load_words_some(const T* from, index count) { return Pack::load_words_some(from, count); }
  template <int Part>
  static Pack part(const Pack& words) {
    return Pack::template part<T, Part>(words);
  }
  /// Consecutive columns of at_once rows, one a lane.
  static Pack load_rows(const T* const* rows, index column) { return Pack::load(rows[0] + column); }
  static Pack load_rows_some(const T* const* rows, index column, index count) {
    return Pack::load_some(rows[0] + column, count);
  }
  static Pack score(const Pack& sum, const tile<T>&) { return sum; }
  /// Stores the weights of consecutive keys for several queries, and adds them to l.
  template <int Keys>
  static void keep(const packs<Pack, Keys>& w, Real* s, index step, Pack& l) {
    unrolled<Keys>([&](int i) {
      w[i].store(s + i * step);
      l.x += w[i].x;
    });
  }
  /// The same for Q queries at once, whose chains run side by side.
  template <int Q>
  static void keep(const Real* s, index keys, Real* l) {
    Real sum[static_cast<std::size_t>(Q)];
    unrolled<Q>([&](int q) { sum[q] = l[q]; });
    for (index j = 0; j < keys; ++j) unrolled<Q>([&](int q) { sum[q] += s[q * tile_keys + j]; });
    unrolled<Q>([&](int q) { l[q] = sum[q]; });
  }
  static const Real* const* value_rows(const tile<T>& t, const Real**) { return t.v; }
};

#ifdef __AVX512BF16__
/// Two products of bfloat16 a step, rounded as vdpbf16ps does, which takes denormals as 0.
struct pair_products {
  using Pack = pack<float, 64>;
  using T = bfloat16;
  using Real = float;
  static constexpr int at_once = 2;

  static Pack add(const Pack& sum, const Pack& a, const Pack& b) {
    return {reinterpret_cast<Pack::vector>(
        _mm512_dpbf16_ps(__m512(sum.x), reinterpret_cast<__m512bh>(a.x), reinterpret_cast<__m512bh>(b.x)))};
  }
  static Pack all(const T* x) {
    std::int32_t pair;
    std::memcpy(&pair, x, sizeof pair);
    return of_bits(pair - Pack::integers{});
  }
  static Pack all_of(const Real* x) {
    std::int32_t pair;
    std::memcpy(&pair, x, sizeof pair);
    return of_bits(pair - Pack::integers{});
  }
  static constexpr int parts = 1;
  static Pack load_words(const T* from) { return Pack::load_words(from); }
  static Pack load_words_some(const T* from, index count) { return Pack::load_words_some(from, count); }
  template <int>
  static Pack part(const Pack& words) {
    return words;
  }
  static Pack load_rows(const T* const* rows, index column) { return load_rows_some(rows, column, Pack::width); }
  static Pack load_rows_some(const T* const* rows, index column, index count) {
    const auto mask = static_cast<__mmask16>((1u << count) - 1);
    const auto even =
        Pack::integers(_mm512_maskz_cvtepu16_epi32(0xffff, _mm256_maskz_loadu_epi16(mask, rows[0] + column)));
    const auto odd =
        Pack::integers(_mm512_maskz_cvtepu16_epi32(0xffff, _mm256_maskz_loadu_epi16(mask, rows[1] + column)));
    return of_bits(even | odd << 16);
  }
  static Pack score(const Pack& sum, const tile<T>& t) { return Pack::product(sum, Pack::all(t.scale)); }
  template <int Keys>
  static void keep(const packs<Pack, Keys>& w, Real* s, index step, Pack& l) {
    unrolled<Keys / 2>([&](int i) {
      const Pack pairs =
          of_bits(Pack::integers(_mm512_maskz_permutexvar_epi16(~0u, interleaving(), narrow(w[2 * i], w[2 * i + 1]))));
      pairs.store(s + 2 * i * step);
      l = add(l, pairs, ones());
    });
  }
  template <int Q>
  static void keep(Real* s, index keys, Real* l) {
    packs<Pack, Q> sum;
    unrolled<Q>([&](int q) {
      Real* const x = s + q * tile_keys;
      for (index j = 0; j < keys; j += 2 * Pack::width) {
        of_bits(Pack::integers(narrow(Pack::load(x + j), Pack::load(x + j + Pack::width)))).store(x + j / 2);
      }
      sum[q] = Pack::all(l[q]);
    });
    for (index j = 0; j < keys; j += 2) {
      unrolled<Q>([&](int q) { sum[q] = add(sum[q], all_of(s + q * tile_keys + j / 2), ones()); });
    }
    unrolled<Q>([&](int q) { l[q] = sum[q].x[0]; });
  }
  /// Writes rows of pairs, (keys / 2, dv), into the tile's scratch.
  static const Real* const* value_rows(const tile<T>& t, const Real** rows) {
    for (index j = 0; j < t.n; j += 2) {
      Real* const to = t.pairs + j / 2 * t.dv;
      rows[j / 2] = to;
      index c = 0;
      for (; c + Pack::width <= t.dv; c += Pack::width) load_rows(t.v + j, c).store(to + c);
      if (c < t.dv) load_rows_some(t.v + j, c, t.dv - c).store_some(to + c, t.dv - c);
    }
    return rows;
  }

 private:
  static Pack of_bits(const Pack::integers& bits) { return {reinterpret_cast<Pack::vector>(bits)}; }
  static Pack ones() { return of_bits(0x3f803f80 - Pack::integers{}); }
  /// bfloat16(a), then bfloat16(b).
  static __m512i narrow(const Pack& a, const Pack& b) {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(__m512(b.x), __m512(a.x)));
  }
  /// 0, 16, 1, 17, ...
  static __m512i interleaving() {
    Pack::integers places;
    for (int i = 0; i < Pack::width; ++i) places[i] = i | (i + Pack::width) << 16;
    return __m512i(places);
  }
};
#endif

}  // namespace
}  // namespace regroup::tiles

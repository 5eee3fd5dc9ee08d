// SPDX-License-Identifier: Apache-2.0
// Lanes in one register: what attention's kernels are written with. Included by one file for each instruction set, to
// which everything here is local. Level: lane.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "regroup/float16.hpp"
#include "regroup/math.hpp"
#include "shuffles.hpp"

namespace regroup::tiles {
namespace {

template <class R, int Bytes>
struct pack {
  using Real = R;
  using word = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;
  typedef Real vector __attribute__((vector_size(Bytes)));    // NOLINT: aliases cannot carry it in a template
  typedef word integers __attribute__((vector_size(Bytes)));  // NOLINT
  typedef std::make_unsigned_t<word> bits __attribute__((vector_size(Bytes)));  // NOLINT
  static constexpr int width = Bytes / static_cast<int>(sizeof(Real));
  static constexpr bool is_float = sizeof(Real) == 4;
  vector x;

  static pack load(const Real* from) {
    pack p;
    std::memcpy(&p.x, from, Bytes);
    return p;
  }
  /// 16-bit floats, widened.
  template <class T>
  static pack load(const T* from) {
#ifdef __AVX512F__
    if constexpr (Bytes == 64) return widened<T>(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#endif
#ifdef __AVX2__
    if constexpr (Bytes == 32) return widened<T>(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#endif
    return load_each(from, width);
  }
  /// The first `count` elements, then zeros; reads no more.
  template <class T>
  static pack load_some(const T* from, std::int64_t count) {
#ifdef __AVX512F__
    const auto mask = (1u << count) - 1;
    if constexpr (Bytes == 64 && std::is_same_v<T, float>) {
      return {reinterpret_cast<vector>(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from))};
    } else if constexpr (Bytes == 64 && std::is_same_v<T, double>) {
      return {reinterpret_cast<vector>(_mm512_maskz_loadu_pd(static_cast<__mmask8>(mask), from))};
    } else if constexpr (Bytes == 64) {
      return widened<T>(_mm256_maskz_loadu_epi16(static_cast<__mmask16>(mask), from));
    }
#endif
    return load_each(from, count);
  }
  /// What lies there, unchanged: numbers, or pairs of 16-bit floats; the first `count` elements, then zeros.
  template <class T>
  static pack load_words(const T* from) {
    pack p;
    std::memcpy(&p.x, from, Bytes);
    return p;
  }
  template <class T>
  static pack load_words_some(const T* from, std::int64_t count) {
    pack p = {};
    std::memcpy(&p.x, from, static_cast<std::size_t>(count) * sizeof(T));
    return p;
  }
  /// The first or second number of every word, widened.
  template <class T, int Part>
  static pack part(const pack& words) {
    if constexpr (sizeof(T) == sizeof(Real)) {
      return words;
    } else if constexpr (std::is_same_v<T, bfloat16>) {
      const auto bits = reinterpret_cast<integers>(words.x);
      return {reinterpret_cast<vector>(Part == 0 ? bits << 16 : bits & ~0xffff)};
    } else {
      const auto bits = reinterpret_cast<typename pack::bits>(words.x) >> 16 * Part;
#ifdef __AVX512F__
      if constexpr (Bytes == 64) return widened<T>(_mm512_maskz_cvtepi32_epi16(0xffff, __m512i(bits)));
#endif
#ifdef __AVX2__
      if constexpr (Bytes == 32) {
        const auto words = __m256i(bits & 0xffff);  // packing saturates what is wider
        return widened<T>(_mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
      }
#endif
      pack p;
      for (int i = 0; i < width; ++i) p.x[i] = T::from_bits(static_cast<std::uint16_t>(bits[i]));
      return p;
    }
  }
  void store(Real* to) const { std::memcpy(to, &x, Bytes); }
  void store_some(Real* to, std::int64_t count) const {
    for (int i = 0; i < count; ++i) to[i] = x[i];
  }
  static pack all(Real value) { return {value - vector{}}; }  // x - 0 is x, -0 too: a broadcast

  static pack fma(const pack& a, const pack& b, const pack& c) {
#ifdef __AVX512F__
    if constexpr (Bytes == 64 && is_float) return {reinterpret_cast<vector>(_mm512_fmadd_ps(a.x, b.x, c.x))};
    if constexpr (Bytes == 64 && !is_float) return {reinterpret_cast<vector>(_mm512_fmadd_pd(a.x, b.x, c.x))};
#endif
#ifdef __FMA__
    if constexpr (Bytes == 32 && is_float) return {reinterpret_cast<vector>(_mm256_fmadd_ps(a.x, b.x, c.x))};
    if constexpr (Bytes == 32 && !is_float) return {reinterpret_cast<vector>(_mm256_fmadd_pd(a.x, b.x, c.x))};
#endif
    if constexpr (width == 1) return {vector{math::fma(a.x[0], b.x[0], c.x[0])}};
  }
  /// a b, out of the reach of a compiler that contracts it with a later sum.
  static pack product(const pack& a, const pack& b) { return fma(a, b, all(-Real{})); }
  /// a > b ? a : b, lane by lane: b where a is NaN. (Masked by all ones: g++ 12 warns inside the plain intrinsics.)
  static pack larger(const pack& a, const pack& b) {
#ifdef __AVX512F__
    if constexpr (Bytes == 64 && is_float) return {reinterpret_cast<vector>(_mm512_maskz_max_ps(0xffff, a.x, b.x))};
    if constexpr (Bytes == 64 && !is_float) return {reinterpret_cast<vector>(_mm512_maskz_max_pd(0xff, a.x, b.x))};
#endif
    return {a.x > b.x ? a.x : b.x};
  }
  static bool any(const integers& mask) {
#ifdef __AVX512F__
    if constexpr (Bytes == 64) return _mm512_test_epi32_mask(__m512i(mask), __m512i(mask)) != 0;
#endif
#ifdef __AVX2__
    if constexpr (Bytes == 32) return _mm256_movemask_epi8(__m256i(mask)) != 0;
#endif
    word seen = 0;
    for (int i = 0; i < width; ++i) seen |= mask[i];
    return seen != 0;
  }

 private:
  template <class T>
  static pack load_each(const T* from, std::int64_t count) {
    Real each[static_cast<std::size_t>(width)] = {};
    for (std::int64_t i = 0; i < count; ++i) each[i] = widen(from[i]);
    return load(each);
  }
#ifdef __AVX512F__
  template <class T>
  static pack widened(__m256i bits) {
    if constexpr (std::is_same_v<T, float16>) {
      return {reinterpret_cast<vector>(_mm512_maskz_cvtph_ps(0xffff, bits))};
    } else {
      return {reinterpret_cast<vector>(reinterpret_cast<integers>(_mm512_maskz_cvtepu16_epi32(0xffff, bits)) << 16)};
    }
  }
#endif
#ifdef __AVX2__
  template <class T>
  static pack widened(__m128i bits) {
    if constexpr (std::is_same_v<T, float16>) {
      return {reinterpret_cast<vector>(_mm256_cvtph_ps(bits))};
    } else {
      return {reinterpret_cast<vector>(reinterpret_cast<integers>(_mm256_cvtepu16_epi32(bits)) << 16)};
    }
  }
#endif
};

/// N packs, which stay in registers where nothing but `unrolled` indexes them.
template <class Pack, int N>
using packs = Pack[static_cast<std::size_t>(N)];

/// width rows become width columns.
template <class Pack>
inline void transpose(packs<Pack, Pack::width>& rows) {
  typename Pack::vector x[Pack::width];
  unrolled<Pack::width>([&](int i) { x[i] = rows[i].x; });
  turn(x);
  unrolled<Pack::width>([&](int i) { rows[i].x = x[i]; });
}

/// x = math::decay(x), with its bits: 8 fma and a comparison. N packs side by side, step by step: the chain of one is
/// longer than the scheduler's window.
template <class Pack, int N>
inline void decay(packs<Pack, N>& x) {
  if constexpr (Pack::is_float) {
    using bits = typename Pack::bits;  // which wrap, where x is far below what is kept
    const Pack rounder = Pack::all(0x1.8p+23f);
    packs<Pack, N> n, r, p;
    unrolled<N>([&](int i) { n[i] = Pack::fma(x[i], Pack::all(0x1.715476p+0f), rounder); });
    unrolled<N>([&](int i) { n[i].x -= rounder.x; });
    unrolled<N>([&](int i) { r[i] = Pack::fma(n[i], Pack::all(-0x1.62e43p-1f), x[i]); });
    unrolled<N>([&](int i) { p[i] = Pack::all(0x1.6a4f36p-10f); });
    const auto horner = [&](auto... c) {
      (unrolled<N>([&](int i) { p[i] = Pack::fma(p[i], r[i], Pack::all(c)); }), ...);
    };
    horner(0x1.123984p-7f, 0x1.5558aep-5f, 0x1.555492p-3f, 0x1.fffffcp-2f, 1.0f, 1.0f);
    unrolled<N>([&](int i) {
      const auto nearest = __builtin_convertvector(n[i].x, typename Pack::integers);
      const bits power = reinterpret_cast<bits>(nearest) << 23;  // 0 for NaN, which so stays NaN
      const bits scaled = reinterpret_cast<bits>(p[i].x) + power;
      const bits kept = x[i].x < Pack::all(math::exp_lowest<float>).x ? bits{} : scaled;
      x[i] = {reinterpret_cast<typename Pack::vector>(kept)};
    });
  } else {
    unrolled<N>([&](int i) {
      for (int lane = 0; lane < Pack::width; ++lane) x[i].x[lane] = math::decay(x[i].x[lane]);
    });
  }
}
template <class Pack>
inline Pack decay(const Pack& x) {
  packs<Pack, 1> one = {x};
  decay<Pack, 1>(one);
  return one[0];
}

/// The maximum m grows to `top` where that is above it: what corrects sums relative to it, and so l; whether any does.
template <class Pack>
inline bool grow(typename Pack::Real* m, const Pack& top, Pack& l, typename Pack::Real* factor) {
  const Pack before = Pack::load(m);
  const bool grows = Pack::any(top.x > before.x);
  Pack correction = Pack::all(1);
  if (grows) {
    const Pack corrected = decay(Pack{before.x - top.x});
    correction = {top.x > before.x ? corrected.x : correction.x};
    l = Pack::product(l, correction);
    top.store(m);
  }
  correction.store(factor);
  return grows;
}

/// Weights decay(score - m): 1 at the maximum itself and 0 at -inf, which take no selects where m is finite.
template <bool IsFinite, class Pack, int N>
inline void weigh(packs<Pack, N>& score, const Pack& m) {
  using vector = typename Pack::vector;
  packs<Pack, N> w;
  unrolled<N>([&](int i) { w[i].x = score[i].x - m.x; });
  decay<Pack, N>(w);
  unrolled<N>([&](int i) {
    if (!IsFinite) {
      w[i].x = score[i].x == m.x ? Pack::all(1).x : w[i].x;
      w[i].x = score[i].x == Pack::all(-math::detail::infinity<typename Pack::Real>).x ? vector{} : w[i].x;
    }
    score[i] = w[i];
  });
}

}  // namespace
}  // namespace regroup::tiles

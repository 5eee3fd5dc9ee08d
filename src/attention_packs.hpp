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

namespace regroup::tiles {
namespace {

template <class R, int Bytes>
struct pack {
  using Real = R;
  using word = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;
  typedef Real vector __attribute__((vector_size(Bytes)));    // NOLINT: aliases cannot carry it in a template
  typedef word integers __attribute__((vector_size(Bytes)));  // NOLINT
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
  /// The even elements come from a, the odd ones from b: of their lower halves, or of their upper.
  template <int Half>
  static pack interleaved(const pack& a, const pack& b) {
    return [&]<int... I>(std::integer_sequence<int, I...>)->pack {
      return {__builtin_shufflevector(a.x, b.x, (Half * width / 2 + I / 2 + I % 2 * width)...)};
    }
    (std::make_integer_sequence<int, width>{});
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
};

/// N packs, which stay in registers.
template <class Pack, int N>
using packs = Pack[static_cast<std::size_t>(N)];

/// width rows become width columns: log2(width) perfect shuffles.
template <class Pack>
inline void transpose(packs<Pack, Pack::width>& x) {
  constexpr int half = Pack::width / 2;
  for (int stage = 1; stage < Pack::width; stage *= 2) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
      const packs<Pack, Pack::width> y = {(I % 2 == 0 ? Pack::template interleaved<0>(x[I / 2], x[I / 2 + half])
                                    : Pack::template interleaved<1>(x[I / 2], x[I / 2 + half]))...};
      ((x[I] = y[I]), ...);
    }
    (std::make_integer_sequence<int, Pack::width>{});
  }
}

/// e^x for x <= 0 or NaN: math::exp's bits, without the selects that only positive x need.
template <class Pack>
inline Pack decay(const Pack& x) {
  if constexpr (Pack::is_float) {
    using integers = typename Pack::integers;
    const auto all = [](float c) { return Pack::all(c); };
    const Pack rounder = all(0x1.8p+23f);
    const Pack shifted = Pack::fma(x, all(0x1.715476p+0f), rounder);
    const Pack n{shifted.x - rounder.x};
    const Pack r = Pack::fma(n, all(0x1.05c61p-29f), Pack::fma(n, all(-0x1.62e43p-1f), x));
    Pack p = all(0x1.6a4f36p-10f);
    for (const float c : {0x1.123984p-7f, 0x1.5558aep-5f, 0x1.555492p-3f, 0x1.fffffcp-2f, 1.0f, 1.0f}) {
      p = Pack::fma(p, r, all(c));
    }
    const integers scaled = reinterpret_cast<integers>(p.x) + (reinterpret_cast<integers>(shifted.x) << 23);
    const integers present = x.x < all(math::exp_lowest<float>).x ? integers{} : scaled;
    return {x.x == x.x ? reinterpret_cast<typename Pack::vector>(present) : x.x};
  } else {
    Pack y;
    for (int i = 0; i < Pack::width; ++i) y.x[i] = math::exp(x.x[i]);
    return y;
  }
}

/// softmax_weight: e^(score - m), 1 at the maximum itself and 0 at -inf, where m may be infinite.
template <class Pack>
inline Pack weight(const Pack& score, const Pack& m, bool is_finite) {
  const Pack w = decay(Pack{score.x - m.x});
  if (is_finite) return w;
  const Pack at_most{score.x == m.x ? Pack::all(1).x : w.x};
  return {score.x == Pack::all(-math::detail::infinity<typename Pack::Real>).x ? typename Pack::vector{} : at_most.x};
}

}  // namespace
}  // namespace regroup::tiles

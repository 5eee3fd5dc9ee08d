// SPDX-License-Identifier: Apache-2.0
// A pack: lanes in one register, with the operations that the library's own kernels are written in. Included by one file for
// each instruction set, to which everything here is local. Level: lane.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "regroup/float16.hpp"
#include "regroup/math.hpp"
#include "shuffles.hpp"

namespace regroup::tiles {
namespace {

/// Bytes of the packs that any processor of this kind has with an fma: those of NEON, or a single number.
#if defined(__aarch64__)
inline constexpr int plain_bytes = 16;
#else
inline constexpr int plain_bytes = 4;
#endif

#ifdef __AVX512F__
/// Indices for a permutation of 16-bit words: word i comes from place Place{}(i).
template <class Place>
inline __m512i places_of_words(Place) {
  typedef std::int16_t words __attribute__((vector_size(64)));  // NOLINT
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    constexpr words places = {static_cast<std::int16_t>(Place{}(I))...};
    return __m512i(places);
  }
  (std::make_integer_sequence<int, 32>{});
}
#endif

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
#ifdef __AVX2__
    if constexpr (Bytes == 32 && std::is_same_v<T, float>) {
      return {reinterpret_cast<vector>(_mm256_maskload_ps(from, __m256i(lanes_below(count))))};
    } else if constexpr (Bytes == 32 && std::is_same_v<T, double>) {
      return {reinterpret_cast<vector>(_mm256_maskload_pd(from, __m256i(lanes_below(count))))};
    } else if constexpr (Bytes == 32) {
      return widened<T>(words_below(from, count));
    }
#endif
    return load_each(from, count);
  }
  /// The bits in memory, unchanged: numbers, or pairs of 16-bit floats. `_some` loads the first `count` elements, then zeros.
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
  /// The first `count` lanes.
  void store_some(Real* to, std::int64_t count) const {
#ifdef __AVX512F__
    const auto mask = (1u << count) - 1;
    if constexpr (Bytes == 64 && is_float) return _mm512_mask_storeu_ps(to, static_cast<__mmask16>(mask), __m512(x));
    if constexpr (Bytes == 64 && !is_float) return _mm512_mask_storeu_pd(to, static_cast<__mmask8>(mask), __m512d(x));
#endif
    if constexpr (Bytes == 32) return store_below(to, count);
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
#ifdef __aarch64__
    if constexpr (Bytes == 16 && is_float) {
      return {reinterpret_cast<vector>(vfmaq_f32(float32x4_t(c.x), float32x4_t(a.x), float32x4_t(b.x)))};
    }
    if constexpr (Bytes == 16 && !is_float) {
      return {reinterpret_cast<vector>(vfmaq_f64(float64x2_t(c.x), float64x2_t(a.x), float64x2_t(b.x)))};
    }
#endif
    if constexpr (width == 1) return {vector{math::fma(a.x[0], b.x[0], c.x[0])}};
  }
  /// a b, which no compiler can contract with a later sum.
  static pack product(const pack& a, const pack& b) { return fma(a, b, all(-Real{})); }
  /// p 2^n, or 0 where x is below `lowest`; NaN where p is. The low bits of `shifted` hold n plus the exponent's bias.
  static pack scaled(const pack& p, [[maybe_unused]] const pack& n, const pack& shifted, const pack& lowest,
                     const pack& x) {
#ifdef __AVX512F__
    if constexpr (Bytes == 64 && is_float) {
      return {
          reinterpret_cast<vector>(_mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x.x, lowest.x, _CMP_NLT_UQ), p.x, n.x))};
    } else if constexpr (Bytes == 64) {
      return {
          reinterpret_cast<vector>(_mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(x.x, lowest.x, _CMP_NLT_UQ), p.x, n.x))};
    }
#endif
    constexpr int mantissa = is_float ? 23 : 52;
    const auto power = reinterpret_cast<bits>(shifted.x) << mantissa;
    return {x.x < lowest.x ? vector{} : p.x * reinterpret_cast<vector>(power)};  // exact, whatever is added to it
  }
  /// a > b ? a : b, lane by lane: b where a is NaN. (Masked by all ones: g++ 12 warns inside the plain intrinsics.)
  static pack larger(const pack& a, const pack& b) {
#ifdef __AVX512F__
    if constexpr (Bytes == 64 && is_float) return {reinterpret_cast<vector>(_mm512_maskz_max_ps(0xffff, a.x, b.x))};
    if constexpr (Bytes == 64 && !is_float) return {reinterpret_cast<vector>(_mm512_maskz_max_pd(0xff, a.x, b.x))};
#endif
    return {a.x > b.x ? a.x : b.x};
  }
  /// The lanes of a below `count`, then those of b.
  static pack first(std::int64_t count, const pack& a, const pack& b) { return {lanes_below(count) ? a.x : b.x}; }
  /// a with `value` in the lane `place`, if there is such a lane.
  static pack with(const pack& a, std::int64_t place, Real value) {
    integers lane{};
    for (int i = 0; i < width; ++i) lane[i] = i;
    return {lane == static_cast<word>(place) ? all(value).x : a.x};
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
  /// store_some by two stores that may overlap. (A Zen 3 waits for a masked one: bench/results/walls.md.)
  void store_below(Real* to, std::int64_t count) const {
    alignas(Bytes) Real each[static_cast<std::size_t>(width)];
    store(each);
    const auto ends = [&]<std::int64_t N>(std::integral_constant<std::int64_t, N>) {
      if (count < N) return false;
      std::memcpy(to, each, N * sizeof(Real));
      std::memcpy(to + count - N, each + count - N, N * sizeof(Real));
      return true;
    };
    if (count == width) return store(to);
    if (ends(std::integral_constant<std::int64_t, width / 2>{})) return;
    if constexpr (width > 4) {
      if (ends(std::integral_constant<std::int64_t, width / 4>{})) return;
    }
    if (count > 0) to[0] = each[0];
  }
  /// All ones in the lanes below `count`.
  static integers lanes_below(std::int64_t count) {
    integers lane{};
    for (int i = 0; i < width; ++i) lane[i] = i;
    return lane < static_cast<word>(count);
  }
  template <class T>
  static pack load_each(const T* from, std::int64_t count) {
    Real each[static_cast<std::size_t>(width)] = {};
    for (std::int64_t i = 0; i < count; ++i) each[i] = regroup::widen(from[i]);
    return load(each);
  }
#ifdef __AVX512F__
  template <class T>
  static pack widened(__m256i bits) {
    if constexpr (std::is_same_v<T, float16>) {
      return {reinterpret_cast<vector>(_mm512_maskz_cvtph_ps(0xffff, bits))};
    } else {
      const auto from = places_of_words([](int i) { return i / 2; });  // every other word becomes 0
      return {reinterpret_cast<vector>(_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, from, _mm512_castsi256_si512(bits)))};
    }
  }
#endif
#ifdef __AVX2__
  /// The first `count` words of 16 bits, then zeros: by no more than two loads, which may overlap.
  template <class T>
  static __m128i words_below(const T* from, std::int64_t count) {
    const auto load_as = [from]<class Bits>(Bits bits, std::int64_t first) {
      std::memcpy(&bits, from + first, sizeof bits);
      return std::uint64_t{bits};
    };
    const auto last = [count](std::int64_t words) { return 16 * (count - words); };  // where the last ones begin, in bits
    if (count >= 4) {
      const std::uint64_t high = load_as(std::uint64_t{}, count - 4);
      return _mm_set_epi64x(static_cast<long long>(count == 4 ? 0 : high >> (64 - last(4))),
                            static_cast<long long>(load_as(std::uint64_t{}, 0)));
    }
    if (count >= 2) {
      return _mm_set_epi64x(0, static_cast<long long>(load_as(std::uint32_t{}, 0) |
                                                      load_as(std::uint16_t{}, count - 1) << last(1)));
    }
    return _mm_set_epi64x(0, count == 0 ? 0 : static_cast<long long>(load_as(std::uint16_t{}, 0)));
  }
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

/// N packs, which stay in registers as long as only `unrolled` indexes them.
template <class Pack, int N>
using packs = Pack[static_cast<std::size_t>(N)];

/// Transposes a square of packs; `between` as in transpose_square.
template <class Pack, class Between = nothing>
[[gnu::flatten]] inline void transpose(packs<Pack, Pack::width>& rows, const Between& between = {}) {
  typename Pack::vector x[Pack::width];
  unrolled<Pack::width>([&](int i) { x[i] = rows[i].x; });
  transpose_square(x, between);
  unrolled<Pack::width>([&](int i) { rows[i].x = x[i]; });
}

/// N packs that take each step of math.hpp together, since the chain of a single one is longer than the scheduler's window.
template <class Pack, int N>
struct abreast {
  using Real = typename Pack::Real;
  packs<Pack, N> each;

  [[gnu::always_inline]] abreast(Real x) {  // NOLINT: implicit on purpose
    unrolled<N>([&](int i) { each[i] = Pack::all(x); });
  }
  [[gnu::always_inline]] explicit abreast(const packs<Pack, N>& x) {
    unrolled<N>([&](int i) { each[i] = x[i]; });
  }
  [[gnu::always_inline]] friend abreast fma(const abreast& a, const abreast& b, abreast c) {
    unrolled<N>([&](int i) { c.each[i] = Pack::fma(a.each[i], b.each[i], c.each[i]); });
    return c;
  }
  [[gnu::always_inline]] friend abreast operator-(abreast a, const abreast& b) {
    unrolled<N>([&](int i) { a.each[i].x -= b.each[i].x; });
    return a;
  }
};

/// x = math::decay(x), with its bits, by 8 fma (14 for doubles) and a comparison.
template <class Pack, int N>
inline void decay(packs<Pack, N>& x) {
  using Real = typename Pack::Real;
  const math::detail::decay_parts<Real, abreast<Pack, N>> e{abreast<Pack, N>(x)};
  const Pack lowest = Pack::all(math::exp_lowest<Real>);
  unrolled<N>([&](int i) { x[i] = Pack::scaled(e.p.each[i], e.n.each[i], e.shifted.each[i], lowest, x[i]); });
}
template <class Pack>
inline Pack decay(const Pack& x) {
  packs<Pack, 1> one = {x};
  decay<Pack, 1>(one);
  return one[0];
}

}  // namespace
}  // namespace regroup::tiles

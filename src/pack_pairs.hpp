// SPDX-License-Identifier: Apache-2.0
// Stores two packs of numbers side by side: as they are or in 16 bits, all or the first few, or past the caches. Local to
// each instruction set's file. Level: lane.
#pragma once

#include <algorithm>

#include "packs.hpp"

namespace regroup::tiles {
namespace {

/// A store past the caches.
template <class Bits>
inline void stream(void* to, const Bits& value) {
#ifdef __AVX512F__
  if constexpr (sizeof value == 64)
    return _mm512_stream_si512(static_cast<__m512i*>(to), reinterpret_cast<__m512i>(value));
#endif
#ifdef __AVX__
  if constexpr (sizeof value == 32)
    return _mm256_stream_si256(static_cast<__m256i*>(to), reinterpret_cast<__m256i>(value));
#endif
  std::memcpy(to, &value, sizeof value);
}

/// A pack of floats as float16.
template <class Pack>
inline auto halves_of([[maybe_unused]] const Pack& v) {
#ifdef __AVX512F__
  if constexpr (Pack::width == 16) return _mm512_maskz_cvtps_ph(0xffff, v.x, 0);
#endif
#ifdef __AVX2__
  if constexpr (Pack::width == 8) return _mm256_cvtps_ph(v.x, 0);
#endif
}

/// Two packs of floats side by side, rounded to 16 bits each as float16 and bfloat16 are. As bfloat16, only a NaN whose lower
/// 16 bits are 0 is sure to stay NaN.
template <class T, class Pack>
inline auto narrowed(const packs<Pack, 2>& v) {
  if constexpr (std::is_same_v<T, bfloat16>) {
#ifdef __AVX512BF16__
    if constexpr (Pack::width == 16) {  // the instruction flushes denormals to 0
      const auto denormal = [](const Pack& x) { return unsigned{_mm512_fpclass_ps_mask(x.x, 0x20)}; };
      if ((denormal(v[0]) | denormal(v[1])) == 0) [[likely]]
        return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(__m512(v[1].x), __m512(v[0].x)));
    }
#endif
    using bits = typename Pack::bits;
    bits b[2];
    unrolled<2>([&](int k) {
      b[k] = reinterpret_cast<bits>(v[k].x);
      b[k] = b[k] + 0x7fff + (b[k] >> 16 & 1);
    });
#ifdef __AVX512F__
    if constexpr (Pack::width == 16) {
      const auto upper = places_of_words([](int i) { return 2 * i + 1; });
      return _mm512_maskz_permutex2var_epi16(~0u, __m512i(b[0]), upper, __m512i(b[1]));
    }
#endif
    unrolled<2>([&](int k) { b[k] >>= 16; });
#ifdef __AVX2__
    if constexpr (Pack::width == 8)
      return _mm256_permute4x64_epi64(_mm256_packus_epi32(__m256i(b[0]), __m256i(b[1])), 0xd8);
#endif
  } else if constexpr (Pack::width == 16) {
    return __builtin_shufflevector(halves_of(v[0]), halves_of(v[1]), 0, 1, 2, 3, 4, 5, 6, 7);
  } else if constexpr (Pack::width == 8) {
    return __builtin_shufflevector(halves_of(v[0]), halves_of(v[1]), 0, 1, 2, 3);
  }
  if constexpr (Pack::width < 8) {
    struct {
      std::uint16_t bits[static_cast<std::size_t>(2 * Pack::width)];
    } each;
    for (int i = 0; i < 2 * Pack::width; ++i) each.bits[i] = T(v[i / Pack::width].x[i % Pack::width]).bits;
    return each;
  }
}

/// Store two packs side by side, rounded to T where T has 16 bits. `store_some` stores the first `count` numbers;
/// `store_past_caches` needs a place aligned to the size of what it stores.
template <class Pack, class T>
inline void store(const packs<Pack, 2>& v, T* to) {
  if constexpr (sizeof(T) == sizeof(typename Pack::Real)) {
    unrolled<2>([&](int k) { v[k].store(to + k * Pack::width); });
  } else if constexpr (std::is_same_v<T, float16> && Pack::width >= 8) {
    unrolled<2>([&](int k) {
      const auto bits = halves_of(v[k]);
      std::memcpy(to + k * Pack::width, &bits, sizeof bits);
    });
  } else {
    const auto bits = narrowed<T, Pack>(v);
    std::memcpy(to, &bits, sizeof bits);
  }
}
template <class Pack, class T>
inline void store_some(const packs<Pack, 2>& v, T* to, std::int64_t count) {
  if constexpr (sizeof(T) == sizeof(typename Pack::Real)) {
    unrolled<2>([&](int k) {
      v[k].store_some(to + k * Pack::width, std::clamp<std::int64_t>(count - k * Pack::width, 0, Pack::width));
    });
  } else {
    alignas(64) T each[static_cast<std::size_t>(2 * Pack::width)];
    store<Pack>(v, each);
    std::memcpy(to, each, static_cast<std::size_t>(count) * sizeof(T));
  }
}
template <class Pack, class T>
inline void store_past_caches(const packs<Pack, 2>& v, T* to) {
  if constexpr (sizeof(T) == sizeof(typename Pack::Real)) {
    unrolled<2>([&](int k) { stream(to + k * Pack::width, v[k].x); });
  } else {
    stream(to, narrowed<T, Pack>(v));
  }
}

}  // namespace
}  // namespace regroup::tiles

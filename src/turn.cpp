// SPDX-License-Identifier: Apache-2.0
// A tile turned on any processor, in blocks of 16 bytes by 16 where it is x86-64, and which instruction set serves.
#include "regroup/host/dispatch.hpp"
#include "turn_blocks.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace regroup::host::turning {

namespace {

#if defined(__x86_64__)
__m128i load(const char* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
void store(char* to, __m128i x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), x); }

struct half_words_block {
  static constexpr index size = 2, side = 8;
  template <index FromStep, index ToStep>
  static void turn(const char* from, char* to) {
    __m128i x[8], y[8];
    for (index i = 0; i < 8; ++i) x[i] = load(from + i * FromStep);
    for (index i = 0; i < 8; i += 2) {
      y[i] = _mm_unpacklo_epi16(x[i], x[i + 1]);
      y[i + 1] = _mm_unpackhi_epi16(x[i], x[i + 1]);
    }
    for (index i = 0; i < 8; i += 4) {
      for (index k = 0; k < 2; ++k) {
        x[i + 2 * k] = _mm_unpacklo_epi32(y[i + k], y[i + k + 2]);
        x[i + 2 * k + 1] = _mm_unpackhi_epi32(y[i + k], y[i + k + 2]);
      }
    }
    for (index k = 0; k < 4; ++k) {
      store(to + 2 * k * ToStep, _mm_unpacklo_epi64(x[k], x[k + 4]));
      store(to + (2 * k + 1) * ToStep, _mm_unpackhi_epi64(x[k], x[k + 4]));
    }
  }
};
struct words_block {
  static constexpr index size = 4, side = 4;
  template <index FromStep, index ToStep>
  static void turn(const char* from, char* to) {
    const auto a = load(from), b = load(from + FromStep), c = load(from + 2 * FromStep), d = load(from + 3 * FromStep);
    const auto ab_low = _mm_unpacklo_epi32(a, b), ab_high = _mm_unpackhi_epi32(a, b);
    const auto cd_low = _mm_unpacklo_epi32(c, d), cd_high = _mm_unpackhi_epi32(c, d);
    store(to, _mm_unpacklo_epi64(ab_low, cd_low));
    store(to + ToStep, _mm_unpackhi_epi64(ab_low, cd_low));
    store(to + 2 * ToStep, _mm_unpacklo_epi64(ab_high, cd_high));
    store(to + 3 * ToStep, _mm_unpackhi_epi64(ab_high, cd_high));
  }
};
struct long_words_block {
  static constexpr index size = 8, side = 2;
  template <index FromStep, index ToStep>
  static void turn(const char* from, char* to) {
    const auto a = load(from), b = load(from + FromStep);
    store(to, _mm_unpacklo_epi64(a, b));
    store(to + ToStep, _mm_unpackhi_epi64(a, b));
  }
};
#else
template <index Size>
struct single {
  static constexpr index size = Size, side = 1;
  template <index, index>
  static void turn(const char* from, char* to) {
    std::memcpy(to, from, Size);
  }
};
using half_words_block = single<2>;
using words_block = single<4>;
using long_words_block = single<8>;
#endif

bool has_v3() { return current_target() != target::baseline; }

}  // namespace

void half_words(const void* from, void* to, index pieces, turning_to where) {
#if defined(__x86_64__)
  if (has_v3()) return half_words_v3(from, to, pieces, where);
#endif
  turn_by<half_words_block>(from, to, pieces, where);
}
void words(const void* from, void* to, index pieces, turning_to where) {
#if defined(__x86_64__)
  if (has_v3()) return words_v3(from, to, pieces, where);
#endif
  turn_by<words_block>(from, to, pieces, where);
}
void long_words(const void* from, void* to, index pieces, turning_to where) {
#if defined(__x86_64__)
  if (has_v3()) return long_words_v3(from, to, pieces, where);
#endif
  turn_by<long_words_block>(from, to, pieces, where);
}

}  // namespace regroup::host::turning

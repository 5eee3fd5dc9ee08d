// SPDX-License-Identifier: Apache-2.0
// A tile turned with AVX2: blocks of 32 bytes by 32. Halves of rows 8 (4, or 2) apart are joined as they are loaded, so that
// all shuffles stay within 16 bytes.
#if defined(__x86_64__)
#include <immintrin.h>

#include "turn_blocks.hpp"

namespace regroup::host::turning {

namespace {

__m256i joined(const char* low, const char* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low))),
                                 _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)), 1);
}
void store(char* to, __m256i x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x); }

struct half_words_block {
  static constexpr index size = 2, side = 16;
  template <index FromStep, index ToStep>
  static void turn(const char* from, char* to) {
    for (index half = 0; half < 2; ++half, from += 16, to += 8 * ToStep) {
      __m256i x[8], y[8];
      for (index i = 0; i < 8; ++i) x[i] = joined(from + i * FromStep, from + (i + 8) * FromStep);
      for (index i = 0; i < 8; i += 2) {
        y[i] = _mm256_unpacklo_epi16(x[i], x[i + 1]);
        y[i + 1] = _mm256_unpackhi_epi16(x[i], x[i + 1]);
      }
      for (index i = 0; i < 8; i += 4) {
        for (index k = 0; k < 2; ++k) {
          x[i + 2 * k] = _mm256_unpacklo_epi32(y[i + k], y[i + k + 2]);
          x[i + 2 * k + 1] = _mm256_unpackhi_epi32(y[i + k], y[i + k + 2]);
        }
      }
      for (index k = 0; k < 4; ++k) {
        store(to + 2 * k * ToStep, _mm256_unpacklo_epi64(x[k], x[k + 4]));
        store(to + (2 * k + 1) * ToStep, _mm256_unpackhi_epi64(x[k], x[k + 4]));
      }
    }
  }
};
struct words_block {
  static constexpr index size = 4, side = 8;
  template <index FromStep, index ToStep>
  static void turn(const char* from, char* to) {
    for (index half = 0; half < 2; ++half, from += 16, to += 4 * ToStep) {
      const auto a = joined(from, from + 4 * FromStep), b = joined(from + FromStep, from + 5 * FromStep);
      const auto c = joined(from + 2 * FromStep, from + 6 * FromStep),
                 d = joined(from + 3 * FromStep, from + 7 * FromStep);
      const auto ab_low = _mm256_unpacklo_epi32(a, b), ab_high = _mm256_unpackhi_epi32(a, b);
      const auto cd_low = _mm256_unpacklo_epi32(c, d), cd_high = _mm256_unpackhi_epi32(c, d);
      store(to, _mm256_unpacklo_epi64(ab_low, cd_low));
      store(to + ToStep, _mm256_unpackhi_epi64(ab_low, cd_low));
      store(to + 2 * ToStep, _mm256_unpacklo_epi64(ab_high, cd_high));
      store(to + 3 * ToStep, _mm256_unpackhi_epi64(ab_high, cd_high));
    }
  }
};
struct long_words_block {
  static constexpr index size = 8, side = 4;
  template <index FromStep, index ToStep>
  static void turn(const char* from, char* to) {
    for (index half = 0; half < 2; ++half, from += 16, to += 2 * ToStep) {
      const auto a = joined(from, from + 2 * FromStep), b = joined(from + FromStep, from + 3 * FromStep);
      store(to, _mm256_unpacklo_epi64(a, b));
      store(to + ToStep, _mm256_unpackhi_epi64(a, b));
    }
  }
};

}  // namespace

void half_words_v3(const void* from, void* to, index pieces, turning_to where) {
  turn_by<half_words_block>(from, to, pieces, where);
}
void words_v3(const void* from, void* to, index pieces, turning_to where) {
  turn_by<words_block>(from, to, pieces, where);
}
void long_words_v3(const void* from, void* to, index pieces, turning_to where) {
  turn_by<long_words_block>(from, to, pieces, where);
}

}  // namespace regroup::host::turning
#endif

// SPDX-License-Identifier: Apache-2.0
// float16 by AVX-512, sixteen at a time. Whole lines are written, so that a load soon after need not wait for two stores.
// (Masked by all ones: g++ 12 warns inside the plain intrinsics.)
#if defined(__x86_64__)
#include <immintrin.h>

#include "halves.hpp"

namespace regroup::host::halves {

namespace {

__m512 widened(__mmask16 mask, const float16* from) {
  return _mm512_maskz_cvtph_ps(mask, _mm256_maskz_loadu_epi16(mask, from));
}
__m256i narrowed(__mmask16 mask, const float* from) {
  return _mm512_maskz_cvtps_ph(mask, _mm512_maskz_loadu_ps(mask, from), 0);
}
constexpr __mmask16 all = 0xffff;

}  // namespace

void widen_v4(const float16* from, float* to, index n) {
  index i = 0;
  for (; i + 16 <= n; i += 16) _mm512_storeu_ps(to + i, widened(all, from + i));
  const auto rest = static_cast<__mmask16>((1u << (n - i)) - 1);
  _mm512_mask_storeu_ps(to + i, rest, widened(rest, from + i));
}
void narrow_v4(const float* from, float16* to, index n) {
  index i = 0;
  for (; i + 16 <= n; i += 16) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), narrowed(all, from + i));
  const auto rest = static_cast<__mmask16>((1u << (n - i)) - 1);
  _mm256_mask_storeu_epi16(to + i, rest, narrowed(rest, from + i));
}

}  // namespace regroup::host::halves
#endif

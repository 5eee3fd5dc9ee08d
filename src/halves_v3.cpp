// SPDX-License-Identifier: Apache-2.0
// float16 by F16C, eight at a time.
#if defined(__x86_64__)
#include <immintrin.h>

#include "halves.hpp"

namespace regroup::host::halves {

void widen_v3(const float16* from, float* to, index n) {
  index i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
  for (; i < n; ++i) to[i] = _cvtsh_ss(from[i].bits);
}
void narrow_v3(const float* from, float16* to, index n) {
  index i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
  }
  for (; i < n; ++i) to[i] = float16::from_bits(_cvtss_sh(from[i], 0));
}

}  // namespace regroup::host::halves
#endif

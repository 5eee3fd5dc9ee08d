// SPDX-License-Identifier: Apache-2.0
#include "halves.hpp"

#include "targets.hpp"

namespace regroup::host::halves {

namespace {

void widen_plainly(const float16* from, float* to, index n) {
  for (index i = 0; i < n; ++i) to[i] = regroup::widen(from[i]);
}
void narrow_plainly(const float* from, float16* to, index n) {
  for (index i = 0; i < n; ++i) to[i] = float16(from[i]);
}

}  // namespace

#if defined(__x86_64__)
void widen(const float16* from, float* to, index n) { best_of(widen_v4, widen_v3, widen_plainly)(from, to, n); }
void narrow(const float* from, float16* to, index n) { best_of(narrow_v4, narrow_v3, narrow_plainly)(from, to, n); }
#else
void widen(const float16* from, float* to, index n) { widen_plainly(from, to, n); }
void narrow(const float* from, float16* to, index n) { narrow_plainly(from, to, n); }
#endif

}  // namespace regroup::host::halves

// SPDX-License-Identifier: Apache-2.0
#include "halves.hpp"

#include "regroup/host/dispatch.hpp"

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
namespace {

template <class F>
F* best(F* v4, F* v3, F* plainly) {
  switch (current_target()) {
    case target::x86_64_v4_amx:
    case target::x86_64_v4_bf16:
    case target::x86_64_v4_vnni:
    case target::x86_64_v4:
      return v4;
    case target::x86_64_v3:
      return v3;
    case target::baseline:
      break;
  }
  return plainly;
}

}  // namespace

void widen(const float16* from, float* to, index n) { best(widen_v4, widen_v3, widen_plainly)(from, to, n); }
void narrow(const float* from, float16* to, index n) { best(narrow_v4, narrow_v3, narrow_plainly)(from, to, n); }
#else
void widen(const float16* from, float* to, index n) { widen_plainly(from, to, n); }
void narrow(const float* from, float16* to, index n) { narrow_plainly(from, to, n); }
#endif

}  // namespace regroup::host::halves

// SPDX-License-Identifier: Apache-2.0
// Which instruction sets the processor has, for code that chooses in another way than host/dispatch.hpp does.
#pragma once

#include "regroup/host/dispatch.hpp"

namespace regroup::host {

bool has(target t);

#if defined(__x86_64__)
/// Chooses for the current target between code for AVX-512, for AVX2 and for neither.
template <class X>
const X& best_of(const X& v4, const X& v3, const X& baseline) {
  const target t = current_target();
  return t >= target::x86_64_v4 ? v4 : t >= target::x86_64_v3 ? v3 : baseline;
}
#endif

}  // namespace regroup::host

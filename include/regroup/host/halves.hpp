// SPDX-License-Identifier: Apache-2.0
// Converts runs of float16 to float and back by the processor's own instructions, which compilers do not generate from a
// loop. The bits are those of float16.hpp. Level: lane.
#pragma once

#include <type_traits>

#include "regroup/executor.hpp"
#include "regroup/float16.hpp"

namespace regroup::host {

namespace halves {
void widen(const float16* from, float* to, index n);
void narrow(const float* from, float16* to, index n);
}  // namespace halves

/// to[i] = widen(from[i]).
constexpr void widen_all(const float16* from, float* to, index n) {
  if (!std::is_constant_evaluated()) return halves::widen(from, to, n);
  for (index i = 0; i < n; ++i) to[i] = regroup::widen(from[i]);
}
/// to[i] = float16(from[i]).
constexpr void narrow_all(const float* from, float16* to, index n) {
  if (!std::is_constant_evaluated()) return halves::narrow(from, to, n);
  for (index i = 0; i < n; ++i) to[i] = float16(from[i]);
}

}  // namespace regroup::host

// SPDX-License-Identifier: Apache-2.0
// The conversions of float16, one pair of functions for each instruction set's file. Level: lane.
#pragma once

#include "regroup/host/halves.hpp"

namespace regroup::host::halves {

using widener = void(const float16* from, float* to, index n);
using narrower = void(const float* from, float16* to, index n);
#if defined(__x86_64__)
widener widen_v3, widen_v4;
narrower narrow_v3, narrow_v4;
#endif

}  // namespace regroup::host::halves

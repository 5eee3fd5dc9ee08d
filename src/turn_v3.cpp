// SPDX-License-Identifier: Apache-2.0
// A matrix turned with AVX2.
#if defined(__x86_64__)
#include "turn_blocks.hpp"

namespace regroup::host::turning {

constinit const turners turners_v3 = turners_of<32>();

}  // namespace regroup::host::turning
#endif

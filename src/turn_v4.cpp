// SPDX-License-Identifier: Apache-2.0
// A matrix turned with AVX-512.
#if defined(__x86_64__)
#include "turn_blocks.hpp"

namespace regroup::host::turning {

constinit const turners turners_v4 = turners_of<64>();

}  // namespace regroup::host::turning
#endif

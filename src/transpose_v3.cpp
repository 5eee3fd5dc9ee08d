// SPDX-License-Identifier: Apache-2.0
// A matrix transposed with AVX2.
#if defined(__x86_64__)
#include "transpose_blocks.hpp"

namespace regroup::host::transposition {

constinit const turners turners_v3 = turners_of<32>();

}  // namespace regroup::host::transposition
#endif

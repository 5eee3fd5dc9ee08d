// SPDX-License-Identifier: Apache-2.0
// A matrix transposed with AVX-512.
#if defined(__x86_64__)
#include "transpose_blocks.hpp"

namespace regroup::host::transposition {

constinit const transposers transposers_v4 = transposers_of<64>();

}  // namespace regroup::host::transposition
#endif

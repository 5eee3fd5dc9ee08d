// SPDX-License-Identifier: Apache-2.0
// A matrix transposed with AVX2.
#if defined(__x86_64__)
#include "transpose_blocks.hpp"

namespace regroup::host::transposition {

constinit const transposers transposers_v3 = transposers_of<32>();

}  // namespace regroup::host::transposition
#endif

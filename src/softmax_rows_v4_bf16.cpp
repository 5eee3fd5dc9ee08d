// SPDX-License-Identifier: Apache-2.0
// Softmax's loops from bfloat16 to bfloat16 for AVX-512 with its conversions of two packs at once.
#if defined(__x86_64__)
#include "softmax_rows_table.hpp"

namespace regroup::softmax_parts {

constinit const row_kernels<bfloat16, bfloat16> rows_v4_bf16 = kernels_of<bfloat16, bfloat16, tiles::pack<float, 64>>();

}  // namespace regroup::softmax_parts
#endif

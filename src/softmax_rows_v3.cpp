// SPDX-License-Identifier: Apache-2.0
// Softmax's loops for AVX2 and FMA.
#if defined(__x86_64__)
#include "softmax_rows_table.hpp"

namespace regroup::softmax_parts {

constinit const all_row_kernels rows_v3 = row_kernels_of<32>();

}  // namespace regroup::softmax_parts
#endif

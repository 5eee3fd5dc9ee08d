// SPDX-License-Identifier: Apache-2.0
// Attention's kernels for AVX2 and FMA: 6 rows by 2 packs are 12 chains, two fma a cycle at a latency of 4.
#if defined(__x86_64__)
#include "attention_tile_table.hpp"

namespace regroup::tiles {

constinit const instruction_set x86_64_v3 = all_kernels<32, with_query_lanes<singles<float, 32>, 6, 2, 6, 2>,
                                                        with_query_lanes<singles<double, 32>, 6, 2, 6, 2>, 4, 12>;

}  // namespace regroup::tiles
#endif

// SPDX-License-Identifier: Apache-2.0
// Attention's kernels for AVX-512: 6 rows by 4 packs are 24 chains; one row of packs is left for the queries.
#if defined(__x86_64__)
#include "attention_tile_table.hpp"

namespace regroup::tiles {

constinit const instruction_set x86_64_v4 = all_kernels<64, with_query_lanes<singles<float, 64>, query_shape{6, 4, 12, 1}>,
                                                        with_query_lanes<singles<double, 64>, query_shape{6, 4, 6, 2}>, 8, 24>;

}  // namespace regroup::tiles
#endif

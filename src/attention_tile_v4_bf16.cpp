// SPDX-License-Identifier: Apache-2.0
// Attention's kernels of bfloat16 for AVX-512 with vdpbf16ps: 6 rows by 4 packs are 24 chains.
#if defined(__x86_64__)
#include "attention_tile_table.hpp"

namespace regroup::tiles {

constinit const bfloat16_kernels x86_64_v4_bf16 = {queries_of<with_query_lanes<pair_products, query_shape{6, 4, 12, 1}>>(),
                                                   keys_of<with_key_lanes<pair_products, 8, 24>>()};

}  // namespace regroup::tiles
#endif

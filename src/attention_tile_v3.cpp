// SPDX-License-Identifier: Apache-2.0
// Attention's kernels for AVX2 and FMA: 6 rows by 2 packs are 12 chains, enough for two fma a cycle at a latency of 4 or 5.
// Prefetching is left to the processor (bench/results/walls.md, "Attention on AVX2").
#if defined(__x86_64__)
#include "attention_tile_table.hpp"

namespace regroup::tiles {

namespace {

constexpr query_shape shape_of(int panel) {
  return {.full_r = 6, .full_v = 2, .group_r = 6, .group_v = 2, .panel = panel, .first_cache = 32 << 10, .fetches = false};
}

}  // namespace

constinit const instruction_set x86_64_v3 = all_kernels<32, with_query_lanes<singles<float, 32>, shape_of(16)>,
                                                        with_query_lanes<singles<double, 32>, shape_of(8)>, 4, 12>;

}  // namespace regroup::tiles
#endif

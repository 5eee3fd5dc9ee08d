// SPDX-License-Identifier: Apache-2.0
// Attention's kernel for AVX2 and FMA: 4 rows by 2 packs are 8 chains, two fma a cycle at a latency of 4.
#if defined(__x86_64__)
#include "attention_tile_packs.hpp"

namespace regroup::tiles {

void multiply_add_v3(const products<float>& p) { multiply_add_packs<float, 32, 4, 2>(p); }
void multiply_add_v3(const products<double>& p) { multiply_add_packs<double, 32, 4, 2>(p); }

}  // namespace regroup::tiles
#endif

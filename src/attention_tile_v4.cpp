// SPDX-License-Identifier: Apache-2.0
// Attention's kernel for AVX-512: 8 rows by 2 packs are 16 chains, in half of its registers.
#if defined(__x86_64__)
#include "attention_tile_packs.hpp"

namespace regroup::tiles {

void multiply_add_v4(const products<float>& p) { multiply_add_packs<float, 64, 8, 2>(p); }
void multiply_add_v4(const products<double>& p) { multiply_add_packs<double, 64, 8, 2>(p); }

}  // namespace regroup::tiles
#endif

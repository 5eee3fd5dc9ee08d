// SPDX-License-Identifier: Apache-2.0
// Attention's kernels for any processor, lane by lane or by NEON, and the choice of the instruction set.
#include "attention_tile.hpp"

#include "attention_tile_table.hpp"
#include "targets.hpp"

namespace regroup::tiles {

const instruction_set& current([[maybe_unused]] bool takes_pairs) {
#if defined(__aarch64__)  // whose 32 registers take the shapes of AVX-512
  constexpr query_shape floats = {6, 4, 12, 1}, doubles = {6, 4, 6, 2};
  constexpr int most = 8, registers = 24;
#else
  constexpr query_shape floats = {1, 4, 1, 4}, doubles = floats;
  constexpr int most = 4, registers = 4;
#endif
  static constexpr instruction_set baseline =
      all_kernels<plain_bytes, with_query_lanes<singles<float, plain_bytes>, floats>,
                  with_query_lanes<singles<double, plain_bytes>, doubles>, most, registers>;
#if defined(__x86_64__)
  const host::target t = host::current_target();
  if (!takes_pairs || t < host::target::x86_64_v4_vnni) return host::best_of(x86_64_v4, x86_64_v3, baseline);
  static const instruction_set narrow = [t] {
    instruction_set all = x86_64_v4;
    all.integers_of_float16 = &float16_by_vnni;
    all.integers_of_bfloat16 = &bfloat16_by_vnni;
    if (t == host::target::x86_64_v4_amx) all.matrices = &x86_64_v4_amx;
    if (t == host::target::x86_64_v4_bf16) {
      static_cast<query_lanes<bfloat16>&>(all) = x86_64_v4_bf16;
      static_cast<key_lanes<bfloat16>&>(all) = x86_64_v4_bf16;
    }
    return all;
  }();
  return narrow;
#else
  return baseline;
#endif
}

}  // namespace regroup::tiles

// SPDX-License-Identifier: Apache-2.0
// Attention's kernels for any processor, lane by lane or by NEON, and the choice of the instruction set.
#include "attention_tile.hpp"

#include "attention_tile_table.hpp"
#include "regroup/host/dispatch.hpp"

namespace regroup::tiles {

#if defined(__x86_64__)
namespace {

instruction_set with_integers() {
  instruction_set all = x86_64_v4;
  all.integers_of_float16 = &float16_by_vnni;
  all.integers_of_bfloat16 = &bfloat16_by_vnni;
  return all;
}

}  // namespace
#endif

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
  switch (host::current_target()) {
#if defined(__x86_64__)
    case host::target::x86_64_v4_amx: {
      if (!takes_pairs) return x86_64_v4;
      static const instruction_set with_matrices = [] {
        instruction_set all = with_integers();
        all.matrices = &x86_64_v4_amx;
        return all;
      }();
      return with_matrices;
    }
    case host::target::x86_64_v4_bf16: {
      if (!takes_pairs) return x86_64_v4;
      static const instruction_set with_pairs = [] {
        instruction_set all = with_integers();
        static_cast<query_lanes<bfloat16>&>(all) = x86_64_v4_bf16;
        static_cast<key_lanes<bfloat16>&>(all) = x86_64_v4_bf16;
        return all;
      }();
      return with_pairs;
    }
    case host::target::x86_64_v4_vnni: {
      if (!takes_pairs) return x86_64_v4;
      static const instruction_set integers = with_integers();
      return integers;
    }
    case host::target::x86_64_v4:
      return x86_64_v4;
    case host::target::x86_64_v3:
      return x86_64_v3;
#endif
    default:
      return baseline;
  }
}

}  // namespace regroup::tiles

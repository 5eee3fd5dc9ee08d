// SPDX-License-Identifier: Apache-2.0
// Products of four warps as Hopper's instruction (wgmma, of sm_90a; PTX ISA 9.7.15): it reads shared memory itself and runs
// while its threads go on. Its sums lie in registers as those of the small products do (cuda/mma.hpp), 64 rows by N columns.
// Level: block.
#pragma once

#include "regroup/cuda/mma.hpp"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
namespace regroup::cuda::wgmma {

/// A matrix in shared memory for the instruction: where it begins, some pieces of 16 bytes behind an address, and how many it
/// is to the next 64 columns and the next eight rows; pieces are swizzled by 128 bytes.
__device__ inline std::uint64_t descriptor(unsigned address, int piece, int next_columns, int next_rows) {
  const std::uint64_t base = address >> 4 | static_cast<std::uint64_t>(next_columns) << 16 |
                             static_cast<std::uint64_t>(next_rows) << 32 | std::uint64_t{1} << 62;
  return base + static_cast<unsigned>(piece);
}

/// Keeps what the compiler knows of some registers on its side of this line.
template <class... Arrays>
__device__ void keep(Arrays&... arrays) {
  const auto one = [](auto& x) {
    if constexpr (std::is_same_v<decltype(x), float&>) {
      asm volatile("" : "+f"(x)::"memory");
    } else {
      for (std::uint32_t& word : x.words) asm volatile("" : "+r"(word)::"memory");
    }
  };
  const auto each = [&](auto& array) {
#pragma unroll
    for (auto& x : array) one(x);
  };
  (each(arrays), ...);
}

#define REGROUP_PAIRS_4(u, l, i) \
  "+f"(u[i]), "+f"(u[i + 1]), "+f"(l[i]), "+f"(l[i + 1]), "+f"(u[i + 2]), "+f"(u[i + 3]), "+f"(l[i + 2]), "+f"(l[i + 3])
#define REGROUP_SUMS_32(u, l) \
  REGROUP_PAIRS_4(u, l, 0), REGROUP_PAIRS_4(u, l, 4), REGROUP_PAIRS_4(u, l, 8), REGROUP_PAIRS_4(u, l, 12)
#define REGROUP_SUMS_64(u, l) \
  REGROUP_SUMS_32(u, l), REGROUP_PAIRS_4(u, l, 16), REGROUP_PAIRS_4(u, l, 20), REGROUP_PAIRS_4(u, l, 24), \
      REGROUP_PAIRS_4(u, l, 28)
#define REGROUP_NAMES_32                                                                                         \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29," \
  "%30,%31"
#define REGROUP_NAMES_64                                                                                             \
  REGROUP_NAMES_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55," \
                   "%56,%57,%58,%59,%60,%61,%62,%63"

#define REGROUP_ROWS(TYPE)                                                                                    \
  asm volatile(                                                                                               \
      "{.reg .pred p; setp.ne.b32 p, %34, 0;\n"                                                               \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " {" REGROUP_NAMES_32 "}, %32, %33, p, 1, 1, 0, 0;}" \
      : REGROUP_SUMS_32(upper, lower)                                                                         \
      : "l"(left), "l"(right), "r"(static_cast<int>(adds)))
#define REGROUP_COLUMNS(TYPE, N, NAMES, SUMS, A, B, C, D, AT)                                                        \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" N "k16.f32." TYPE "." TYPE " {" NAMES "}, {" A "," B "," C "," D "}, " AT \
               ", 1, 1, 1, 1;"                                                                                        \
               : SUMS(upper, lower)                                                                                   \
               : "r"(left.words[0]), "r"(left.words[1]), "r"(left.words[2]), "r"(left.words[3]), "l"(right))

/// sums = A B^T, or added to them: both sides in shared memory.
template <class T>
__device__ void rows(std::uint64_t left, std::uint64_t right, bool adds, float* upper, float* lower) {
  if constexpr (std::is_same_v<T, float16>) {
    REGROUP_ROWS("f16");
  } else {
    REGROUP_ROWS("bf16");
  }
}
/// sums += A B: the left side in registers.
template <class T, int Eights>
__device__ void columns(const mma_left& left, std::uint64_t right, float* upper, float* lower) {
  static_assert(Eights == 8 || Eights == 16);
  if constexpr (std::is_same_v<T, float16>) {
    if constexpr (Eights == 8) {
      REGROUP_COLUMNS("f16", "64", REGROUP_NAMES_32, REGROUP_SUMS_32, "%32", "%33", "%34", "%35", "%36");
    } else {
      REGROUP_COLUMNS("f16", "128", REGROUP_NAMES_64, REGROUP_SUMS_64, "%64", "%65", "%66", "%67", "%68");
    }
  } else {
    if constexpr (Eights == 8) {
      REGROUP_COLUMNS("bf16", "64", REGROUP_NAMES_32, REGROUP_SUMS_32, "%32", "%33", "%34", "%35", "%36");
    } else {
      REGROUP_COLUMNS("bf16", "128", REGROUP_NAMES_64, REGROUP_SUMS_64, "%64", "%65", "%66", "%67", "%68");
    }
  }
}

#undef REGROUP_COLUMNS
#undef REGROUP_ROWS
#undef REGROUP_NAMES_64
#undef REGROUP_NAMES_32
#undef REGROUP_SUMS_64
#undef REGROUP_SUMS_32
#undef REGROUP_PAIRS_4

}  // namespace regroup::cuda::wgmma
#endif

// SPDX-License-Identifier: Apache-2.0
// Products of four warps as Hopper's instruction (wgmma, of sm_90a; PTX ISA 9.7.15): it reads shared memory itself and runs
// while its threads go on. Its sums lie in registers as those of the small products do (cuda/mma.hpp), 64 rows by N columns.
// Level: block.
#pragma once

#include "regroup/cuda/mma.hpp"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
namespace regroup::cuda::wgmma {

/// The types of a product of T's, for asm's constraint "C". (In `mma` it would change the code of other lines for sm_80.)
template <class T>
inline constexpr char types[] = "f32.f16.f16";
template <>
inline constexpr char types<bfloat16>[] = "f32.bf16.bf16";

/// A matrix in shared memory for the instruction: where it begins, some pieces of 16 bytes behind an address, and how many it
/// is to the next 64 columns and the next eight rows; pieces are swizzled by 128 bytes.
__device__ inline std::uint64_t descriptor(unsigned address, int piece, int next_columns, int next_rows) {
  const std::uint64_t base = address >> 4 | static_cast<std::uint64_t>(next_columns) << 16 |
                             static_cast<std::uint64_t>(next_rows) << 32 | std::uint64_t{1} << 62;
  return base + static_cast<unsigned>(piece);
}

/// Stops the compiler from moving accesses to some registers across this line. (A loop over them inside a branch would stay a
/// loop, even if told to unroll, and the registers would become memory.)
template <class... Arrays>
__device__ void keep(Arrays&... arrays) {
  const auto one = [](auto& x) {
    if constexpr (std::is_same_v<decltype(x), float&>) {
      asm volatile("" : "+f"(x)::"memory");
    } else {
      unrolled<static_cast<int>(sizeof(x.words) / 4)>([&](int i) { asm volatile("" : "+r"(x.words[i])::"memory"); });
    }
  };
  const auto each = [&]<class X, std::size_t N>(X(&array)[N]) { unrolled<static_cast<int>(N)>([&](int i) { one(array[i]); }); };
  (each(arrays), ...);
}

/// sums = A B^T, or added to them: both sides in shared memory. u and l are the sums' upper and lower rows.
template <class T>
__device__ void rows(std::uint64_t left, std::uint64_t right, bool adds, float* u, float* l) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.%35 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,"
      "%26,%27,%28,%29,%30,%31"
      "}, %32, %33, p, 1, 1, 0, 0;}"
      : "+f"(u[0]), "+f"(u[1]), "+f"(l[0]), "+f"(l[1]), "+f"(u[2]), "+f"(u[3]), "+f"(l[2]), "+f"(l[3]),
        "+f"(u[4]), "+f"(u[5]), "+f"(l[4]), "+f"(l[5]), "+f"(u[6]), "+f"(u[7]), "+f"(l[6]), "+f"(l[7]),
        "+f"(u[8]), "+f"(u[9]), "+f"(l[8]), "+f"(l[9]), "+f"(u[10]), "+f"(u[11]), "+f"(l[10]), "+f"(l[11]),
        "+f"(u[12]), "+f"(u[13]), "+f"(l[12]), "+f"(l[13]), "+f"(u[14]), "+f"(u[15]), "+f"(l[14]), "+f"(l[15])
      : "l"(left), "l"(right), "r"(static_cast<int>(adds)), "C"(types<T>));
}
/// sums += A B: the left side in registers.
template <class T, int Eights>
__device__ void columns(const mma_left& left, std::uint64_t right, float* u, float* l) {
  static_assert(Eights == 8 || Eights == 16);
  if constexpr (Eights == 8) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.%37 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,"
        "%26,%27,%28,%29,%30,%31"
        "}, {%32,%33,%34,%35}, %36, 1, 1, 1, 1;"
        : "+f"(u[0]), "+f"(u[1]), "+f"(l[0]), "+f"(l[1]), "+f"(u[2]), "+f"(u[3]), "+f"(l[2]), "+f"(l[3]),
          "+f"(u[4]), "+f"(u[5]), "+f"(l[4]), "+f"(l[5]), "+f"(u[6]), "+f"(u[7]), "+f"(l[6]), "+f"(l[7]),
          "+f"(u[8]), "+f"(u[9]), "+f"(l[8]), "+f"(l[9]), "+f"(u[10]), "+f"(u[11]), "+f"(l[10]), "+f"(l[11]),
          "+f"(u[12]), "+f"(u[13]), "+f"(l[12]), "+f"(l[13]), "+f"(u[14]), "+f"(u[15]), "+f"(l[14]), "+f"(l[15])
        : "r"(left.words[0]), "r"(left.words[1]), "r"(left.words[2]), "r"(left.words[3]), "l"(right), "C"(types<T>));
  } else {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.%69 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,"
        "%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,"
        "%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
        "}, {%64,%65,%66,%67}, %68, 1, 1, 1, 1;"
        : "+f"(u[0]), "+f"(u[1]), "+f"(l[0]), "+f"(l[1]), "+f"(u[2]), "+f"(u[3]), "+f"(l[2]), "+f"(l[3]),
          "+f"(u[4]), "+f"(u[5]), "+f"(l[4]), "+f"(l[5]), "+f"(u[6]), "+f"(u[7]), "+f"(l[6]), "+f"(l[7]),
          "+f"(u[8]), "+f"(u[9]), "+f"(l[8]), "+f"(l[9]), "+f"(u[10]), "+f"(u[11]), "+f"(l[10]), "+f"(l[11]),
          "+f"(u[12]), "+f"(u[13]), "+f"(l[12]), "+f"(l[13]), "+f"(u[14]), "+f"(u[15]), "+f"(l[14]), "+f"(l[15]),
          "+f"(u[16]), "+f"(u[17]), "+f"(l[16]), "+f"(l[17]), "+f"(u[18]), "+f"(u[19]), "+f"(l[18]), "+f"(l[19]),
          "+f"(u[20]), "+f"(u[21]), "+f"(l[20]), "+f"(l[21]), "+f"(u[22]), "+f"(u[23]), "+f"(l[22]), "+f"(l[23]),
          "+f"(u[24]), "+f"(u[25]), "+f"(l[24]), "+f"(l[25]), "+f"(u[26]), "+f"(u[27]), "+f"(l[26]), "+f"(l[27]),
          "+f"(u[28]), "+f"(u[29]), "+f"(l[28]), "+f"(l[29]), "+f"(u[30]), "+f"(u[31]), "+f"(l[30]), "+f"(l[31])
        : "r"(left.words[0]), "r"(left.words[1]), "r"(left.words[2]), "r"(left.words[3]), "l"(right), "C"(types<T>));
  }
}

}  // namespace regroup::cuda::wgmma
#endif

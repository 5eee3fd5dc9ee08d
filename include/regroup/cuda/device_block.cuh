// SPDX-License-Identifier: Apache-2.0
// The operations of cuda/block.hpp as instructions, and the one __global__ function that every kernel is launched by.
// Level: block.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "regroup/cuda/block.hpp"
#include "regroup/cuda/device_cluster.cuh"
#include "regroup/cuda/mma.hpp"

namespace regroup::cuda {

/// The block that runs this thread.
class device_block : public device_cluster {
 public:
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ index block() const { return blockIdx.x; }
  __device__ index blocks() const { return gridDim.x; }
  __device__ void barrier() { __syncthreads(); }
  __device__ bool any(bool x) { return __syncthreads_or(x) != 0; }
  template <int Width>
  __device__ void group_barrier() {
    __syncwarp(group<Width>());
  }
  template <int Width, class T>
  __device__ T shuffle_down(const T& x, int d) {
    return by_words(
        x, [&](unsigned word) { return __shfl_down_sync(group<Width>(), word, static_cast<unsigned>(d), Width); });
  }
  template <int Width, class T>
  __device__ T shuffle_up(const T& x, int d) {
    return by_words(x, [&](unsigned word) { return __shfl_up_sync(group<Width>(), word, static_cast<unsigned>(d), Width); });
  }
  template <int Width, class T>
  __device__ T shuffle_xor(const T& x, int d) {
    return by_words(x, [&](unsigned word) { return __shfl_xor_sync(group<Width>(), word, d, Width); });
  }
  template <int Width, class T>
  __device__ T broadcast(const T& x) {
    return by_words(x, [&](unsigned word) { return __shfl_sync(group<Width>(), word, 0, Width); });
  }

  template <class T>
  __device__ mma_sums mma(const mma_left& a, const mma_right& b, mma_sums c) {
    float* const s = c.sums;
    if constexpr (std::is_same_v<T, float16>) {
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                   : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                   : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]), "r"(b.words[1]));
    } else if constexpr (std::is_same_v<T, bfloat16>) {
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                   : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                   : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]), "r"(b.words[1]));
    } else {
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                   : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                   : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]), "r"(a.words[3]), "r"(b.words[0]), "r"(b.words[1]));
    }
    return c;
  }

  template <class T>
  __device__ std::uint32_t narrowed(float x, float y) {
    std::uint32_t word;
    if constexpr (std::is_same_v<T, float16>) {
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(y), "f"(x));
    } else {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(y), "f"(x));
    }
    return word;
  }

  __device__ float exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }

  template <class T>
  struct array {
    T* first;
    __device__ T get(int i) const { return first[i]; }
    __device__ void set(int i, const T& x) const { first[i] = x; }
  };
  template <class T, int N>
  __device__ array<T> shared() {
    __shared__ alignas(T) unsigned char bytes[sizeof(T) * N];
    return {reinterpret_cast<T*>(bytes)};
  }
  template <class T, int N>
  __device__ array<T> shared_of(int rank) {
    return {of_block(shared<T, N>().first, rank)};
  }

  template <bool Transposed>
  __device__ mma_left matrices(const array<mma_row>& x, int i) {
    mma_left m;
    if constexpr (Transposed) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(m.words[0]), "=r"(m.words[1]), "=r"(m.words[2]), "=r"(m.words[3]) : "r"(address(x, i)) : "memory");
    } else {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(m.words[0]), "=r"(m.words[1]), "=r"(m.words[2]), "=r"(m.words[3]) : "r"(address(x, i)) : "memory");
    }
    return m;
  }
  template <class T>
  __device__ void copy(const array<T>& to, int i, const void* from, bool is_there) {
    static_assert(sizeof(T) == 16);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(address(to, i)), "l"(__cvta_generic_to_global(from)), "r"(is_there ? 16 : 0) : "memory");
  }
  __device__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

 private:
  template <class T>
  __device__ static unsigned address(const array<T>& x, int i) {
    return static_cast<unsigned>(__cvta_generic_to_shared(x.first + i));
  }
  /// This thread's group within its warp.
  template <int Width>
  __device__ static unsigned group() {
    if constexpr (Width == warp_threads) {
      return ~0u;
    } else {
      return ((1u << Width) - 1) << (threadIdx.x % warp_threads / Width * Width);
    }
  }
  /// The value whose every word went through f: 32 bits at a time, or the largest unit that fills T.
  template <class T, class F>
  __device__ static T by_words(const T& x, const F& f) {
    using unit = std::conditional_t<sizeof(T) % 4 == 0, unsigned,
                                    std::conditional_t<sizeof(T) % 2 == 0, unsigned short, unsigned char>>;
    struct words {
      unit at[sizeof(T) / sizeof(unit)];
    };
    words w = std::bit_cast<words>(x);
    for (unit& word : w.at) word = static_cast<unit>(f(word));
    return std::bit_cast<T>(w);
  }
};

/// Runs a kernel object: `run_kernel<<<blocks, threads_of<Kernel>, 0, stream>>>(kernel)`.
template <class Kernel>
__global__ void __launch_bounds__(threads_of<Kernel>, resident_blocks<Kernel>) run_kernel(const __grid_constant__ Kernel kernel) {
  device_block here;
  kernel(here);
}

}  // namespace regroup::cuda

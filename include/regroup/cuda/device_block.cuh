// SPDX-License-Identifier: Apache-2.0
// The operations of cuda/block.hpp as instructions, and the one __global__ function that every kernel is launched by.
// Level: block.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "regroup/cuda/block.hpp"

namespace regroup::cuda {

/// The block that runs this thread.
class device_block {
 public:
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ index block() const { return blockIdx.x; }
  __device__ index blocks() const { return gridDim.x; }
  __device__ void barrier() { __syncthreads(); }
  template <int Width>
  __device__ void group_barrier() {
    __syncwarp(group<Width>());
  }
  template <int Width, class T>
  __device__ T shuffle_down(const T& x, int d) {
    return by_words(x, [&](unsigned word) { return __shfl_down_sync(group<Width>(), word, static_cast<unsigned>(d), Width); });
  }
  template <int Width, class T>
  __device__ T shuffle_up(const T& x, int d) {
    return by_words(x, [&](unsigned word) { return __shfl_up_sync(group<Width>(), word, static_cast<unsigned>(d), Width); });
  }
  template <int Width, class T>
  __device__ T broadcast(const T& x) {
    return by_words(x, [&](unsigned word) { return __shfl_sync(group<Width>(), word, 0, Width); });
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

 private:
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

/// Runs a kernel object: `run_kernel<<<blocks, block_threads, 0, stream>>>(kernel)`.
template <class Kernel>
__global__ void __launch_bounds__(block_threads, resident_blocks<Kernel>) run_kernel(const __grid_constant__ Kernel kernel) {
  device_block here;
  kernel(here);
}

}  // namespace regroup::cuda

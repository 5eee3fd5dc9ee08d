// SPDX-License-Identifier: Apache-2.0
// The operations of cuda/cluster.hpp as instructions. Code compiled for what is older than sm_90 has no clusters: there
// every block is one of its own, and must not be launched in a larger one. Level: block.
#pragma once

#include <cstdint>

#include "regroup/cuda/cluster.hpp"

namespace regroup::cuda {

inline constexpr int oldest_with_clusters = 90;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
class device_cluster {
 public:
  __device__ int cluster_rank() const {
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
  }
  __device__ int cluster_blocks() const {
    int blocks;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    return blocks;
  }
  /// Only threads that have written fence their writes, so that not all wait for a row's stores to global memory.
  __device__ void cluster_arrive(bool has_written) {
    if (has_written) asm volatile("fence.acq_rel.cluster;" ::: "memory");
    __syncwarp();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  }
  __device__ void cluster_wait() {
    __syncwarp();
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  }

 protected:
  /// The address in the shared memory of block `rank` that corresponds to `own` in this block's.
  template <class T>
  __device__ T* of_block(T* own, int rank) const {
    std::uint64_t there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(reinterpret_cast<std::uint64_t>(own)), "r"(rank));
    return reinterpret_cast<T*>(there);
  }
};
#else
class device_cluster {
 public:
  __device__ int cluster_rank() const { return 0; }
  __device__ int cluster_blocks() const { return 1; }
  __device__ void cluster_arrive(bool) {}
  __device__ void cluster_wait() { __syncthreads(); }

 protected:
  template <class T>
  __device__ T* of_block(T* own, int) const {
    return own;
  }
};
#endif

}  // namespace regroup::cuda

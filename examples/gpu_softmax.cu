// SPDX-License-Identifier: Apache-2.0
// Softmax's (max, scaled_sum) on a GPU: the monoid object is CUB's operator at the scope of a block and of the device, and
// the same object folds in the contract's order, with the bits of a CPU.
#include <cstdio>
#include <vector>

#include <cub/block/block_reduce.cuh>

#include "regroup/cuda/unordered.cuh"
#include "regroup/regroup.hpp"

using softmax = regroup::log_sum_exp<float>;  // state (m, s); combine: the larger m wins, the other s is rescaled
using state = regroup::state_of<softmax>;

__global__ void softmax_rows(const float* x, float* y) {  // a block for each row of 256
  using reduction = cub::BlockReduce<state, 256>;
  __shared__ typename reduction::TempStorage storage;
  __shared__ state row;
  const float mine = x[blockIdx.x * 256 + threadIdx.x];
  const state s = reduction(storage).Reduce(softmax{}.lift(mine), softmax{});
  if (threadIdx.x == 0) row = s;
  __syncthreads();
  y[blockIdx.x * 256 + threadIdx.x] = regroup::math::exp(mine - row.m) / row.s;
}

int main() try {
  const regroup::cuda::device gpu;
  const std::vector<float> host(512, 1.5f);
  const regroup::cuda::device_buffer memory(2 * 512 * sizeof(float), gpu.stream());
  const regroup::cuda::device_view<float> x(static_cast<float*>(memory.data()), {512});
  cudaMemcpy(x.data(), host.data(), 512 * sizeof(float), cudaMemcpyHostToDevice);
  softmax_rows<<<2, 256>>>(x.data(), x.data() + 512);
  std::printf("any order %g\n", regroup::reduce(gpu.with(regroup::cuda::not_guaranteed), x, softmax{}));
  std::printf("in order  %g, on a CPU %g\n", regroup::reduce(gpu, x, softmax{}),
              regroup::reduce(regroup::seq, host, softmax{}));
} catch (const regroup::cuda::no_device_error& e) {
  std::puts(e.what());
  return 77;
}

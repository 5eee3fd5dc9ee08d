// SPDX-License-Identifier: Apache-2.0
// The README's own monoid, unchanged, in cub::DeviceReduce, in cub::BlockReduce and in our row kernels; softmax's
// (max, scaled_sum) beside it. Each answers as a CPU does, but for rounding.
#include <cub/block/block_reduce.cuh>
#include <cub/device/device_reduce.cuh>
#include "max_sum.hpp"
#include "regroup/cuda/device.cuh"
#include "regroup/regroup.hpp"
namespace gpu = regroup::cuda;

__global__ void block_a_row(auto m, const float* x, float* y) {
  using reduction = cub::BlockReduce<decltype(m.identity()), 256>;
  __shared__ typename reduction::TempStorage storage;
  const auto s = reduction(storage).Reduce(m.lift(x[blockIdx.x * 256 + threadIdx.x]), m);
  if (threadIdx.x == 0) y[blockIdx.x] = m.lower(s);
}

bool agrees(const auto& m) {
  struct shared {  // by host and device
    float x[100][256], by_blocks[100], by_rows[100];
    decltype(m.identity()) all;
    char storage[1 << 16];
  }* on;
  cudaMallocManaged(&on, sizeof *on);
  for (int i = 0; i < 25'600; ++i) on->x[i / 256][i % 256] = static_cast<float>(i * 7919 % 2003) / 100;
  std::size_t bytes = sizeof on->storage;
  cub::DeviceReduce::TransformReduce(on->storage, bytes, on->x[0], &on->all, 25'600, m, regroup::lifting(m), m.identity());
  block_a_row<<<100, 256>>>(m, on->x[0], on->by_blocks);
  regroup::reduce_rows(gpu::device{}, gpu::device_view(on->x[0], {100, 256}), gpu::device_view(on->by_rows, {100}), m);
  std::vector<float> rows(100);
  regroup::reduce_rows(regroup::seq, regroup::view(on->x[0], {100, 256}), rows, m);
  const auto near = [](float a, float b) { return std::abs(a - b) <= 1e-5f * b; };
  return near(m.lower(on->all), regroup::reduce(regroup::seq, std::span(on->x[0], 25'600), m)) &&
         std::ranges::equal(on->by_blocks, rows, near) && std::ranges::equal(on->by_rows, rows, near);
}

int main() {
  if (int count = 0; cudaGetDeviceCount(&count) != cudaSuccess) return std::puts("no GPU: nothing to show"), 77;
  return agrees(fixed{}) && agrees(regroup::log_sum_exp<float>{}) ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// The same monoid on a GPU, where there is one.
#include "average.hpp"

#include <cuda_runtime.h>
#include <regroup/cuda/device.cuh>
#include <regroup/cuda/reduce.cuh>

int main() {
  if (int devices = 0; cudaGetDeviceCount(&devices) != cudaSuccess) return 77;
  constexpr std::int64_t n = 100'001;
  double* xs = nullptr;
  if (cudaMallocManaged(&xs, n * sizeof(double)) != cudaSuccess) return 1;
  for (std::int64_t i = 0; i < n; ++i) xs[i] = static_cast<double>(i);
  const regroup::cuda::device gpu;
  return regroup::reduce(gpu, regroup::cuda::device_view<const double>(xs, {n}), average{}) == 50'000 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
#include "gpu.cuh"

namespace regroup::tool {

std::unique_ptr<const gpu> open_gpu() {
  std::string why_not;
  if (!find_gpu(why_not)) {
    throw error("--device cuda needs an NVIDIA GPU and a driver as new as CUDA " + std::to_string(CUDART_VERSION / 1000) +
                "; found none (" + why_not + "); use --device cpu");
  }
  return std::make_unique<const cuda_gpu>();
}

std::optional<gpu_description> find_gpu(std::string& why_not) {
  int count = 0, current = 0;
  cudaDeviceProp of{};
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count == 0) status = cudaErrorNoDevice;
  if (status == cudaSuccess) status = cudaGetDevice(&current);
  if (status == cudaSuccess) status = cudaGetDeviceProperties(&of, current);
  if (status == cudaSuccess) return gpu_description{of.name, of.major, of.minor, of.totalGlobalMem};
  cudaGetLastError();  // said here, so that no later call says it again
  why_not = cudaGetErrorString(status);
  return std::nullopt;
}

}  // namespace regroup::tool

// SPDX-License-Identifier: Apache-2.0
// Replaces cuda/*.cu in a build without nvcc.
#include "gpu.hpp"
#include "regroup/error.hpp"

namespace regroup::tool {

std::unique_ptr<const gpu> open_gpu() {
  throw error("--device cuda: this program was built without CUDA; build it where nvcc is, or use --device cpu");
}

std::optional<gpu_description> find_gpu(std::string& why_not) {
  why_not = "built without CUDA";
  return std::nullopt;
}

}  // namespace regroup::tool

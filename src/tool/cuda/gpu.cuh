// SPDX-License-Identifier: Apache-2.0
// The tool's GPU: cuda::device over copies of plain arrays. One verb a file.
#pragma once

#include "../gpu.hpp"
#include "regroup/cuda/device.cuh"

namespace regroup::tool {

class cuda_gpu final : public gpu {
 public:
  void softmax(const plain_rows& x, void* lse, bool log, double scale) const override;
  void reduce(const plain_rows& x, index first, std::span<const reduction> all) const override;
  void scan(const plain_rows& x, const std::string& monoid, element result, bool exclusive) const override;
  void attention(const plain_attention& a) const override;

 private:
  cuda::device on_;
};

/// Elements in device memory; gone with the object.
template <class T>
class device_array {
 public:
  device_array(const cuda::device& on, index count)
      : on_(on), bytes_(static_cast<std::size_t>(count) * sizeof(T)), memory_(bytes_, on.stream()) {}
  /// A copy.
  device_array(const cuda::device& on, const void* from, index count) : device_array(on, count) {
    if (bytes_ > 0) cuda::check(cudaMemcpyAsync(data(), from, bytes_, cudaMemcpyHostToDevice, on.stream()), "copying in");
  }
  [[nodiscard]] T* data() const { return static_cast<T*>(memory_.data()); }
  [[nodiscard]] cuda::device_view<T> view(const extents& shape) const { return {data(), shape}; }
  void copy_to(void* to) const {
    if (bytes_ > 0) cuda::check(cudaMemcpyAsync(to, data(), bytes_, cudaMemcpyDeviceToHost, on_.stream()), "copying out");
    on_.synchronize();
  }

 private:
  const cuda::device& on_;
  std::size_t bytes_;
  cuda::device_buffer memory_;
};

}  // namespace regroup::tool

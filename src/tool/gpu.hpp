// SPDX-License-Identifier: Apache-2.0
// The interface behind `--device cuda`: the verbs over plain arrays in the CPU's memory, with the bits of the CPU. It names no
// type of CUDA. It is implemented by cuda/*.cu in a build with nvcc, and by gpu_none.cpp in any other.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "members.hpp"
#include "regroup/algorithms/attention_masks.hpp"

namespace regroup::tool {

/// `count` consecutive rows of `length` consecutive elements: float, double, std::int64_t, or a byte that is 0 or 1, by `type`
/// (float32, float64, int64, boolean). For a scan with affine, elements are pairs.
struct plain_rows {
  element type;
  void* data;
  index count, length;
};

/// One monoid of a reduction, and where its answers go.
struct reduction {
  monoid_name monoid;
  target to;
};

/// An array in C order.
template <class T>
struct plain_array {
  std::vector<T> data;
  extents shape;
};

/// One call of attention. Lengths and table stay empty where there are none; ignored entries of a table are 0.
struct plain_attention {
  plain_array<float> q, k, v;
  plain_array<int> lengths = {}, table = {};
  std::optional<double> scale = {};
  std::optional<softcap> cap = {};
  std::optional<plain_array<float>> alibi = {}, bias = {}, sinks = {};
  std::optional<plain_array<std::uint8_t>> seen = {};
  std::optional<causal> triangle = {};
  std::optional<window> band = {};
  extents out_shape, lse_shape = {};
  float* out;
  float* lse;  // or null
};

class gpu {
 public:
  virtual ~gpu() = default;
  /// softmax, or its logarithm, of float or double rows, in place. `lse` has one element of their type a row, or is null.
  virtual void softmax(const plain_rows& x, void* lse, bool log, double scale) const = 0;
  /// Row r of x is row `first` + r of every result.
  virtual void reduce(const plain_rows& x, index first, std::span<const reduction> all) const = 0;
  /// In place. `result` is the element type of the result's file.
  virtual void scan(const plain_rows& x, const std::string& monoid, element result, bool exclusive) const = 0;
  virtual void attention(const plain_attention& a) const = 0;
};

/// The current GPU. Throws error, in one sentence, where there is none or this program is built without CUDA.
std::unique_ptr<const gpu> open_gpu();

struct gpu_description {
  std::string name;
  int major, minor;  // of the compute capability
  std::size_t bytes;
};
/// Empty where open_gpu would throw; `why_not` then says why, in a few words.
std::optional<gpu_description> find_gpu(std::string& why_not);

}  // namespace regroup::tool

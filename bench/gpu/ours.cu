// SPDX-License-Identifier: Apache-2.0
// Ours, and CUB's own sums, as C functions over device pointers: run.py times them on the tensors of its peers. A call is
// made twice: without a workspace it says how many bytes it wants. Errors come back as their sentence.
#include <cstdint>
#include <string>
#include <string_view>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "regroup/cuda/attention.cuh"
#include "regroup/cuda/softmax.cuh"
#include "regroup/cuda/unordered.cuh"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/log_sum_exp.hpp"

namespace ours {  // named: beside ::cuda an alias in no namespace is ambiguous

namespace cuda = regroup::cuda;
using regroup::bfloat16;
using regroup::float16;
using regroup::index;
using regroup::scan_kind;

/// shape: rows, columns; or heads, key heads, queries, keys, d, of pages so many keys. arrays: x, y; x, offsets, y; or q, k,
/// v, out; of pages q, k, v, table, out.
struct request {
  const std::int64_t* shape;
  void* const* arrays;
  const cuda::workspace* memory;  // null: asked for the bytes
  cuda::device on;

  template <class X>
  [[nodiscard]] X* at(int i) const {
    return static_cast<X*>(arrays[i]);
  }
  [[nodiscard]] index count() const { return shape[0] * shape[1]; }
  template <class X>
  [[nodiscard]] cuda::device_view<X> range(int i) const {
    return {at<X>(i), {count()}};
  }
  template <class X>
  [[nodiscard]] cuda::device_view<X> rows(int i) const {
    return {at<X>(i), {shape[0], shape[1]}};
  }
};

using fast = cuda::unordered_device;  // CUB's order
template <class Device>
Device executor(const request& r) {
  if constexpr (std::same_as<Device, fast>) {
    return r.on.with(cuda::not_guaranteed);
  } else if constexpr (std::same_as<Device, cuda::tensor_device>) {
    return r.on.with(cuda::tensor_cores);
  } else {
    return r.on;
  }
}

template <class X, class M, class Device = cuda::device>
std::size_t reduced(const request& r) {
  const auto on = executor<Device>(r);
  if (r.memory == nullptr) return reduce_workspace(on, r.range<const X>(0), M{});
  reduce_into(on, r.range<const X>(0), cuda::device_view<float>(r.at<float>(1), {1}), M{}, *r.memory);
  return 0;
}
/// Offsets have one entry more than there are columns: rows are the elements.
template <class M, class Device = cuda::device>
std::size_t reduced_segments(const request& r) {
  const auto on = executor<Device>(r);
  const cuda::device_view<const float> x(r.at<const float>(0), {r.shape[0]});
  const cuda::device_view<const int> offsets(r.at<const int>(1), {r.shape[1] + 1});
  if (r.memory == nullptr) return reduce_segments_workspace(on, x, offsets, M{});
  reduce_segments_into(on, x, offsets, cuda::device_view<float>(r.at<float>(2), {r.shape[1]}), M{}, *r.memory);
  return 0;
}
template <class M, class Device = cuda::device>
std::size_t scanned(const request& r) {
  const auto on = executor<Device>(r);
  if (r.memory == nullptr) return scan_workspace(on, r.range<const float>(0), M{});
  inclusive_scan_into(on, r.range<const float>(0), r.range<float>(1), M{}, *r.memory);
  return 0;
}

/// Any call of CUB's: asked for its storage, or run.
template <class Call>
std::size_t called(const request& r, const Call& call) {
  const auto on = executor<fast>(r);
  if (r.memory == nullptr) return on.bytes_of(call);
  on.run(call, *r.memory);
  return 0;
}
/// X is CUDA's own type: sums are of float.
template <class X>
std::size_t summed_by_cub(const request& r) {
  return called(r, [&](void* storage, std::size_t& bytes) {
    return cub::DeviceReduce::Reduce(storage, bytes, r.at<const X>(0), r.at<float>(1), r.count(), ::cuda::std::plus<float>{},
                                     0.0f, r.on.stream());
  });
}
std::size_t scanned_by_cub(const request& r) {
  return called(r, [&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(storage, bytes, r.at<const float>(0), r.at<float>(1), r.count(),
                                         r.on.stream());
  });
}
template <class X>
std::size_t softmaxed(const request& r) {
  if (r.memory == nullptr) return regroup::softmax_workspace(r.on, r.rows<const X>(0));
  regroup::softmax_into(r.on, r.rows<const X>(0), r.rows<X>(1), *r.memory);
  return 0;
}
template <class X>
std::size_t log_summed(const request& r) {
  if (r.memory == nullptr) return regroup::softmax_workspace(r.on, r.rows<const X>(0));
  regroup::logsumexp_into(r.on, r.rows<const X>(0), cuda::device_view<float>(r.at<float>(1), {r.shape[0]}), *r.memory);
  return 0;
}

/// One request: (heads, queries, d) over (key heads, keys, d), or over pools (pages, key heads, page size, d).
template <class X, bool ArePaged>
cuda::attention_keys<X> keys_of(const request& r) {
  const index key_heads = r.shape[1], keys = r.shape[3], d = r.shape[4];
  const auto place = [&](int i, const regroup::shape& extents) {
    return cuda::device_view<const X>(r.at<const X>(i), extents);
  };
  if constexpr (ArePaged) {
    const index pages = keys / r.shape[5];
    const regroup::shape pool{pages, key_heads, r.shape[5], d};
    return cuda::paged(place(1, pool), place(2, pool), cuda::device_view<const int>(r.at<const int>(3), {1, pages}));
  } else {
    return cuda::dense(place(1, {1, key_heads, keys, d}), place(2, {1, key_heads, keys, d}));
  }
}
template <class X, class Mask, class Device, bool ArePaged = false>
std::size_t attended(const request& r) {
  const auto on = executor<Device>(r);
  const regroup::shape extents{1, r.shape[0], r.shape[2], r.shape[4]};
  const cuda::device_view<const X> q(r.at<const X>(0), extents);
  const cuda::device_view<X> out(r.at<X>(ArePaged ? 4 : 3), extents);
  const auto keys = keys_of<X, ArePaged>(r);
  const cuda::attention_options<Mask> options{.mask = Mask{}};
  if (r.memory == nullptr) return attention_workspace(on, q, keys, out, options);
  attention_into(on, q, keys, out, *r.memory, options);
  return 0;
}

struct entry {
  const char* name;
  std::size_t (*call)(const request&);
};
using plus = regroup::plus<float>;
using log_sum = regroup::log_sum_exp<float>;
using full = regroup::no_mask;
using regroup::causal;
using plain = cuda::device;
using tensor = cuda::tensor_device;
constexpr entry entries[] = {
    {"reduce/plus/fp32", reduced<float, plus>},
    {"reduce/plus/fp16", reduced<float16, plus>},
    {"reduce/plus/bf16", reduced<bfloat16, plus>},
    {"reduce/plus/fp32 cub", summed_by_cub<float>},
    {"reduce/plus/fp16 cub", summed_by_cub<__half>},
    {"reduce/plus/bf16 cub", summed_by_cub<__nv_bfloat16>},
    {"reduce/log_sum_exp/fp32", reduced<float, log_sum>},
    {"reduce/log_sum_exp/fp16", reduced<float16, log_sum>},
    {"reduce/log_sum_exp/bf16", reduced<bfloat16, log_sum>},
    {"reduce/log_sum_exp/fp32 unordered", reduced<float, log_sum, fast>},
    {"reduce/log_sum_exp/fp16 unordered", reduced<float16, log_sum, fast>},
    {"reduce/log_sum_exp/bf16 unordered", reduced<bfloat16, log_sum, fast>},
    {"reduce_segments/plus/fp32", reduced_segments<plus>},
    {"reduce_segments/plus/fp32 unordered", reduced_segments<plus, fast>},
    {"reduce_segments/log_sum_exp/fp32", reduced_segments<log_sum>},
    {"reduce_segments/log_sum_exp/fp32 unordered", reduced_segments<log_sum, fast>},
    {"scan/plus/fp32", scanned<plus>},
    {"scan/plus/fp32 cub", scanned_by_cub},
    {"scan/log_sum_exp/fp32", scanned<log_sum>},
    {"scan/log_sum_exp/fp32 unordered", scanned<log_sum, fast>},
    {"softmax/rows/fp32", softmaxed<float>},
    {"softmax/rows/bf16", softmaxed<bfloat16>},
    {"logsumexp/rows/fp32", log_summed<float>},
    {"logsumexp/rows/bf16", log_summed<bfloat16>},
    {"attention/full/fp32", attended<float, full, plain>},
    {"attention/causal/fp32", attended<float, causal, plain>},
    {"attention/full/fp16", attended<float16, full, plain>},
    {"attention/causal/fp16", attended<float16, causal, plain>},
    {"attention/full/bf16", attended<bfloat16, full, plain>},
    {"attention/causal/bf16", attended<bfloat16, causal, plain>},
    {"attention/full/fp32 fast", attended<float, full, tensor>},
    {"attention/causal/fp32 fast", attended<float, causal, tensor>},
    {"attention/full/fp16 fast", attended<float16, full, tensor>},
    {"attention/causal/fp16 fast", attended<float16, causal, tensor>},
    {"attention/full/bf16 fast", attended<bfloat16, full, tensor>},
    {"attention/causal/bf16 fast", attended<bfloat16, causal, tensor>},
    {"decode/full/bf16", attended<bfloat16, full, plain>},
    {"decode/full/bf16 fast", attended<bfloat16, full, tensor>},
    {"decode/paged/bf16", attended<bfloat16, full, plain, true>},
    {"decode/paged/bf16 fast", attended<bfloat16, full, tensor, true>},
};

thread_local std::string sentence;

}  // namespace ours

extern "C" {

/// The name of entry i, or null past the last.
const char* regroup_gpu_name(int i) {
  return i < static_cast<int>(std::size(ours::entries)) ? ours::entries[i].name : nullptr;
}

/// Runs an entry, or with a null `memory` stores in *bytes what it needs. Null, or what went wrong.
const char* regroup_gpu_call(const char* name, const std::int64_t* shape, void* const* arrays, void* memory,
                             std::int64_t* bytes, cudaStream_t stream) {
  try {
    for (const ours::entry& e : ours::entries) {
      if (std::string_view(name) != e.name) continue;
      const regroup::cuda::workspace given{memory, static_cast<std::size_t>(*bytes)};
      const regroup::cuda::device on(stream);
      const std::size_t wanted = e.call({shape, arrays, memory == nullptr ? nullptr : &given, on});
      if (memory == nullptr) *bytes = static_cast<std::int64_t>(wanted);
      return nullptr;
    }
    ours::sentence = std::string("there is no entry called ") + name;
  } catch (const std::exception& e) {
    ours::sentence = e.what();
  }
  return ours::sentence.c_str();
}
}

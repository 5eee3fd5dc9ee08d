// SPDX-License-Identifier: Apache-2.0
// Ours, and CUB's own sums, as C functions over device pointers: run.py times them on the tensors of its peers. A call is
// made twice: without a workspace it says how many bytes it wants. Errors come back as their sentence.
#include <cstdint>
#include <string>
#include <string_view>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

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

/// shape: rows, columns; or heads, key heads, queries, keys, d. arrays: x, y; or q, k, v, out.
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

template <class X, class M>
std::size_t reduced(const request& r) {
  const M m;
  if (r.memory == nullptr) return reduce_workspace(r.on, r.range<const X>(0), m);
  reduce_into(r.on, r.range<const X>(0), cuda::device_view<float>(r.at<float>(1), {1}), m, *r.memory);
  return 0;
}
/// Any call of CUB's: asked for its storage, or run.
template <class Call>
std::size_t called(const request& r, const Call& call) {
  const auto fast = r.on.with(cuda::not_guaranteed);
  if (r.memory == nullptr) return fast.bytes_of(call);
  fast.run(call, *r.memory);
  return 0;
}
/// Leaves the state.
template <class X, class M>
std::size_t reduced_unordered(const request& r) {
  return called(r, cuda::cub_reduce(r.on.with(cuda::not_guaranteed), r.range<const X>(0), M{}, std::identity{},
                                    r.at<regroup::state_of<M>>(1)));
}
template <class X>
std::size_t summed_by_cub(const request& r) {
  return called(r, [&](void* storage, std::size_t& bytes) {
    return cub::DeviceReduce::Sum(storage, bytes, r.at<const X>(0), r.at<X>(1), r.count(), r.on.stream());
  });
}
template <class M>
std::size_t scanned(const request& r) {
  if (r.memory == nullptr) return scan_workspace(r.on, r.range<const float>(0), M{});
  inclusive_scan_into(r.on, r.range<const float>(0), r.range<float>(1), M{}, *r.memory);
  return 0;
}
template <class M>
std::size_t scanned_unordered(const request& r) {
  return called(r, cuda::cub_scan<scan_kind::inclusive>(r.on.with(cuda::not_guaranteed), r.range<const float>(0),
                                                        r.range<float>(1), M{}, std::identity{}));
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

/// Of one batch: (heads, queries, d) over (key heads, keys, d).
template <class X, class Mask, class Device>
std::size_t attended_on(const Device& on, const request& r) {
  const index heads = r.shape[0], key_heads = r.shape[1], queries = r.shape[2], keys = r.shape[3], d = r.shape[4];
  const cuda::device_view<const X> q(r.at<const X>(0), {heads, queries, d});
  const auto kv = cuda::dense(cuda::device_view<const X>(r.at<const X>(1), {key_heads, keys, d}),
                              cuda::device_view<const X>(r.at<const X>(2), {key_heads, keys, d}));
  const cuda::device_view<X> out(r.at<X>(3), {heads, queries, d});
  const cuda::attention_options<Mask> options{.mask = Mask{}};
  if (r.memory == nullptr) return attention_workspace(on, q, kv, out, options);
  attention_into(on, q, kv, out, *r.memory, options);
  return 0;
}
template <class X, class Mask = regroup::no_mask>
std::size_t attended(const request& r) {
  return attended_on<X, Mask>(r.on, r);
}
template <class X, class Mask = regroup::no_mask>
std::size_t attended_fast(const request& r) {
  return attended_on<X, Mask>(r.on.with(cuda::tensor_cores), r);
}

struct entry {
  const char* name;
  std::size_t (*call)(const request&);
};
using log_sum = regroup::log_sum_exp<float>;
constexpr entry entries[] = {
    {"reduce/plus/fp32", reduced<float, regroup::plus<float>>},
    {"reduce/log_sum_exp/fp32", reduced<float, log_sum>},
    {"reduce/log_sum_exp/fp16", reduced<float16, log_sum>},
    {"reduce/log_sum_exp/bf16", reduced<bfloat16, log_sum>},
    {"reduce/log_sum_exp/fp32 unordered", reduced_unordered<float, log_sum>},
    {"reduce/log_sum_exp/fp16 unordered", reduced_unordered<float16, log_sum>},
    {"reduce/log_sum_exp/bf16 unordered", reduced_unordered<bfloat16, log_sum>},
    {"reduce/plus/fp32 cub", summed_by_cub<float>},
    {"scan/plus/fp32", scanned<regroup::plus<float>>},
    {"scan/log_sum_exp/fp32", scanned<log_sum>},
    {"scan/log_sum_exp/fp32 unordered", scanned_unordered<log_sum>},
    {"scan/plus/fp32 cub", scanned_by_cub},
    {"softmax/rows/fp32", softmaxed<float>},
    {"softmax/rows/bf16", softmaxed<bfloat16>},
    {"logsumexp/rows/fp32", log_summed<float>},
    {"logsumexp/rows/bf16", log_summed<bfloat16>},
    {"attention/full/fp32", attended<float>},
    {"attention/causal/fp32", attended<float, regroup::causal>},
    {"attention/full/bf16", attended<bfloat16>},
    {"attention/causal/bf16", attended<bfloat16, regroup::causal>},
    {"decode/full/bf16", attended<bfloat16>},
    {"attention/full/fp32 fast", attended_fast<float>},
    {"attention/causal/fp32 fast", attended_fast<float, regroup::causal>},
    {"attention/full/bf16 fast", attended_fast<bfloat16>},
    {"attention/causal/bf16 fast", attended_fast<bfloat16, regroup::causal>},
    {"decode/full/bf16 fast", attended_fast<bfloat16>},
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

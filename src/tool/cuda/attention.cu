// SPDX-License-Identifier: Apache-2.0
#include "../gpu_rules.hpp"
#include "gpu.cuh"
#include "regroup/cuda/attention.cuh"

namespace regroup::tool {
namespace {

/// A copy on the device, and a view of it.
template <class T>
struct copied {
  device_array<T> memory;
  cuda::device_view<const T> view;
  copied(const cuda::device& on, const plain_array<T>& x)
      : memory(on, x.data.data(), static_cast<index>(x.data.size())), view(memory.data(), x.shape) {}
};
template <class T>
class copied_if_given {
 public:
  copied_if_given(const cuda::device& on, const plain_array<T>* x) {  // which stays until the stream has read it
    if (x != nullptr) copy_.emplace(on, *x);
  }
  template <class Mask>
  [[nodiscard]] std::optional<Mask> as() const {
    return copy_ ? std::optional<Mask>(Mask{copy_->view}) : std::nullopt;
  }

 private:
  std::optional<copied<T>> copy_;
};

/// Without a shape there is none.
const plain_array<int>* if_any(const plain_array<int>& x) { return x.shape.size() > 0 ? &x : nullptr; }
template <class T>
const plain_array<T>* if_any(const std::optional<plain_array<T>>& x) {
  return x ? &*x : nullptr;
}

}  // namespace

void cuda_gpu::attention(const plain_attention& a) const {
  const copied q(on_, a.q), k(on_, a.k), v(on_, a.v);
  const copied_if_given lengths(on_, if_any(a.lengths)), table(on_, if_any(a.table));
  const copied_if_given alibi(on_, if_any(a.alibi)), bias(on_, if_any(a.bias)), sinks(on_, if_any(a.sinks));
  const copied_if_given seen(on_, if_any(a.seen));
  const device_array<float> out(on_, count_of(a.out_shape));
  const device_array<float> lse(on_, a.lse != nullptr ? count_of(a.lse_shape) : 0);

  using integers = cuda::device_view<const int>;
  const cuda::attention_keys<float> keys{k.view, v.view, lengths.as<integers>(), table.as<integers>()};
  cuda::attention_options options{
      .scale = a.scale,
      .mask = given_masks(std::tuple(a.cap, alibi.as<cuda::alibi>(), bias.as<cuda::additive<float>>(),
                                     seen.as<cuda::boolean<std::uint8_t>>(), a.triangle, a.band)),
      .sinks = sinks.as<cuda::device_view<const float>>()};
  if (a.lse != nullptr) options.logsumexp = lse.view(a.lse_shape);
  regroup::attention(on_, q.view, keys, out.view(a.out_shape), options);
  out.copy_to(a.out);
  if (a.lse != nullptr) lse.copy_to(a.lse);
}

}  // namespace regroup::tool

// SPDX-License-Identifier: Apache-2.0
// attention on a GPU, in the contract's order: `attention(cuda::device{stream}, q, cuda::dense(k, v), out,
// cuda::attention_options{.mask = causal{}, .logsumexp = lse})` has the bits of `attention(seq, ...)`, with any batch, grid
// and device. It uses plain multiply-adds and is the specification of faster kernels. `device.with(tensor_cores)` gives the
// bits of one kind of device instead, still with any batch, grid and pages. Level: device.
#pragma once

#include "regroup/cuda/attention_masks.hpp"
#include "regroup/cuda/attention_mma.hpp"
#include "regroup/cuda/attention_states.hpp"
#include "regroup/cuda/device.cuh"

namespace regroup {

namespace cuda {

/// An executor of attention on tensor cores. `device::with` makes it.
class tensor_device : public device {
 public:
  explicit tensor_device(const device& on) : device(on) {}
};
inline tensor_device device::with(tensor_cores_t) const { return tensor_device(*this); }

template <class Device>
concept attention_device = std::same_as<Device, device> || std::same_as<Device, tensor_device>;
template <class Out>
concept attention_output = is_device_view<Out> || std::same_as<Out, attention_states<float>>;
template <class Device>
using arithmetic_of = std::conditional_t<std::same_as<Device, tensor_device>, tensor_arithmetic, plain_arithmetic>;
template <class Device, class T, class Rule, class Out>
attention_plan plan_for(const Device& on, const attention_work<T, Rule, Out>& work) {
  return plan_attention<arithmetic_of<Device>>(work.call, work.leaves, on.processors(), on.block_bytes());
}
template <class Device, class T, class Rule, class Out>
void attend(const Device& on, const attention_work<T, Rule, Out>& work, const workspace& w) {
  const attention_plan plan = plan_for(on, work);
  w.require(plan.bytes);
  launch_attention<arithmetic_of<Device>>([&on](const auto& kernel, index blocks) { on.launch(kernel, blocks); }, plan,
                                          work, w.data);
}

}  // namespace cuda

/// attention (algorithms/attention.hpp) of q (..., H, Nq, d) over keys in device memory into out (..., H, Nq, dv), with the
/// host's shapes, strides, special values and errors, and the bits of the host at full precision. Any head size; past 128
/// columns of V, scores are computed once for each 128. Waits.
///
/// Ragged: requests concatenated along the token axis are `cuda::ragged(q, q_offsets, most_queries)` (tokens, H, d), over
/// keys `cuda::ragged(k, v, k_offsets, most_keys)`, dense (B, Hkv, Nk, d) or paged, into out (tokens, H, dv). Each request
/// has the bits it has alone; masks that are arrays broadcast to (B, H, most_queries, most_keys).
///
/// Throws shape_error, argument_error, overlap_error and cuda::device_error. Lengths, offsets and page tables in device
/// memory are not checked, and a request longer than most_queries or most_keys is cut.
///
/// Tensor cores, `on.with(tensor_cores)`: float16 and bfloat16 round O's weights to 16 bits: |error| of O grows by u16 sum w
/// |v|, where u16 is 2^-11 or 2^-8, and in float16 by 2^-25 sum |v| / sum w, w = exp(x - m), because small weights are
/// subnormal there. float takes three products of tf32: |error| of a score grows by 2^-21 scale sum |q k|, of O by 2^-21 sum
/// w |v|.
///
/// States: `cuda::attention_states{m, l, o}` in place of `out` receives the states, for `merge_into` with those of other keys
/// and for `normalise_into`. With 16 bits on tensor cores m may lie below the largest score, by up to 5 and the rounding of m
/// + 5; then l is up to e^5 larger, and so are sums w |v|: they fit where |v| summed over keys is below 2e36.
template <cuda::attention_device Device, cuda::queries_on_a_device Q, class T, cuda::attention_output Out,
          class Mask = no_mask>
void attention(const Device& on, const Q& q, const cuda::attention_keys<T>& keys,
               const Out& out, const cuda::attention_options<Mask>& options = {}) {
  const auto work = cuda::attention_work_of<T>(cuda::queries_of<T>(q), keys, out, options);
  cuda::with_workspace(on, cuda::plan_for(on, work).bytes, [&](const cuda::workspace& w) { cuda::attend(on, work, w); });
}
/// The bytes of workspace that `attention_into` needs, and attention in stream order.
template <cuda::attention_device Device, cuda::queries_on_a_device Q, class T, cuda::attention_output Out,
          class Mask = no_mask>
std::size_t attention_workspace(const Device& on, const Q& q, const cuda::attention_keys<T>& keys,
                                const Out& out, const cuda::attention_options<Mask>& options = {}) {
  return cuda::plan_for(on, cuda::attention_work_of<T>(cuda::queries_of<T>(q), keys, out, options)).bytes;
}
template <cuda::attention_device Device, cuda::queries_on_a_device Q, class T, cuda::attention_output Out,
          class Mask = no_mask>
void attention_into(const Device& on, const Q& q, const cuda::attention_keys<T>& keys,
                    const Out& out, const cuda::workspace& w,
                    const cuda::attention_options<Mask>& options = {}) {
  cuda::attend(on, cuda::attention_work_of<T>(cuda::queries_of<T>(q), keys, out, options), w);
}

/// into := the states of the same queries over the keys of both, in stream order; `from` may be `into`. Throws shape_error
/// and overlap_error.
template <class Real>
void merge_into(const cuda::device& on, const cuda::attention_states<Real>& from,
                const cuda::attention_states<float>& into) {
  const auto kernel = cuda::merge_of(cuda::to_read(from), into);
  if (const index units = cuda::units_of(kernel.call); units > 0) on.launch(kernel, std::min(units, cuda::most_blocks));
}
/// out (..., H, Nq, dv) = O / l, of any floating type, and logsumexp (..., H, Nq), like the host's
/// attention_state::normalise, in stream order; sinks (one a head) are counted here, once. Throws shape_error and
/// overlap_error.
template <class Real, class Out>
void normalise_into(const cuda::device& on, const cuda::attention_states<Real>& from, const cuda::device_view<Out>& out,
                    const std::optional<cuda::device_view<float>>& logsumexp = {},
                    const std::optional<cuda::device_view<const float>>& sinks = {}) {
  const auto kernel = cuda::normalise_of<Out>(cuda::to_read(from), out, logsumexp, sinks);
  if (const index units = cuda::units_of(kernel.put.call); units > 0) {
    on.launch(kernel, std::min(units, cuda::most_blocks));
  }
}

template <class Q, class... Rest>
  requires(!cuda::queries_on_a_device<Q>)
cuda::refused_memory<Q> attention(const cuda::device&, const Q&, const Rest&...);
template <class T, class... Rest>
void attention(const cuda::device&, const ragged_queries<T>&, const Rest&...) {
  static_assert(!std::same_as<T, T>,
                "regroup: on a device ragged batches are cuda::ragged(q, q_offsets, most_queries) over "
                "cuda::ragged(k, v, k_offsets, most_keys), cuda::dense or cuda::paged; double is the host's");
}

}  // namespace regroup

// SPDX-License-Identifier: Apache-2.0
// The kernels of attention whose registers are counted (registers.py): the plain ones, those on tensor cores,
// and those of states.
#include "regroup/cuda/attention.cuh"

namespace {

namespace cuda = regroup::cuda;

template <class T, class Device, class Mask>
void attends(const Device& on, const Mask& mask) {
  const cuda::device_view<T> x(nullptr, {0, 1, 64});
  attention(on, x, cuda::dense(x, x), x, cuda::attention_options{.mask = mask});
}

template <class T>
void states(const cuda::device& on) {
  const cuda::device_view<T> x(nullptr, {0, 1, 64});
  const cuda::device_view<float> numbers(nullptr, {0, 1}), o(nullptr, {0, 1, 64});
  const cuda::attention_states kept{numbers, numbers, o};
  regroup::merge_into(on, kept, kept);
  regroup::normalise_into(on, kept, x);
}

}  // namespace

void instantiate(const cuda::device& on) {
  attends<regroup::bfloat16>(on, regroup::softcap{} & regroup::causal{});
  attends<regroup::bfloat16>(on.with(cuda::tensor_cores), regroup::causal{});
  attends<float>(on.with(cuda::tensor_cores), regroup::causal{});
  states<regroup::bfloat16>(on);
}

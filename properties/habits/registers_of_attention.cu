// SPDX-License-Identifier: Apache-2.0
// The kernels of attention whose registers are counted (registers.py): the plain ones, and those on tensor cores.
#include "regroup/cuda/attention.cuh"

namespace {

namespace cuda = regroup::cuda;

template <class T, class Device, class Mask>
void attends(const Device& on, const Mask& mask) {
  const cuda::device_view<T> x(nullptr, {0, 1, 64});
  attention(on, x, cuda::dense(x, x), x, cuda::attention_options{.mask = mask});
}

}  // namespace

void instantiate(const cuda::device& on) {
  attends<regroup::bfloat16>(on, regroup::softcap{} & regroup::causal{});
  attends<regroup::bfloat16>(on.with(cuda::tensor_cores), regroup::causal{});
  attends<float>(on.with(cuda::tensor_cores), regroup::causal{});
}

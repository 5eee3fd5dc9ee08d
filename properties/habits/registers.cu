// SPDX-License-Identifier: Apache-2.0
// The kernels whose registers are counted (registers.py): each fold and scan for a plain sum, softmax's state, its 16-bit
// inputs, a state that does not commute, and a wide state over doubles; attention in each of its shapes.
#include "regroup/cuda/attention.cuh"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/moments.hpp"

namespace {

namespace cuda = regroup::cuda;

template <class X>
using rows = cuda::row_batch<const X>;
template <class X>
using segments = cuda::segment_batch<const X, int>;

template <class M, class Batch>
void folds(const cuda::device& on, const M& m, const Batch& batch) {
  on.fold(batch, m, cuda::put_answer<M, regroup::answer_of<M>>{m, nullptr, 1}, {});
}
template <class M, class X>
void scans(const cuda::device& on, const M& m, const rows<X>& batch) {
  using answers = cuda::row_batch<regroup::answer_of<M>>;
  on.scan<regroup::scan_kind::inclusive>(batch, answers{}, m, {});
}

template <class T, class Device, class Mask>
void attends(const Device& on, const Mask& mask) {
  const cuda::device_view<T> x(nullptr, {0, 1, 64});
  attention(on, x, cuda::dense(x, x), x, cuda::attention_options{.mask = mask});
}

}  // namespace

void instantiate(const cuda::device& on) {
  folds(on, regroup::plus<float>{}, rows<float>{});
  folds(on, regroup::log_sum_exp<float>{}, rows<float>{});
  folds(on, regroup::log_sum_exp<float>{}, rows<regroup::bfloat16>{});
  folds(on, regroup::log_sum_exp<float>{}, segments<float>{});
  folds(on, regroup::affine<float>{}, rows<regroup::affine_map<float>>{});
  folds(on, regroup::moments<double>{}, rows<double>{});
  scans(on, regroup::log_sum_exp<float>{}, rows<float>{});
  scans(on, regroup::affine<float>{}, rows<regroup::affine_map<float>>{});
  attends<regroup::bfloat16>(on, regroup::softcap{} & regroup::causal{});
  attends<regroup::bfloat16>(on.with(cuda::tensor_cores), regroup::causal{});
}

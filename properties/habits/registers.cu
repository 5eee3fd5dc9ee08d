// SPDX-License-Identifier: Apache-2.0
// The kernels whose registers are counted (registers.py): each fold and scan for a plain sum, softmax's state, its 16-bit
// inputs, any axes of it, a state that does not commute, a wide state over doubles, and the runs of keys.
#include "regroup/cuda/device.cuh"
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
template <class M, class Batch, class Out = cuda::row_batch<regroup::answer_of<M>>>
void scans(const cuda::device& on, const M& m, const Batch& batch, const Out& answers = {}) {
  on.scan<regroup::scan_kind::inclusive>(batch, answers, m, {});
}
void runs(const cuda::device& on) {
  const cuda::heads_of_runs<float> heads{};
  const cuda::one_source in{regroup::single{heads}};
  const cuda::one_source out{regroup::single{cuda::starts_of_runs<float>{heads, nullptr, nullptr}}};
  scans(on, regroup::plus<regroup::index>{}, in, out);
  on.launch(cuda::put_first_keys<float, float>{}, 1);
}

}  // namespace

void instantiate(const cuda::device& on) {
  folds(on, regroup::plus<float>{}, rows<float>{});
  folds(on, regroup::log_sum_exp<float>{}, rows<float>{});
  folds(on, regroup::log_sum_exp<float>{}, rows<regroup::bfloat16>{});
  folds(on, regroup::log_sum_exp<float>{}, segments<float>{});
  folds(on, regroup::log_sum_exp<float>{}, cuda::axes_batch<const float>{});
  folds(on, regroup::log_sum_exp<float>{}, cuda::walked_batch<const float>{});
  folds(on, regroup::affine<float>{}, rows<regroup::affine_map<float>>{});
  folds(on, regroup::moments<double>{}, rows<double>{});
  scans(on, regroup::log_sum_exp<float>{}, rows<float>{});
  scans(on, regroup::log_sum_exp<float>{}, segments<float>{}, cuda::segment_batch<float, int>{});
  scans(on, regroup::affine<float>{}, rows<regroup::affine_map<float>>{});
  scans(on, regroup::plus<float>{}, cuda::axes_batch<const float>{}, cuda::axes_batch<float>{});
  runs(on);
}

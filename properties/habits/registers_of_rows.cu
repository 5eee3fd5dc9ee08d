// SPDX-License-Identifier: Apache-2.0
// The kernels of rows whose registers are counted (registers.py): softmax of three types, cross_entropy with gradient.
#include "regroup/cuda/cross_entropy.cuh"

namespace {

namespace cuda = regroup::cuda;
using regroup::softmax_parts::probability;

template <class X>
using rows = cuda::row_batch<const X>;

template <template <class> class Map, class X>
void normalises(const cuda::device& on) {
  using real = cuda::real_of<X>;
  const cuda::look_normalise<Map, real> look{{1}, {}};
  cuda::row_work{rows<X>{}, cuda::row_batch<X>{}, look.seen, look}.run(on, {});
}
void crosses(const cuda::device& on) {
  const cuda::look_target<float, rows<float>, int> look{{}, {}, 0, {1}, 1, nullptr, nullptr, {}};
  cuda::row_work{rows<float>{}, cuda::row_batch<float>{}, regroup::softmax_parts::scaled<float>{1}, look}.run(on, {});
}

}  // namespace

void instantiate(const cuda::device& on) {
  normalises<probability, float>(on);
  normalises<probability, regroup::bfloat16>(on);
  normalises<probability, double>(on);
  crosses(on);
}

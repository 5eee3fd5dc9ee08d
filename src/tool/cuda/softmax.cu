// SPDX-License-Identifier: Apache-2.0
#include "gpu.cuh"
#include "regroup/cuda/softmax.cuh"

namespace regroup::tool {
namespace {

template <class X>
void run(const cuda::device& on, const plain_rows& x, void* lse, bool log, double scale) {
  const device_array<X> rows(on, x.data, x.count * x.length);
  const device_array<X> sums(on, lse != nullptr ? x.count : 0);
  const auto all = rows.view({x.count, x.length});
  cuda::softmax_options<X> options{.scale = scale};
  if (lse != nullptr) options.logsumexp = sums.view({x.count});
  if (log) {
    regroup::log_softmax(on, all, all, options);
  } else {
    regroup::softmax(on, all, all, options);
  }
  rows.copy_to(x.data);
  if (lse != nullptr) sums.copy_to(lse);
}

}  // namespace

void cuda_gpu::softmax(const plain_rows& x, void* lse, bool log, double scale) const {
  if (x.type == element::float64) return run<double>(on_, x, lse, log, scale);
  run<float>(on_, x, lse, log, scale);
}

}  // namespace regroup::tool

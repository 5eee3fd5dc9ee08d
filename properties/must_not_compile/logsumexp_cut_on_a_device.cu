// expect: regroup: these answers would be cut to integers, which the output holds
#include "regroup/cuda/softmax.cuh"

void cut(const regroup::cuda::device_view<const float>& x, const regroup::cuda::device_view<int>& out) {
  regroup::logsumexp(regroup::cuda::device{}, x, out);
}

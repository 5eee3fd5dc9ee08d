// expect: regroup: these answers would be cut to integers, which the output holds
#include "regroup/cuda/cross_entropy.cuh"

void cut(const regroup::cuda::device_view<const float>& x, const regroup::cuda::device_view<int>& y) {
  regroup::cross_entropy_into(regroup::cuda::device{}, x, y, y, {});
}

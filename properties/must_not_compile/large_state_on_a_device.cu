// expect: regroup: on a device a state has at most 96 bytes, and 48 in a scan
#include "regroup/cuda/device.cuh"
#include "regroup/monoids/softmax_mean.hpp"

using vector = regroup::fixed_vector<float, 64>;

void fold(const regroup::scored<float, vector>* keys, regroup::index n) {
  const regroup::cuda::device_view<const regroup::scored<float, vector>> x(keys, {n});
  regroup::reduce(regroup::cuda::device{}, x, regroup::softmax_mean<float, vector>{});
}

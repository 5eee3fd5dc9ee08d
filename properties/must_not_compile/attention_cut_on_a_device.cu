// expect: regroup: these answers would be cut to integers, which the output holds
#include "regroup/cuda/attention.cuh"

void cut(const regroup::cuda::attention_states<float>& from, const regroup::cuda::device_view<int>& out) {
  regroup::normalise_into(regroup::cuda::device{}, from, out);
}

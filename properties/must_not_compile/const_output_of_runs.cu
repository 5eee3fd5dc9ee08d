// expect: regroup: the output is written, so its elements cannot be const
#include "regroup/cuda/reduce.cuh"
#include "regroup/monoids/arithmetic.hpp"

void fold(const regroup::cuda::device_view<int>& keys, const regroup::cuda::device_view<const int>& keys_out,
          const regroup::cuda::device_view<int>& out) {
  regroup::reduce_by_key(regroup::cuda::device{}, keys, keys, keys_out, out, regroup::plus<int>{});
}

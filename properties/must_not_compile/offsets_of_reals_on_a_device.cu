// expect: regroup: segment offsets are integers
#include "regroup/cuda/reduce.cuh"
#include "regroup/monoids/arithmetic.hpp"

void fold(const regroup::cuda::device_view<float>& xs, const regroup::cuda::device_view<float>& offsets,
          const regroup::cuda::device_view<float>& out) {
  regroup::reduce_segments(regroup::cuda::device{}, xs, offsets, out, regroup::plus<float>{});
}

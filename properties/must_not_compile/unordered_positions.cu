// expect: regroup: CUB's reductions and scans know no positions; cuda::device in order does
#include "regroup/cuda/unordered.cuh"
#include "regroup/monoids/extremum.hpp"

void fold(const float* xs, regroup::index n) {
  const auto fast = regroup::cuda::device{}.with(regroup::cuda::not_guaranteed);
  const regroup::cuda::device_view<const float> x(xs, {n});
  regroup::reduce(fast, x, regroup::argmax<float>{}, regroup::with_position{});
}

// expect: regroup: CUB's reductions assume a b == b a, which this monoid does not declare; cuda::device folds in order
#include "regroup/cuda/unordered.cuh"
#include "regroup/monoids/affine.hpp"

void fold(const regroup::affine_map<float>* maps, regroup::index n) {
  const auto fast = regroup::cuda::device{}.with(regroup::cuda::not_guaranteed);
  regroup::reduce(fast, regroup::cuda::device_view<const regroup::affine_map<float>>(maps, {n}), regroup::affine<float>{});
}

// expect: regroup: CUB's reductions assume a b == b a, which this monoid does not declare; cuda::device folds in order
#include "regroup/cuda/unordered.cuh"
#include "regroup/monoids/affine.hpp"

using map = regroup::affine_map<float>;

void fold(const regroup::cuda::device_view<map>& maps, const regroup::cuda::device_view<int>& offsets,
          const regroup::cuda::device_view<map>& out) {
  const auto fast = regroup::cuda::device{}.with(regroup::cuda::not_guaranteed);
  regroup::reduce_segments(fast, maps, offsets, out, regroup::affine<float>{});
}

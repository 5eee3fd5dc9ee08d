// expect: error: calling a __host__ function("total::identity() const") from a __global__ function("regroup::cuda::a_monoid_on_a_device_has_constexpr_functions<
#include "regroup/cuda/reduce.cuh"

struct total {
  float identity() const { return 0; }
  float operator()(float a, float b) const { return a + b; }
};

float sum(const float* x, regroup::index n) {
  return regroup::reduce(regroup::cuda::device{}, regroup::cuda::device_view<const float>(x, {n}), total{});
}

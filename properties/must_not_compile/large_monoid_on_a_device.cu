// expect: regroup: a monoid on a device has at most about 4000 bytes of its own
#include "regroup/cuda/reduce.cuh"

struct weighted {
  float weights[1100];
  constexpr float identity() const { return 0; }
  constexpr float lift(int x) const { return weights[x]; }
  constexpr float operator()(float a, float b) const { return a + b; }
};

float sum(const regroup::cuda::device_view<const int>& x, const weighted& m) {
  return regroup::reduce(regroup::cuda::device{}, x, m);
}

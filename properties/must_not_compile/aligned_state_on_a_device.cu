// expect: regroup: on a device a state is aligned to at most 16 bytes
#include "regroup/cuda/reduce.cuh"

struct wide {
  struct alignas(32) state {
    float sum;
  };
  static constexpr bool is_commutative = true;
  constexpr state identity() const { return {0}; }
  constexpr state lift(float x) const { return {x}; }
  constexpr state operator()(state a, state b) const { return {a.sum + b.sum}; }
};

auto sum(const regroup::cuda::device_view<const float>& x) { return regroup::reduce(regroup::cuda::device{}, x, wide{}); }

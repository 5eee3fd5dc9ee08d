// expect: regroup: a monoid and a projection go to a device as bytes, so they hold nothing that owns memory
#include <vector>

#include "regroup/cuda/reduce.cuh"

struct looked_up {
  std::vector<float> table;
  static constexpr bool is_commutative = true;
  constexpr float identity() const { return 0; }
  constexpr float lift(int i) const { return table[static_cast<std::size_t>(i)]; }
  constexpr float operator()(float a, float b) const { return a + b; }
};

float sum(const regroup::cuda::device_view<const int>& x) { return regroup::reduce(regroup::cuda::device{}, x, looked_up{}); }

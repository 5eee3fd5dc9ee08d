// expect: regroup: cuda::device works in device memory; give it a cuda::device_view of what cudaMalloc returned
#include <vector>

#include "regroup/cuda/device.cuh"
#include "regroup/monoids/arithmetic.hpp"

int main() {
  std::vector<float> sums(2);
  const float* const x = nullptr;
  regroup::reduce_rows(regroup::cuda::device{}, regroup::cuda::device_view(x, {2, 3}), sums, regroup::plus<float>{});
}

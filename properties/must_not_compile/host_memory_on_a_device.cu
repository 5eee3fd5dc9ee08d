// expect: regroup: cuda::device works in device memory; give it a cuda::device_view of what cudaMalloc returned
#include <vector>

#include "regroup/cuda/device.cuh"
#include "regroup/monoids/arithmetic.hpp"

int main() {
  const std::vector<float> x{1, 2};
  regroup::reduce(regroup::cuda::device{}, x, regroup::plus<float>{});
}

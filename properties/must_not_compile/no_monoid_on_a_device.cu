// expect: a monoid needs `identity() const`, the state of no elements
#include <functional>

#include "regroup/cuda/device.cuh"

int main() {
  const int* const x = nullptr;
  return regroup::reduce(regroup::cuda::device{}, regroup::cuda::device_view(x, {2}), std::plus<>{});
}

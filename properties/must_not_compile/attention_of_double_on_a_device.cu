// expect: regroup: on a device attention takes float, float16 or bfloat16
#include "regroup/cuda/attention.cuh"

int main() {
  const regroup::cuda::device_view<double> x(nullptr, {0, 1, 8});
  regroup::attention(regroup::cuda::device{}.with(regroup::cuda::tensor_cores), x, regroup::cuda::dense(x, x), x);
}

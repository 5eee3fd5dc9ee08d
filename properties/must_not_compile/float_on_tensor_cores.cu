// expect: regroup: attention on tensor cores takes float16 or bfloat16; float stays on plain arithmetic
#include "regroup/cuda/attention.cuh"

int main() {
  const regroup::cuda::device_view<float> x(nullptr, {0, 1, 8});
  regroup::attention(regroup::cuda::device{}.with(regroup::cuda::tensor_cores), x, regroup::cuda::dense(x, x), x);
}

// expect: regroup: queries, keys and values have one element type
// expect: regroup: attention's output has the queries' element type, or float
#include "regroup/cuda/attention.cuh"

int main() {
  const regroup::cuda::device on;
  const regroup::cuda::device_view<float> floats(nullptr, {0, 1, 8});
  const regroup::cuda::device_view<regroup::bfloat16> halves(nullptr, {0, 1, 8});
  regroup::attention(on, floats, regroup::cuda::dense(halves, halves), floats);
  regroup::attention(on, floats, regroup::cuda::dense(floats, floats), halves);
}

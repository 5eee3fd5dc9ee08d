// expect: softmax, log_softmax, logsumexp and cross_entropy take float16, bfloat16, float or double
// expect: regroup: cross_entropy's targets are integers
// expect: regroup: softmax writes its input's element type or a wider floating one
#include "regroup/cuda/cross_entropy.cuh"

int main() {
  const regroup::cuda::device on;
  const regroup::cuda::device_view<int> integers(nullptr, {0, 4});
  const regroup::cuda::device_view<float> floats(nullptr, {0, 4});
  const regroup::cuda::device_view<regroup::bfloat16> halves(nullptr, {0, 4});
  regroup::softmax(on, integers, floats);
  regroup::softmax(on, floats, halves);
  regroup::cross_entropy(on, floats, floats);
}

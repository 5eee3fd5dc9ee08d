// expect: regroup: a kernel inlines its mask and copies it as bytes
#include "regroup/cuda/attention.cuh"

int main() {
  const regroup::cuda::device_view<float> x(nullptr, {0, 1, 8});
  const regroup::cuda::attention_options<regroup::attention_mask> options{.mask = regroup::causal{}};
  regroup::attention(regroup::cuda::device{}, x, regroup::cuda::dense(x, x), x, options);
}

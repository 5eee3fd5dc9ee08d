// SPDX-License-Identifier: Apache-2.0
// softmax and logsumexp of other rows than float's on a device have the bits of `seq`: 16 bits, computed in float, and double.
#include "rows.cuh"

int main() {
  return gpu::main_of([] {
    const regroup::cuda::device on;
    gpu::softmax_rows<regroup::bfloat16>(on, order::kind::special);
    gpu::softmax_rows<regroup::float16>(on, order::kind::special, 0.75);
    gpu::softmax_rows<double>(on, order::kind::special);
  });
}

// expect: on a device ragged batches are cuda::ragged(q, q_offsets, most_queries)
// SPDX-License-Identifier: Apache-2.0
#include "regroup/algorithms/attention.hpp"
#include "regroup/cuda/attention.cuh"

void wrong(const float* q, const float* k, const float* v, float* out, const std::vector<std::int64_t>& offsets) {
  const regroup::view<const float> queries(q, {10, 2, 4}), keys(k, {10, 2, 4}), values(v, {10, 2, 4});
  regroup::attention(regroup::cuda::device{}, regroup::ragged(queries, offsets), regroup::ragged(keys, values, offsets),
                     regroup::view<float>(out, {10, 2, 4}));
}

// SPDX-License-Identifier: Apache-2.0
// The same monoid in Thrust, on its TBB back end and as plain C++ (no GPU, no nvcc): log(sum exp) of each run of keys.
#include <cstdio>

#ifdef REGROUP_HAS_THRUST
#include <thrust/functional.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>
#include <thrust/system/tbb/execution_policy.h>
#include <thrust/transform_reduce.h>

#include <cmath>
#include <span>
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  const regroup::log_sum_exp<float> m;
  const std::vector<int> keys = {1, 1, 1, 2, 2, 3};
  const std::vector<float> x = {1, 2, 3, 4, 5, 1000};

  const auto all = thrust::transform_reduce(thrust::tbb::par, x.begin(), x.end(), regroup::lifting(m), m.identity(), m);
  std::printf("all: %g\n", m.lower(all));

  std::vector<int> runs(keys.size());
  std::vector<regroup::state_of<decltype(m)>> states(keys.size());
  const auto lifted = thrust::make_transform_iterator(x.begin(), regroup::lifting(m));
  const auto end = thrust::reduce_by_key(thrust::tbb::par, keys.begin(), keys.end(), lifted, runs.begin(),
                                         states.begin(), thrust::equal_to<int>{}, m);
  for (std::size_t r = 0; r < static_cast<std::size_t>(end.first - runs.begin()); ++r) {
    std::printf("key %d: max %g, sum %.4f, log(sum exp) %.4f\n", runs[r], states[r].m, states[r].s, m.lower(states[r]));
  }
  const float ours = regroup::reduce(regroup::seq, std::span(x).first(3), m);  // of the first run
  return m.lower(all) == 1000 && end.first - runs.begin() == 3 && std::abs(m.lower(states[0]) - ours) < 1e-6f ? 0 : 1;
}
#else
int main() { std::puts("Thrust was not found, so there is nothing to show."); }
#endif

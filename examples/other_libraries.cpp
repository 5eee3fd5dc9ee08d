// SPDX-License-Identifier: Apache-2.0
// A monoid object goes as it is into other people's reductions: it is an associative function object with an identity.
// (Only regroup's own verbs promise the bits; the others choose their own tree.)
#include <cmath>
#include <cstdio>
#include <execution>
#include <numeric>
#include <vector>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_reduce.h>

#include "regroup/regroup.hpp"

int main() {
  const regroup::log_sum_exp<float> m;
  const regroup::lifting lift{m};
  std::vector<float> x(1'000'000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 2003) / 100;

  const auto by_std = std::transform_reduce(x.begin(), x.end(), m.identity(), m, lift);
  const auto by_std_par = std::transform_reduce(std::execution::par_unseq, x.begin(), x.end(), m.identity(), m, lift);

  using range = tbb::blocked_range<const float*>;
  const auto by_tbb = tbb::parallel_reduce(
      range(x.data(), x.data() + x.size()), m.identity(),
      [&](const range& r, auto s) { return m(s, std::transform_reduce(r.begin(), r.end(), m.identity(), m, lift)); },
      m);

  std::printf("std::transform_reduce            %.6f\n", m.lower(by_std));
  std::printf("std::transform_reduce, par_unseq %.6f\n", m.lower(by_std_par));
  std::printf("tbb::parallel_reduce             %.6f\n", m.lower(by_tbb));
  const float ours = regroup::reduce(regroup::par, x, m);
  std::printf("regroup::reduce                  %.6f\n", ours);
  const auto near = [&](const auto& s) { return std::abs(m.lower(s) - ours) < 1e-3f; };
  return near(by_std) && near(by_std_par) && near(by_tbb) ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// Many statistics in one pass over the data. Each member folds by its own rule, so its bits are those it has alone.
#include <cstdio>

#include "regroup/regroup.hpp"

int main() {
  const auto temperatures =
      regroup::generate(1'000'000, [](regroup::index i) { return static_cast<float>(i * 7919 % 2003) / 50 - 20; });

  const regroup::minimum<float> coldest;
  const regroup::maximum<float> hottest;
  const regroup::fanout all_of_them{regroup::count{}, regroup::moments<double>{}, coldest, hottest};
  const auto [n, stats, low, high] = regroup::reduce(regroup::par, temperatures, all_of_them);

  std::printf("%lld days, mean %.4f, variance %.4f, from %.2f to %.2f\n", static_cast<long long>(n), stats.mean,
              stats.variance, low, high);
  return low == regroup::reduce(regroup::seq, temperatures, coldest) ? 0 : 1;
}

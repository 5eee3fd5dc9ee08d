// SPDX-License-Identifier: Apache-2.0
// What a new user writes first: a monoid of his own, folded by the installed library on all cores.
#include "average.hpp"

#include <cstdio>
#include <regroup/regroup.hpp>
#include <vector>

int main() {
  std::vector<double> xs(100'001);
  for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<double>(i);
  const double one = regroup::reduce(regroup::seq, xs, average{});
  const double all = regroup::reduce(regroup::par, xs, average{});
  std::printf("%g %g\n", one, all);
  return one == 50'000 && all == one ? 0 : 1;
}

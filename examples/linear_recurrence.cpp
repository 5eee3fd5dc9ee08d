// SPDX-License-Identifier: Apache-2.0
// h[t] = a[t] h[t-1] + b[t], the recurrence of state-space models and exponential averages, in parallel: each step is
// the map h -> a h + b, and maps compose associatively (but do not commute). So it is a scan.
#include <cmath>
#include <cstdio>
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  using map = regroup::state_of<regroup::affine<double>>;
  std::vector<map> steps(100'000);
  for (std::size_t t = 0; t < steps.size(); ++t) steps[t] = {0.9, std::sin(0.01 * static_cast<double>(t))};

  std::vector<map> composed(steps.size());
  regroup::inclusive_scan(regroup::par, steps, composed, regroup::affine<double>{});

  const double h0 = 1;
  double h = h0;
  double worst = 0;
  for (std::size_t t = 0; t < steps.size(); ++t) {
    h = steps[t].a * h + steps[t].b;  // one after another
    worst = std::max(worst, std::abs(h - (composed[t].a * h0 + composed[t].b)));
  }
  std::printf("100,000 steps, the last %.6f; worst difference from the loop %.1e\n", h, worst);
  return worst < 1e-13 ? 0 : 1;
}

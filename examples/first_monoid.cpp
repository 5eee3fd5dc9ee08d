// SPDX-License-Identifier: Apache-2.0
// Your first monoid: the average, which needs a state (sum, count) because averages do not combine.
#include <cstdio>

#include "regroup/regroup.hpp"

struct average {
  struct state { double sum; long count; };
  constexpr state identity() const { return {0, 0}; }                                      // of nothing
  constexpr state lift(double x) const { return {x, 1}; }                                  // of one element
  constexpr state operator()(state a, state b) const { return {a.sum + b.sum, a.count + b.count}; }
  constexpr double lower(state s) const { return s.sum / static_cast<double>(s.count); }   // the answer
};

int main() {
  const auto numbers = regroup::generate(1'000'000, [](regroup::index i) { return 0.001 * static_cast<double>(i); });
  const double alone = regroup::reduce(regroup::seq, numbers, average{});
  const double shared = regroup::reduce(regroup::par, numbers, average{});
  std::printf("%.17g on one thread\n", alone);
  std::printf("%.17g on all threads: the same bits\n", shared);
  return alone == shared ? 0 : 1;
}

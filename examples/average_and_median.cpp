// SPDX-License-Identifier: Apache-2.0
// Which statistics can be computed in pieces? The average can: (sum, count) combines. The median cannot: two medians do
// not tell the median of both pieces, and the law checker finds the smallest case.
#include <cstdio>
#include <iostream>

#include "regroup/check_laws.hpp"
#include "regroup/monoids/mean.hpp"

struct middle {  // "the median of two is the number between them"
  double identity() const { return 0; }
  double operator()(double a, double b) const { return (a + b) / 2; }
};

int main() {
  using regroup::mean;
  // two machines with 500,000,000 numbers each
  const regroup::state_of<mean<double>> one{1'234'567, 500'000'000};
  const regroup::state_of<mean<double>> two{2'345'678, 500'000'000};
  const auto both = mean<double>{}(one, two);
  std::printf("the average of both halves: %.9f\n\n", mean<double>{}.lower(both));

  std::puts("2 and 5 are the medians of [1,2,3] and [4,5,6], together 3.5, and of [2,2,9] and [5,5,9], together 5:");
  std::puts("no function of 2 and 5 gives both. What the checker says of the number between them:");
  const auto report = regroup::check_laws(middle{});
  std::cout << report;
  return report.passed() ? 1 : 0;
}

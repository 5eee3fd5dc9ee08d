// SPDX-License-Identifier: Apache-2.0
// Which statistics can be computed in pieces? The average can: (sum, count) combines. The median cannot: the median of
// medians is another number, and the law checker finds the smallest case.
#include <algorithm>
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

  std::puts("median([1,2,3]) = 2 and median([4,5,6]) = 5 do not give 3.5, the median of all six, from 2 and 5 alone\n"
            "once the pieces differ in size. What the checker says:");
  const auto report = regroup::check_laws(middle{});
  std::cout << report;
  return report.passed() ? 1 : 0;
}

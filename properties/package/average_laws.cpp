// SPDX-License-Identifier: Apache-2.0
// The laws of the user's monoid: the average keeps them; an average that forgets its count breaks them, and the report shows
// values for which it does.
#include <iostream>
#include <regroup/check_laws.hpp>

#include "average.hpp"

struct average_of_averages {
  static constexpr bool is_commutative = true;
  constexpr double identity() const { return 0; }
  constexpr double operator()(double a, double b) const { return (a + b) / 2; }
};

int main() {
  const auto lawful = regroup::check_laws(average{});
  const auto unlawful = regroup::check_laws(average_of_averages{});
  std::cout << lawful << unlawful;
  return lawful.passed() && !unlawful.passed() ? 0 : 1;
}

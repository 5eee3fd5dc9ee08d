// SPDX-License-Identifier: Apache-2.0
// The laws are checked, not promised. A first (max, sum of exp) operator looks right and passes every demo, until two
// empty states meet: -inf - -inf is NaN.
#include <cmath>
#include <iostream>
#include <limits>

#include "regroup/check_laws.hpp"
#include "regroup/monoids/log_sum_exp.hpp"

struct obvious {
  struct state { float max, sum; };
  static constexpr bool is_commutative = true;
  state identity() const { return {-std::numeric_limits<float>::infinity(), 0}; }
  state lift(float x) const { return {x, 1}; }
  state operator()(state a, state b) const {
    const float m = std::max(a.max, b.max);
    return {m, a.sum * std::exp(a.max - m) + b.sum * std::exp(b.max - m)};
  }
  float lower(state s) const { return s.max + std::log(s.sum); }
};

int main() {
  const auto report = regroup::check_laws<float>(obvious{});
  std::cout << report << "\n" << regroup::check_laws<float>(regroup::log_sum_exp<float>{});
  return report.passed() ? 1 : 0;  // the obvious operator must be caught
}

// SPDX-License-Identifier: Apache-2.0
// A user's monoid: the average, with the count that makes it associative.
#pragma once
#include <cstdint>

struct average {
  struct state {
    double sum;
    std::int64_t count;
  };
  static constexpr bool is_commutative = true;
  constexpr state identity() const { return {-0.0, 0}; }
  constexpr state lift(double x) const { return {x, 1}; }
  constexpr state operator()(state a, state b) const { return {a.sum + b.sum, a.count + b.count}; }
  constexpr double lower(state s) const { return s.sum / static_cast<double>(s.count); }
};

// SPDX-License-Identifier: Apache-2.0
// (max, sum of exp(x - max)) as somebody who knows nothing of the library writes it: first with the bug that everybody
// writes, then with its repair.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace regroup::laws {

/// The obvious online softmax: exp(-inf - -inf) is NaN.
struct obvious_max_sum {
  struct state {
    float m, s;
  };
  static constexpr bool is_commutative = true;
  state identity() const { return {-std::numeric_limits<float>::infinity(), 0}; }
  state lift(float x) const { return {x, 1}; }
  state operator()(state a, state b) const {
    const float m = std::max(a.m, b.m);
    return {m, a.s * std::exp(a.m - m) + b.s * std::exp(b.m - m)};
  }
  float lower(state s) const { return s.m + std::log(s.s); }
};

/// The factor of the larger maximum is 1, whatever it is.
struct max_sum : obvious_max_sum {
  state operator()(state a, state b) const {
    const float m = std::max(a.m, b.m);
    const auto weight = [&](float x) { return x == m ? 1 : std::exp(x - m); };
    return {m, a.s * weight(a.m) + b.s * weight(b.m)};
  }
};

}  // namespace regroup::laws

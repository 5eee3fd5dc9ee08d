// SPDX-License-Identifier: Apache-2.0
// Rows of softmax transcribed from the text of the contract, for tests that cannot afford to compile the host's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../order/reference.hpp"
#include "regroup/monoids/log_sum_exp.hpp"

namespace reference {

/// (M, s) of a row of at least one number, of which only a sum notices a NaN.
template <class Real>
typename regroup::log_sum_exp<Real>::state softmax_state(const std::vector<Real>& x) {
  const auto largest = [](const std::vector<Real>& xs) { return *std::max_element(xs.begin(), xs.end()) + Real{0}; };
  const auto weights = [](const std::vector<Real>& xs, Real m) {
    operands<Real> w;
    for (const Real e : xs) w.push_back(regroup::math::decay(e - m));
    return w;
  };
  const regroup::plus<Real> plus;
  if (x.size() <= 65536) {
    const Real m = largest(x);
    return {m, *reduce(plus, weights(x, m)) + Real{0}};
  }
  return *reduce_tiles(regroup::log_sum_exp<Real>{}, operands<Real>(x.begin(), x.end()), [&](const std::vector<Real>& t) {
    const Real m = largest(t);
    return typename regroup::log_sum_exp<Real>::state{m, *lane_leaf(plus, weights(t, m)) + Real{0}};
  });
}

/// The rows of softmax, and of log_softmax.
template <class Real>
void softmax(std::vector<Real>& xs) {
  const auto [m, s] = softmax_state(xs);
  const Real reciprocal = Real{1} / s;
  for (Real& x : xs) x = regroup::math::decay(x - m) * reciprocal;
}
template <class Real>
void log_softmax(std::vector<Real>& xs) {
  const auto [m, s] = softmax_state(xs);
  const Real log_s = regroup::math::log(s);
  for (Real& x : xs) x = (x - m) - log_s;
}

/// The loss of a row, which becomes its gradient, `share` of the result's.
template <class Real>
Real cross_entropy(std::vector<Real>& xs, std::size_t target, Real share) {
  const auto [m, s] = softmax_state(xs);
  const Real at_target = xs[target];
  const Real reciprocal = Real{1} / s;
  for (Real& x : xs) x = regroup::math::decay(x - m) * reciprocal * share;
  xs[target] = regroup::math::fma(regroup::math::decay(at_target - m), reciprocal, Real{-1}) * share;
  return regroup::math::log(s) + (m - at_target);
}

/// f(row) for every row of an array, which f may change.
template <class Real, class F>
void each_row(std::vector<Real>& xs, std::int64_t count, const F& f) {
  const auto n = static_cast<std::ptrdiff_t>(xs.size()) / count;
  for (std::ptrdiff_t r = 0; n > 0 && r < count; ++r) {
    std::vector<Real> row(xs.begin() + r * n, xs.begin() + (r + 1) * n);
    f(row);
    std::copy(row.begin(), row.end(), xs.begin() + r * n);
  }
}

}  // namespace reference

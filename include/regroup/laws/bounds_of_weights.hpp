// SPDX-License-Identifier: Apache-2.0
// The error bounds (bounds.hpp) of sums whose weights are exponentials: log_sum_exp, softmax_mean.
#pragma once

#include <cmath>
#include <span>

#include "regroup/laws/bounds_of_sums.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/softmax_mean.hpp"

namespace regroup::laws {

namespace detail {

/// The sum of weights w = exp(x - M), and u sum w size [(1 + slope) (M - x) + c (r + extra) + h + extra], slope and c as
/// math::decay has them, no rescale deeper than h.
struct weighted {
  long double sum = 0;
  long double error = 0;
  long double widest = 0;  ///< the largest M - x of finite elements
};
template <class Real, class Score, class Size>
weighted weigh(index n, index depth, long double extra, const Score& score, const Size& size) {
  long double highest = -unbounded;
  for (index i = 0; i < n; ++i) highest = std::fmax(highest, score(i));
  const auto h = static_cast<long double>(depth);
  constexpr auto c = static_cast<long double>(math::exp_error<Real>);
  constexpr auto slope = static_cast<long double>(math::decay_slope<Real>);
  weighted all;
  for (index i = 0; i < n; ++i) {
    const long double x = score(i);
    if (std::isnan(x) || x == -unbounded) continue;
    const long double below = x == highest ? 0 : highest - x;
    const long double w = std::exp(-below);
    all.sum += w * size(i);
    if (w > 0) all.error += w * size(i) * ((1 + slope) * below + c * (h + extra) + h + extra);
    if (std::isfinite(below)) all.widest = std::fmax(all.widest, below);
  }
  all.error *= second_order * half_ulp<Real>;
  return all;
}

}  // namespace detail

/// u sum w [(1 + slope) (M - x) + c r + h] for the scaled sum; its logarithm adds rel(s) + c_log u |ln s| + u |y|.
template <class Real>
struct bound<log_sum_exp<Real>> {
  template <class X>
  static detail::weighted weigh(std::span<const X> xs, index depth) {
    return detail::weigh<Real>(
        static_cast<index>(xs.size()), depth, 0,
        [&](index i) { return detail::value<Real>(xs[static_cast<std::size_t>(i)]); }, [](index) { return 1.0L; });
  }
  template <class X>
  static errors state(const log_sum_exp<Real>&, std::span<const X> xs, index depth) {
    return {0, weigh(xs, depth).error + static_cast<long double>(xs.size()) * detail::eta<Real>};
  }
  template <class X>
  static errors answer(const log_sum_exp<Real>& m, std::span<const X> xs, index depth) {
    const long double s = weigh(xs, depth).sum;
    if (s == 0) return {0};
    long double highest = -detail::unbounded;
    for (const X& x : xs) highest = std::fmax(highest, detail::value<Real>(x));
    if (!std::isfinite(highest)) return {0};
    const long double u = detail::half_ulp<Real>;
    const long double log_s = std::fabs(std::log(s));
    return {detail::second_order *
            (state(m, xs, depth)[1] / s + static_cast<long double>(math::log_error<Real>) * u * log_s +
             u * std::fabs(highest + std::log(s)))};
  }
};

/// l as above; each number of O: u sum w |v| [(1 + slope) (M - x) + c (r + 1) + h + 1]; divided by l, |o| (rel(l) + u) more.
template <class Real, class Vector>
struct bound<softmax_mean<Real, Vector>> {
  template <class Score, class Value>
  static detail::weighted weigh(std::span<const scored<Score, Value>> xs, index depth, index column) {
    const auto at = [](index i) { return static_cast<std::size_t>(i); };
    const auto v = [&](index i) {
      return column < 0 ? 1 : detail::finite_size(static_cast<long double>(regroup::widen(xs[at(i)].value[at(column)])));
    };
    return detail::weigh<Real>(
        static_cast<index>(xs.size()), depth, column < 0 ? 0 : 1,
        [&](index i) { return detail::value<Real>(xs[at(i)].score); }, v);
  }
  template <class Score, class Value>
  static errors state(const softmax_mean<Real, Vector>& m, std::span<const scored<Score, Value>> xs, index depth) {
    const auto n = static_cast<long double>(xs.size());
    const detail::weighted l = weigh(xs, depth, -1);
    errors found{0, l.error + n * detail::eta<Real>};
    const auto columns = static_cast<index>(m.identity().o.size());
    for (index k = 0; k < columns; ++k) {
      long double sizes = 0;
      bool infinite = false;
      for (const auto& x : xs) {
        const auto v = static_cast<long double>(regroup::widen(x.value[static_cast<std::size_t>(k)]));
        sizes += detail::finite_size(v);
        infinite = infinite || std::isinf(v);
      }
      const bool any = sizes >= detail::greatest<Real> ||
                       (infinite && l.widest > -static_cast<long double>(math::exp_lowest<Real>) / 2);
      found.push_back(any ? detail::unbounded
                          : weigh(xs, depth, k).error +
                                detail::eta<Real> * (n + static_cast<long double>(depth) * sizes));
    }
    return found;
  }
  template <class Score, class Value>
  static errors answer(const softmax_mean<Real, Vector>& m, std::span<const scored<Score, Value>> xs, index depth) {
    errors found = state(m, xs, depth);
    const long double l = weigh(xs, depth, -1).sum;
    const long double relative = l > 0 ? found[1] / l : 0;
    for (std::size_t k = 2; k < found.size(); ++k) {
      const long double o = l > 0 ? weigh(xs, depth, static_cast<index>(k) - 2).sum / l : 0;
      found[k - 2] = detail::second_order * (l > 0 ? found[k] / l : 0) +
                     o * (relative + detail::half_ulp<Real>)*detail::second_order + detail::eta<Real>;
    }
    found.resize(found.size() - 2);
    return found;
  }
};

}  // namespace regroup::laws

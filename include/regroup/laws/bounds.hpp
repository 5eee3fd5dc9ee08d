// SPDX-License-Identifier: Apache-2.0
// The error that one fold of a shipped monoid may have, computed from its inputs: u is half an ulp of 1, h the depth
// (combines above an element), eta the smallest normal number, c the certified error of our exp. Two folds may differ by
// the sum of their bounds. Where a sum or product of the inputs could leave the range of finite numbers, in some
// grouping, the bound is infinite: then rounding alone can decide between finite, infinite and NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "regroup/laws.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/compensated.hpp"
#include "regroup/monoids/fanout.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/mean.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/monoids/softmax_mean.hpp"

namespace regroup::laws {

/// Absolute errors, one a real number of the state or answer, in order.
using errors = std::vector<long double>;

namespace detail {

inline constexpr long double unbounded = std::numeric_limits<long double>::infinity();
inline constexpr long double second_order = 1.01L;

template <class Real>
inline constexpr long double half_ulp = std::numeric_limits<Real>::epsilon() / 2;
template <class Real>
inline constexpr long double eta = std::numeric_limits<Real>::min();
template <class Real>
inline constexpr long double greatest = std::numeric_limits<Real>::max();

template <class Real, class X>
long double value(const X& x) {
  return static_cast<long double>(static_cast<Real>(widen(x)));
}
inline long double finite_size(long double x) { return std::isfinite(x) ? std::fabs(x) : 0; }

/// sum |x| of the finite elements.
template <class Real, class X>
long double total(std::span<const X> xs) {
  long double sum = 0;
  for (const X& x : xs) sum += finite_size(value<Real>(x));
  return sum;
}

/// h u sum |x|.
template <class Real, class X>
long double sum_error(std::span<const X> xs, index depth) {
  const long double sum = total<Real>(xs);
  if (sum >= greatest<Real>) return unbounded;
  return second_order * static_cast<long double>(depth) * half_ulp<Real> * sum;
}

/// The sum of weights w = exp(x - M), and u sum w size [(M - x) + c (r + extra) + h + extra], no rescale deeper than h.
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
  weighted all;
  for (index i = 0; i < n; ++i) {
    const long double x = score(i);
    if (std::isnan(x) || x == -unbounded) continue;
    const long double below = x == highest ? 0 : highest - x;
    const long double w = std::exp(-below);
    all.sum += w * size(i);
    if (w > 0) all.error += w * size(i) * (below + c * (h + extra) + h + extra);
    if (std::isfinite(below)) all.widest = std::fmax(all.widest, below);
  }
  all.error *= second_order * half_ulp<Real>;
  return all;
}

}  // namespace detail

/// Whether check_laws knows the error of a monoid `M` over elements `X`.
template <class M, class X>
concept has_bound = requires(const M& m, std::span<const X> xs) {
  bound<M>::state(m, xs, index{});
}
|| requires(const M& m, std::span<const X> xs) { m.error_bound(xs, index{}); }
|| is_exact<M>;

template <class M, class X>
errors state_errors(const M& m, std::span<const X> xs, index depth) {
  if constexpr (requires { bound<M>::state(m, xs, depth); }) {
    return bound<M>::state(m, xs, depth);
  } else if constexpr (requires { m.error_bound(xs, depth); }) {
    errors found;
    for (const cell& c : image_of(m.error_bound(xs, depth))) {
      if (c.what == cell::kind::real) found.push_back(c.value);
    }
    return found;
  } else {
    return {};  // exact
  }
}

template <class T>
struct bound<plus<T>> {
  template <class X>
  static errors state(const plus<T>&, std::span<const X> xs, index depth) {
    if constexpr (std::is_integral_v<T>) return {};
    return {detail::sum_error<T>(xs, depth)};
  }
  template <class X>
  static errors answer(const plus<T>& m, std::span<const X> xs, index depth) {
    return state(m, xs, depth);
  }
};

/// n u |product|, or what an underflow leaves, multiplied by all that is larger than 1.
template <class T>
struct bound<multiplies<T>> {
  template <class X>
  static errors state(const multiplies<T>&, std::span<const X> xs, index) {
    if constexpr (std::is_integral_v<T>) return {};
    long double product = 1;
    long double growth = 1;
    long double decay = 1;
    bool infinite = false;
    for (const X& x : xs) {
      const long double v = std::fabs(detail::value<T>(x));
      infinite = infinite || std::isinf(v);
      if (!std::isfinite(v)) continue;
      product *= v;
      growth *= std::fmax(v, 1);
      if (v != 0) decay *= std::fmin(v, 1);
    }
    const auto n = static_cast<long double>(xs.size());
    if (growth >= detail::greatest<T> || (infinite && decay < detail::eta<T>)) return {detail::unbounded};
    return {detail::second_order * n *
            (detail::half_ulp<T> * product + (decay < detail::eta<T> ? detail::eta<T> * growth : 0))};
  }
  template <class X>
  static errors answer(const multiplies<T>& m, std::span<const X> xs, index depth) {
    return state(m, xs, depth);
  }
};

template <class Real>
struct bound<mean<Real>> {
  template <class X>
  static errors state(const mean<Real>&, std::span<const X> xs, index depth) {
    return {detail::sum_error<Real>(xs, depth)};
  }
  template <class X>
  static errors answer(const mean<Real>& m, std::span<const X> xs, index depth) {
    const auto n = static_cast<long double>(std::max<std::size_t>(xs.size(), 1));
    const long double mean_size = detail::total<Real>(xs) / n;
    return {state(m, xs, depth)[0] / n + 3 * detail::half_ulp<Real> * mean_size + detail::eta<Real>};
  }
};

/// The sum and its correction are each as good as a plain sum; together, u |sum| + 4 h u^2 sum |x|.
template <class Real>
struct bound<compensated_plus<Real>> {
  template <class X>
  static errors state(const compensated_plus<Real>&, std::span<const X> xs, index depth) {
    const long double e = detail::sum_error<Real>(xs, depth);
    const long double each = 2 * detail::total<Real>(xs) >= detail::greatest<Real> ? detail::unbounded : e;
    return {each, each};
  }
  template <class X>
  static errors answer(const compensated_plus<Real>&, std::span<const X> xs, index depth) {
    const long double sizes = detail::total<Real>(xs);
    if (2 * sizes >= detail::greatest<Real>) return {detail::unbounded};
    long double sum = 0;
    for (const X& x : xs) {
      const long double v = detail::value<Real>(x);
      if (std::isfinite(v)) sum += v;
    }
    const long double u = detail::half_ulp<Real>;
    const long double of_errors = 4 * static_cast<long double>(depth) * u * u * sizes;
    const long double long_double_own = static_cast<long double>(xs.size()) * 0x1p-64L * sizes;
    return {detail::second_order * (u * std::fabs(sum) + of_errors + long_double_own)};
  }
};

/// The mean is an average of averages: 6 u max |x| a level. The deviation: every node adds apart^2 n_a n_b / n with
/// `apart` wrong by twice the mean's error d, so by Cauchy-Schwarz 2 sqrt(D W) d + W d^2, W the sum of n_a n_b / n.
template <class Real>
struct bound<moments<Real>> {
  template <class X>
  static errors state(const moments<Real>&, std::span<const X> xs, index depth) {
    if (xs.empty()) return {0, 0};
    long double largest = 0;
    long double sum = 0;
    long double finite = 0;
    for (const X& x : xs) {
      const long double v = detail::value<Real>(x);
      if (!std::isfinite(v)) continue;
      largest = std::fmax(largest, std::fabs(v));
      sum += v;
      ++finite;
    }
    const auto n = static_cast<long double>(xs.size());
    long double deviation = 0;
    for (const X& x : xs) {
      const long double apart = detail::value<Real>(x) - sum / std::fmax(finite, 1);
      if (std::isfinite(apart)) deviation += apart * apart;
    }
    const auto h = static_cast<long double>(depth);
    const long double u = detail::half_ulp<Real>;
    const long double eta = detail::eta<Real>;
    const long double of_mean = 4 * n * largest >= detail::greatest<Real>
                                    ? detail::unbounded
                                    : detail::second_order * h * (6 * u * largest + eta);
    const long double weight = n * (1 + std::log2(n)) / 2;
    const long double apart = 2 * of_mean;
    const long double of_deviation =
        4 * n * largest * largest >= detail::greatest<Real>
            ? detail::unbounded
            : detail::second_order * (2 * std::sqrt(deviation * weight) * apart + weight * apart * apart +
                                      (h + 6) * u * deviation + eta * (weight + n));
    return {of_mean, of_deviation};
  }
  template <class X>
  static errors answer(const moments<Real>& m, std::span<const X> xs, index depth) {
    const auto n = static_cast<long double>(std::max<std::size_t>(xs.size(), 1));
    const errors s = state(m, xs, depth);
    long double largest = 0;
    for (const X& x : xs) largest = std::fmax(largest, detail::finite_size(detail::value<Real>(x)));
    return {s[0], s[1] / n + 8 * detail::half_ulp<Real> * largest * largest + detail::eta<Real>};
  }
};

/// u sum w [(M - x) + c r + h] for the scaled sum; its logarithm adds rel(s) + c_log u |ln s| + u |y|.
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

/// l as above; each number of O: u sum w |v| [(M - x) + c (r + 1) + h + 1]; divided by l, and |o| (rel(l) + u) more.
template <class Real, class Vector>
struct bound<softmax_mean<Real, Vector>> {
  template <class Score, class Value>
  static detail::weighted weigh(std::span<const scored<Score, Value>> xs, index depth, index column) {
    const auto at = [](index i) { return static_cast<std::size_t>(i); };
    const auto v = [&](index i) {
      return column < 0 ? 1 : detail::finite_size(static_cast<long double>(widen(xs[at(i)].value[at(column)])));
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
        const auto v = static_cast<long double>(widen(x.value[static_cast<std::size_t>(k)]));
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

/// Every product of n factors has n roundings, every term of b at most n + h: (n + h) u sum |b_i| prod |a_j|, j after i.
template <class T>
struct bound<affine<T>> {
  template <class X>
  static errors state(const affine<T>&, std::span<const X> xs, index depth) {
    if constexpr (std::is_integral_v<T>) return {};
    const auto n = static_cast<long double>(xs.size());
    long double a = 1;
    long double b = 0;
    long double growth = 1;
    long double largest = 1;
    long double decay = 1;
    bool infinite = false;
    for (const X& x : xs) {
      const long double xa = std::fabs(detail::value<T>(x.a));
      const long double xb = std::fabs(detail::value<T>(x.b));
      infinite = infinite || std::isinf(xa) || std::isinf(xb);
      a *= detail::finite_size(xa);
      b = b * detail::finite_size(xa) + detail::finite_size(xb);
      growth *= std::fmax(detail::finite_size(xa), 1);
      largest = std::fmax(largest, detail::finite_size(xb));
      if (xa != 0) decay *= std::fmin(detail::finite_size(xa), 1);
    }
    const long double most = growth * largest * std::fmax(n, 1);
    if (infinite || most >= detail::greatest<T>) return {detail::unbounded, detail::unbounded};
    const long double roundings = detail::second_order * (n + static_cast<long double>(depth)) * detail::half_ulp<T>;
    const long double lost = detail::second_order * 2 * n * detail::eta<T> * most;
    return {roundings * a + (decay < detail::eta<T> ? lost : 0), roundings * b + lost};
  }
  template <class X>
  static errors answer(const affine<T>& m, std::span<const X> xs, index depth) {
    return state(m, xs, depth);
  }
};

/// Member by member.
template <class... Monoids>
struct bound<fanout<Monoids...>> {
  template <class X>
  requires(has_bound<Monoids, X>&&...) static errors
      state(const fanout<Monoids...>& m, std::span<const X> xs, index depth) {
    errors found;
    std::apply(
        [&](const auto&... member) {
          const auto add = [&](const auto& one) {
            errors e = state_errors(one, xs, depth);
            const image cells = image_of(fold(one, lift_all(one, xs).all()));
            e.resize(static_cast<std::size_t>(
                std::ranges::count_if(cells, [](const cell& c) { return c.what == cell::kind::real; })));
            found.insert(found.end(), e.begin(), e.end());
          };
          (add(member), ...);
        },
        m.members());
    return found;
  }
};

}  // namespace regroup::laws

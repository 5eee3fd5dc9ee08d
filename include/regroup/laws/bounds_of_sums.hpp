// SPDX-License-Identifier: Apache-2.0
// The error bounds (bounds.hpp) of what is made of sums and products: plus, multiplies, scaled_product, mean,
// compensated_plus, moments, affine.
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
#include "regroup/monoids/mean.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/monoids/scaled_product.hpp"

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
  return static_cast<long double>(static_cast<Real>(regroup::widen(x)));
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

}  // namespace detail

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

/// n u |product|, one rounding for a reference and half a denormal more. A mantissa that rounding may carry past 1 or 2
/// moves the exponent, so there a state's bound is infinite; an answer's is, where rounding decides on an overflow.
template <class Real>
struct bound<scaled_product<Real>> {
  template <class X>
  static errors state(const scaled_product<Real>&, std::span<const X> xs, index) {
    const size_of_product p(xs);
    const bool carries = p.mantissa * (1 - p.relative) < 1 || p.mantissa * (1 + p.relative) >= 2;
    if (p.has_nan || carries) return {detail::unbounded, detail::unbounded};
    return {p.mantissa * p.relative, 0};
  }
  template <class X>
  static errors answer(const scaled_product<Real>&, std::span<const X> xs, index) {
    using limits = std::numeric_limits<Real>;
    const size_of_product p(xs);
    if (p.exponent > limits::max_exponent || p.exponent < limits::min_exponent - 2 * limits::digits) {
      return {p.exponent > 0 ? 0 : limits::denorm_min()};
    }
    const long double product = std::ldexp(p.mantissa, static_cast<int>(p.exponent));
    if (product * (1 + p.relative) >= detail::greatest<Real>) return {detail::unbounded};
    return {product * p.relative + limits::denorm_min()};
  }

 private:
  /// |product| = mantissa 2^exponent, 1 <= mantissa < 2, of the elements that are neither 0 nor infinite.
  struct size_of_product {
    long double mantissa = 1;
    index exponent = 0;
    long double relative;
    bool has_nan = false;
    template <class X>
    explicit size_of_product(std::span<const X> xs)
        : relative(detail::second_order * static_cast<long double>(xs.size() + 1) * detail::half_ulp<Real>) {
      for (const X& x : xs) {
        const long double v = std::fabs(detail::value<Real>(x));
        has_nan = has_nan || std::isnan(v);
        if (!std::isfinite(v) || v == 0) continue;
        int e = 0;
        mantissa = 2 * std::frexp(mantissa * v, &e);
        exponent += e - 1;
      }
    }
  };
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

}  // namespace regroup::laws

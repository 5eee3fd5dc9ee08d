// SPDX-License-Identifier: Apache-2.0
// Softmax of one row in long double with compensated sums, and the error that the order of combination allows each
// result, computed from the row itself (no constants). Long double's own rounding is 2^-11 of a double's.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "order/cases.hpp"
#include "regroup/algorithms/softmax.hpp"

namespace properties {

using regroup::index;

/// Roundings of second order.
inline constexpr long double second_order = 1.01L;

template <class Real>
inline constexpr long double unit = std::numeric_limits<Real>::epsilon() / 2;

/// What rounding a result to an output type may add.
template <class Out>
long double rounding(long double y) {
  if constexpr (sizeof(Out) == 2) {
    constexpr bool is_half = std::same_as<Out, regroup::float16>;
    const long double smallest = is_half ? 0x1p-24L : 0x1p-133L;
    return std::max(std::fabs(y) * (is_half ? 0x1p-11L : 0x1p-8L), smallest / 2);
  } else {
    return 0;
  }
}

/// The reference of a row of finite elements, as `Real` holds them after scaling.
template <class Real>
struct softmax_reference {
  std::vector<long double> x;
  long double m = -std::numeric_limits<long double>::infinity();
  long double s = 0;
  /// Of m - x, which is rounded and then reduced.
  static constexpr long double difference = 1 + static_cast<long double>(regroup::math::decay_slope<Real>);
  long double s_bound = 0;  ///< |computed s - s|, relative

  template <class X>
  explicit softmax_reference(const std::vector<X>& row, double scale = 1) {
    for (const X& e : row) x.push_back(static_cast<Real>(regroup::widen(e)) * static_cast<Real>(scale));
    for (const long double e : x) m = std::max(m, e);
    const auto n = static_cast<index>(x.size());
    // One exp an element; in longer rows one more at most for each merge of two leaves.
    int levels = 0;
    while ((regroup::tiles_of(n) >> levels) > 1) ++levels;
    if (regroup::tiles_of(n) != index{1} << levels) ++levels;
    const long double in_tile = static_cast<long double>(std::min(n, regroup::tile_elements) / regroup::lanes) + 8;
    const long double h = in_tile + levels;
    const long double c = regroup::math::exp_error<Real>;
    const long double r = n > regroup::longest_two_sweep_row ? 1 + levels : 1;
    long double lost = 0;
    long double error = 0;
    for (const long double e : x) {
      const long double w = std::exp(e - m);
      const long double term = w - lost;
      const long double next = s + term;
      lost = (next - s) - term;
      s = next;
      error += w * (difference * (m - e) + (e == m ? 0 : c * r) + h);
    }
    s_bound = (unit<Real> * error + static_cast<long double>(n) * std::numeric_limits<Real>::min()) / s;
  }

  [[nodiscard]] long double probability(std::size_t j) const { return std::exp(x[j] - m) / s; }
  [[nodiscard]] long double log_probability(std::size_t j) const { return (x[j] - m) - std::log(s); }
  [[nodiscard]] long double logsumexp() const { return m + std::log(s); }

  template <class Out>
  [[nodiscard]] long double probability_bound(std::size_t j) const {
    const long double p = probability(j);
    const long double relative = unit<Real> * (difference * (m - x[j]) + regroup::math::exp_error<Real> + 2) + s_bound;
    return second_order * (p * relative + std::numeric_limits<Real>::min() + rounding<Out>(p));
  }
  template <class Out>
  [[nodiscard]] long double log_probability_bound(std::size_t j) const {
    const long double p = log_probability(j);
    return second_order * (unit<Real> * ((m - x[j]) + std::fabs(p)) + log_s_bound() + rounding<Out>(p));
  }
  [[nodiscard]] long double logsumexp_bound() const {
    return second_order * (log_s_bound() + unit<Real> * std::fabs(logsumexp()));
  }
  [[nodiscard]] long double log_s_bound() const {
    return s_bound + regroup::math::log_error<Real> * unit<Real> * std::fabs(std::log(s));
  }
};

/// The worst of many errors, each in parts of its own bound.
class worst_ratio {
 public:
  template <class Computed>
  void see(Computed computed, long double reference, long double bound) {
    const long double error = std::fabs(static_cast<long double>(regroup::widen(computed)) - reference);
    const long double ratio = error == 0 ? 0 : error / bound;
    if (!(ratio <= ratio_)) ratio_ = ratio;  // a NaN stays
  }
  [[nodiscard]] double value() const { return static_cast<double>(ratio_); }

 private:
  long double ratio_ = 0;
};

/// Rows of many kinds: flat, wide, far from zero, almost one-hot, sorted either way, all equal, tiny.
inline constexpr int kinds = 8;
inline std::vector<double> row_of_kind(int kind, index n, std::uint64_t seed) {
  order::dice random(seed * 64 + static_cast<std::uint64_t>(kind));
  std::vector<double> row;
  for (index i = 0; i < n; ++i) {
    const double u = static_cast<double>(random(-1'000'000, 1'000'000)) / 1e6;
    const double t = static_cast<double>(i) / static_cast<double>(n);
    const double values[kinds] = {u,      80 * u,  1e4 + 8 * u, i == n / 2 ? 20.0 : -20 * std::fabs(u),
                                  60 * t, -60 * t, 3.25,        u * 1e-6};
    row.push_back(values[kind]);
  }
  return row;
}

/// A row in its element type; float16 cannot hold offsets of 1e4 exactly, and need not.
template <class X>
std::vector<X> as(const std::vector<double>& row) {
  std::vector<X> result;
  for (const double x : row) result.push_back(static_cast<X>(static_cast<regroup::widened<X>>(x)));
  return result;
}

/// Bits, with all NaNs alike.
template <class X>
std::vector<std::uint64_t> bits_of(const std::vector<X>& values) {
  std::vector<std::uint64_t> bits;
  for (const X& value : values) {
    const double wide = regroup::widen(value);
    bits.push_back(wide != wide ? ~std::uint64_t{0} : std::bit_cast<std::uint64_t>(wide));
  }
  return bits;
}

}  // namespace properties

// SPDX-License-Identifier: Apache-2.0
// Attention of one query by definition, in long double, and what rounding may do to it: the bounds computed from the
// input. It uses no test framework, since the tests that need a GPU include it too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/float16.hpp"
#include "regroup/view.hpp"

namespace cases {

using regroup::index;

/// A key as the query sees it: the exact score, what its rounding may be, and its values.
struct seen_key {
  long double score;
  long double magnitude;  // scale sum |q k|, and |score| for each later addition
  std::vector<long double> values;
  long double norms = 0;  // scale |q| |k|
  index at = 0;           // its position
};

struct expected {
  std::vector<long double> out, out_bound;
  long double lse = 0, lse_bound = 0;
};

/// What products of small matrices do beyond chains of fma: u of each term's size that a sum may lose, u of each product
/// that its factors leave out, and by how much a weight may be off however small it is. And whether weights are powers of
/// two, of a rounded multiple of log2 e and within 4 u, and their sum is such a product, with ones.
struct products {
  double term = 1, factors = 0, weight_step = 0;
  bool has_fast_weights = false;
  bool are_of_integers = false;  // rows, and a tile's weights, in fixed point
};
/// Those of T on tensor cores, in units of 2^-24. How a sum is rounded is not documented; assumed is what was measured of
/// them: 4 (tf32) or 8 terms at a time, each cut below the last bit of the largest, and the sum cut once more, so 2 u
/// for each, for the sum before and for the cut (Fasi, Higham, Mikaitis, Pranesh 2021). Emulated, one rounding.
template <class T>
constexpr products of_tensor_cores(bool are_emulated) {
  if constexpr (sizeof(T) == 4) return {are_emulated ? 1. : 3 * 2 * (4 + 2) / 4., 8, 0};
  return {are_emulated ? 1. : 2 * (8 + 2) / 8., 0, std::is_same_v<T, regroup::float16> ? 0x1p-25 : 0, true};
}
/// And what narrowing a weight to T costs.
template <class T>
inline constexpr double narrow_weight_u = sizeof(T) == 4                           ? 0
                                          : std::is_same_v<T, regroup::float16> ? 0x1p-11
                                                                                : 0x1p-8;

/// What fixed point adds to O's numerator, for weights w: each number of a row is rounded to 1/16383 of the row's largest,
/// the weights of a tile, times their rows' largest, to 1/32766 of the largest of them or 1/131000 of their sum.
inline void add_fixed_point(const std::vector<seen_key>& keys, const std::vector<long double>& w,
                            std::vector<long double>& bound) {
  const auto largest = [&](std::size_t j) {
    long double most = 0;
    for (const long double v : keys[j].values) most = std::max(most, std::abs(v));
    return most;
  };
  for (std::size_t first = 0, last; first < keys.size(); first = last) {
    long double most = 0, sum = 0;
    for (last = first; last < keys.size() && keys[last].at / 64 == keys[first].at / 64; ++last) {
      most = std::max(most, w[last] * largest(last));
      sum += w[last] * largest(last);
    }
    const long double unit = most > 0 ? 1.001L * most / std::floor(most / std::max(most / 32766, sum / 131000)) : 0;
    for (std::size_t j = first; j < last; ++j) {
      for (std::size_t c = 0; c < bound.size() && largest(j) > 0; ++c) {
        bound[c] += w[j] * largest(j) / 16383 / 2 + unit / 2 * std::abs(keys[j].values[c]) / largest(j);
      }
    }
  }
}

/// `accumulation_u` of the arithmetic, `output_u` of the output's type; `depth` adds combines (and rescales) to the
/// chains of a leaf, for merges beyond the tree of leaves; `weight_u` of weights that are rounded once more.
inline expected define(const std::vector<seen_key>& keys, index d, index dv, double accumulation_u, double output_u,
                       double depth = 0, double weight_u = 0, const products& by = {}) {
  const long double u = accumulation_u;
  const double c = 1.5;  // math::exp_error
  const auto n = keys.size();
  expected e;
  e.out.assign(static_cast<std::size_t>(dv), 0);
  e.out_bound.assign(static_cast<std::size_t>(dv), 0);
  if (n == 0) {
    e.lse = -std::numeric_limits<long double>::infinity();
    return e;
  }
  long double highest = keys[0].score;
  for (const auto& key : keys) highest = std::max(highest, key.score);
  const double levels = std::ceil(std::log2(static_cast<double>(n) / 1024 + 1)) + depth;
  const double rescales = 16 + levels;
  const double chain = static_cast<double>(std::min<std::size_t>(n, 1024)) + levels;
  std::vector<long double> sum_bound(static_cast<std::size_t>(dv), 0);
  std::vector<long double> weights;
  long double s = 0;
  long double s_error = 0;
  for (const auto& key : keys) {
    const long double w = std::exp(key.score - highest);
    weights.push_back(w);
    long double score_error = (by.term * static_cast<double>(d + 3) + by.factors) * key.magnitude;
    if (by.are_of_integers) {  // a rounding to 1/32766 of a norm, in q and in k; weights are wrong by 2^-18.3
      score_error += (1.001L * std::sqrt(static_cast<long double>(d)) / 32766 * key.norms + 3.2e-6L) / u;
      score_error += (highest - key.score) + 2 * std::abs(highest) + 4;
    }
    // score - m is rounded, and decay_slope is below 0.05
    const long double of_weight = by.has_fast_weights ? 1.25L * (highest - key.score) + 4 : 0;
    const long double bracket = 1.05L * (highest - key.score) + c * (rescales + 1) + rescales + chain + 1 + score_error +
                                of_weight + static_cast<long double>(weight_u) / u;
    const long double of_products = (by.term - 1) * (chain + 3) + by.factors;
    s += w;
    s_error += w * (bracket + (by.has_fast_weights ? of_products : 0)) * u + by.weight_step;
    for (std::size_t k = 0; k < key.values.size(); ++k) {
      e.out[k] += w * key.values[k];
      sum_bound[k] += std::abs(key.values[k]) * (w * (bracket + of_products) * u + by.weight_step);
    }
  }
  if (by.are_of_integers) add_fixed_point(keys, weights, sum_bound);
  const long double eta = static_cast<long double>(n) * (u > 1e-10L ? 1.2e-38L : 2.3e-308L);
  const long double relative = s_error / s;
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    e.out[k] /= s;
    const long double size = std::abs(e.out[k]);
    e.out_bound[k] = 1.01L * ((sum_bound[k] + eta) / s + size * (relative + u + output_u) + (output_u > u ? 6e-8L : 0));
  }
  e.lse = highest + std::log(s);
  e.lse_bound = 1.01L * (relative + 2 * u * std::abs(std::log(s)) + u * (std::abs(e.lse) + std::abs(highest)));
  return e;
}

/// The keys j for which see(j, score) says so; it may change the score.
template <class T, class See>
std::vector<seen_key> keys_of(const regroup::view<const T>& q, const regroup::view<const T>& k,
                              const regroup::view<const T>& v, long double scale, const See& see) {
  std::vector<seen_key> keys;
  for (index j = 0; j < k.extent(0); ++j) {
    seen_key key{0, 0, {}, 0, j};
    long double squares_of_q = 0, squares_of_k = 0;
    for (index c = 0; c < q.extent(0); ++c) {
      const long double x = regroup::widen(q(c)), y = regroup::widen(k(j, c));
      key.score += x * y * scale;
      key.magnitude += std::abs(x * y * scale);
      squares_of_q += x * x;
      squares_of_k += y * y;
    }
    key.norms = std::abs(scale) * std::sqrt(squares_of_q * squares_of_k);
    if (!see(j, key)) continue;
    for (index c = 0; c < v.extent(1); ++c) key.values.push_back(regroup::widen(v(j, c)));
    keys.push_back(std::move(key));
  }
  return keys;
}

/// The worst of |got - expected| / bound; at most 1 where the bound holds.
struct worst_ratio {
  double ratio = 0;
  void add(long double got, long double wanted, long double bound) {
    if (!std::isfinite(wanted) || got != got) {
      if (got != wanted && (got == got || wanted == wanted)) ratio = std::numeric_limits<double>::infinity();
      return;
    }
    const long double error = std::abs(got - wanted);
    if (error > 0) ratio = std::max(ratio, static_cast<double>(error / bound));
  }
  void add(const expected& e, const auto* out, long double lse) {
    for (std::size_t k = 0; k < e.out.size(); ++k) add(regroup::widen(out[k]), e.out[k], e.out_bound[k]);
    add(lse, e.lse, e.lse_bound);
  }
};

}  // namespace cases

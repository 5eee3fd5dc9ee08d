// SPDX-License-Identifier: Apache-2.0
// What rounding may do to each number that attention returns, computed from its own inputs in double:
//     |error of O| <= u sum w |v| [(M - x) + e + c (r + 1) + h + 1],      w = exp(x - M)
//     |error of l| <= u sum w     [(M - x) + e + c (r + 1) + h],          O / l: both, relative, and one rounding more
// x is a key's score and e u the error of its dot product, (d + 2) u |q|.|k| scale; h combines and r rescales lie on the
// longest way from a key to the result; c is the certified error of our exp in units of u.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "regroup/algorithms/attention.hpp"

namespace demo {

/// The longest way from a key to the result.
struct depth {
  regroup::index combines;
  regroup::index rescales;
};

/// Keys folded `block` at a time, in tiles of 64, and the blocks' states merged `merges` deep.
inline depth depth_of(regroup::index block, regroup::index merges) {
  const regroup::index tiles = (block + regroup::attention_tile_keys - 1) / regroup::attention_tile_keys;
  const regroup::index rescales =
      tiles - 1 + merges;  // of which those of tiles are products of their own: combines too
  return {block + tiles - 1 + merges, rescales};
}

/// The bounds of one query. q (d), k (keys, d) and v (keys, dv) are views.
template <class Vector, class Matrix>
class attention_bounds {
 public:
  attention_bounds(const Vector& q, const Matrix& k, const Matrix& v, double scale) {
    const auto keys = static_cast<std::size_t>(k.extent(0));
    const auto d = q.extent(0);
    std::vector<double> x(keys), e(keys);
    double m = -std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < keys; ++j) {
      for (regroup::index c = 0; c < d; ++c) {
        const double product =
            static_cast<double>(q(c)) * static_cast<double>(k(static_cast<regroup::index>(j), c)) * scale;
        x[j] += product;
        e[j] += static_cast<double>(d + 2) * std::fabs(product);
      }
      m = std::fmax(m, x[j]);
    }
    o_.resize(static_cast<std::size_t>(v.extent(1)));
    weighted_o_.resize(o_.size());
    mean_.resize(o_.size());
    for (std::size_t j = 0; j < keys; ++j) {
      const double w = std::exp(x[j] - m);
      const double fixed = (1 + decay_slope) * (m - x[j]) + e[j] + exp_error;
      l_ += w;
      weighted_l_ += w * fixed;
      for (std::size_t c = 0; c < o_.size(); ++c) {
        const double value = static_cast<double>(v(static_cast<regroup::index>(j), static_cast<regroup::index>(c)));
        mean_[c] += w * value;
        o_[c] += w * std::fabs(value);
        weighted_o_[c] += w * std::fabs(value) * (fixed + 1);
      }
    }
    keys_ = static_cast<double>(keys);
  }

  /// O / l of channel `c`, in double.
  [[nodiscard]] double mean(std::size_t c) const { return mean_[c] / l_; }
  [[nodiscard]] double of(std::size_t c, depth way) const {
    const double deep = exp_error * static_cast<double>(way.rescales) + static_cast<double>(way.combines);
    const double relative_l = u * (weighted_l_ + deep * l_) / l_ + keys_ * eta;
    const double of_o = u * (weighted_o_[c] + deep * o_[c]) / l_ + keys_ * eta;
    return 1.01 * (of_o + std::fabs(mean(c)) * (relative_l + u));  // 1.01: products of two roundings
  }

 private:
  static constexpr double u = 0x1p-24;
  static constexpr double eta = std::numeric_limits<float>::min();
  static constexpr double exp_error = regroup::math::exp_error<float>;
  static constexpr double decay_slope = regroup::math::decay_slope<float>;
  double l_ = 0, weighted_l_ = 0, keys_ = 0;
  std::vector<double> o_, weighted_o_, mean_;
};

}  // namespace demo

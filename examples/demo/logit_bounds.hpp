// SPDX-License-Identifier: Apache-2.0
// A row of logits in double, and what rounding may do to regroup's float result, computed from the row itself:
//     |error of s| <= u sum w [(M - x) + c + h] + n eta,     w = exp(x - M), h additions deep, c the error of our exp
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "regroup/executor.hpp"
#include "regroup/math.hpp"

namespace demo {

inline constexpr double unit = 0x1p-24;  // half an ulp of 1 in float
inline constexpr double second_order = 1.01;

class row_bounds {
 public:
  template <class Row>
  explicit row_bounds(const Row& row) {
    for (const auto& e : row) x_.push_back(static_cast<double>(regroup::widen(e)));
    for (const double x : x_) m_ = std::fmax(m_, x);
    // Additions above an element: along its lane, across the lanes, and over the tiles.
    const auto levels = [](regroup::index n) {
      return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
    };
    const double h = static_cast<double>(regroup::tile_elements / regroup::lanes) + levels(regroup::lanes) +
                     levels(regroup::tiles_of(static_cast<regroup::index>(x_.size())));
    double error = 0;
    for (const double x : x_) {
      const double w = std::exp(x - m_);
      s_ += w;
      error += w * (difference * (m_ - x) + c + h);
    }
    rel_s_ = (unit * error + static_cast<double>(x_.size()) * eta) / s_;
  }

  [[nodiscard]] double probability(std::size_t i) const { return std::exp(x_[i] - m_) / s_; }
  [[nodiscard]] double probability_bound(std::size_t i) const {
    return second_order * (probability(i) * (unit * (difference * (m_ - x_[i]) + c + 2) + rel_s_) + eta);
  }
  [[nodiscard]] double logsumexp_bound() const {
    return second_order * (log_s_bound() + unit * std::fabs(m_ + std::log(s_)));
  }
  /// Of log s + (M - x_target): nothing as large as logsumexp is ever rounded.
  [[nodiscard]] double cross_entropy_bound(std::size_t target) const {
    const double below = m_ - x_[target];
    return second_order * (log_s_bound() + unit * (below + std::fabs(std::log(s_) + below)));
  }

 private:
  static constexpr double c = regroup::math::exp_error<float>;
  static constexpr double difference = 1 + regroup::math::decay_slope<float>;  // m - x is rounded, and decay's part
  static constexpr double eta = std::numeric_limits<float>::min();
  [[nodiscard]] double log_s_bound() const {
    return rel_s_ + regroup::math::log_error<float> * unit * std::fabs(std::log(s_));
  }
  std::vector<double> x_;
  double m_ = -std::numeric_limits<double>::infinity();
  double s_ = 0;
  double rel_s_ = 0;
};

}  // namespace demo

// SPDX-License-Identifier: Apache-2.0
// Counts of the elements in equal bins of [lo, hi]: vectors of counts under addition. Every element falls into the bin that
// NumPy chooses: computed by a reciprocal, then corrected by the edges of linspace. Level: element; tiles are counted into
// one vector, without one for each element. Commutes and associates bitwise.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "regroup/error.hpp"
#include "regroup/math.hpp"
#include "regroup/monoid.hpp"

namespace regroup {

/// `numpy.histogram(xs, bins, (lo, hi))` in Real: `bins` int64 counts. Bins are closed left and open right, the last one
/// closed on both sides; elements outside, and NaN, are not counted; lo == hi means [lo - 0.5, hi + 0.5]. Throws
/// argument_error unless lo <= hi, bins >= 1, and every bin has a width in Real. A combine adds `bins` counts.
template <std::floating_point Real>
class histogram {
 public:
  using element = Real;
  using state = std::vector<index>;
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;

  constexpr histogram(double lo, double hi, index bins) : bins_(bins) {
    using in_both = std::conditional_t<(sizeof(Real) > sizeof(double)), double, Real>;
    constexpr double most = std::numeric_limits<in_both>::max();
    if (!(-most <= lo && lo <= hi && hi <= most && hi - lo <= std::numeric_limits<double>::max())) {
      throw_argument("histogram needs lo <= hi, both finite in its type and at a finite distance; got " + std::to_string(lo) +
                     " and " + std::to_string(hi));
    }
    if (bins < 1) throw_argument("histogram needs at least one bin; got " + std::to_string(bins));
    const double first = lo == hi ? lo - 0.5 : lo;
    const double last = lo == hi ? hi + 0.5 : hi;
    const double width = last - first;  // which Real may not hold
    const double step = width / static_cast<double>(bins);
    per_width_ = std::min(static_cast<double>(bins) / width, std::numeric_limits<double>::max());
    const double minus_zero = -(lo - lo);  // no compiler may know it, so the fma is a product that nothing contracts
    for (index i = 0; i < bins; ++i) {
      edges_.push_back(static_cast<Real>(math::fma(static_cast<double>(i), step, minus_zero) + first));
    }
    edges_.push_back(static_cast<Real>(last));
    if (std::ranges::adjacent_find(edges_, std::greater_equal{}) != edges_.end()) {
      throw_argument("histogram needs bins that its type can tell apart; got " + std::to_string(bins) + " from " +
                     std::to_string(lo) + " to " + std::to_string(hi) + ", of which some have no width");
    }
  }

  constexpr state identity() const { return state(static_cast<std::size_t>(bins_)); }
  template <class X>
  requires std::convertible_to<X, Real>
  constexpr state lift(const X& x) const {
    state s = identity();
    count_in(s, static_cast<Real>(x));
    return s;
  }
  /// Throws argument_error where a and b have different numbers of bins.
  constexpr state operator()(state a, const state& b) const {
    if (a.size() != b.size()) {
      throw_argument("histograms of " + std::to_string(a.size()) + " and " + std::to_string(b.size()) +
                     " bins cannot be merged");
    }
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }
  template <class Tile>
  constexpr state lift_tile(const Tile& tile) const {
    return lift_tiles([&](const auto& body) { body(tile); });
  }
  template <class Tiles>
  constexpr state lift_tiles(const Tiles& each) const {
    state s = identity();
    each([&](const auto& tile) {
      for (index i = 0; i < tile.size(); ++i) count_in(s, static_cast<Real>(tile[i]));
    });
    return s;
  }

  /// The bins + 1 edges as numpy.linspace computes them: i step rounded, + lo rounded, then converted to Real.
  [[nodiscard]] constexpr const std::vector<Real>& edges() const { return edges_; }

 private:
  constexpr void count_in(state& counts, Real x) const {
    if (!(x >= edges_.front() && x <= edges_.back())) return;
    const double place = (static_cast<double>(x) - edges_.front()) * per_width_;  // or one beside it
    index bin = place < static_cast<double>(bins_) ? static_cast<index>(place) : bins_ - 1;
    while (x < edges_[static_cast<std::size_t>(bin)]) --bin;
    while (bin != bins_ - 1 && x >= edges_[static_cast<std::size_t>(bin + 1)]) ++bin;
    ++counts[static_cast<std::size_t>(bin)];
  }

  index bins_;
  double per_width_ = 0;  // bins
  std::vector<Real> edges_;
};

}  // namespace regroup

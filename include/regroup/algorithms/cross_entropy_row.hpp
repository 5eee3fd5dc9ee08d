// SPDX-License-Identifier: Apache-2.0
// From the state of a row of logits and its target: the loss log s + (M - x_target), never logsumexp - x_target, and the map
// that makes the gradient. Level: row.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include "regroup/algorithms/softmax_row.hpp"
#include "regroup/view.hpp"

namespace regroup {

/// What becomes of the rows' losses: their mean or sum over the rows that are not ignored, or no sum at all (the call
/// returns 0; take `.losses`).
enum class loss_reduction { mean, sum, none };

namespace cross_entropy_parts {

/// A sentence for a row whose target is neither a class nor ignored.
template <std::integral Target>
[[noreturn]] void throw_target(index row, Target target, index classes, index ignore_index) {
  const std::string from_0 = classes > 0 ? "is 0 to " + std::to_string(classes - 1) + ", or " : "can only be ";
  throw_argument("row " + std::to_string(row) + " has target " + std::to_string(target) + "; with " +
                 std::to_string(classes) + " classes a target " + from_0 + std::to_string(ignore_index) + " to be ignored");
}

/// Throws shape_error unless there is one target a row of the logits, in the shape of these or in a list; a sentence for
/// targets that are no integers.
template <class Target>
void require_targets(index rows, const shape& logits, index count, const shape& targets) {
  static_assert(std::integral<Target> && !std::same_as<Target, bool>,
                "regroup: cross_entropy's targets are integers");
  const bool is_list = targets.size() == 1 && count == rows;
  if (!is_list && !std::equal(logits.begin(), logits.end() - 1, targets.begin(), targets.end())) {
    throw_shape("cross_entropy needs one target a row, " + std::to_string(rows) + " for logits of shape " +
                to_string(logits) + ", in their shape or in a list; the targets have shape " + to_string(targets));
  }
}

/// Whether a target is `number`, and whether one of the classes: a 64-bit one may be past every index.
template <std::integral Target>
constexpr bool is_number(Target target, index number) {
  if constexpr (std::is_unsigned_v<Target>) return number >= 0 && std::uint64_t{target} == static_cast<std::uint64_t>(number);
  return static_cast<index>(target) == number;
}
template <std::integral Target>
constexpr bool is_class(Target target, index classes) {
  if constexpr (std::is_unsigned_v<Target>) return std::uint64_t{target} < static_cast<std::uint64_t>(classes);
  return static_cast<index>(target) >= 0 && static_cast<index>(target) < classes;
}

/// The factor of a gradient besides a row's share of the mean: the derivative of the scaled logits times the caller's
/// gradient_scale. Throws argument_error where that is not finite as a Real.
template <std::floating_point Real>
Real gradient_factor(double scale, double gradient_scale) {
  require_finite_as<Real>(gradient_scale, "cross_entropy's gradient_scale");
  require_finite_as<Real>(scale * gradient_scale, "cross_entropy's scale times its gradient_scale");
  return static_cast<Real>(scale * gradient_scale);
}

/// What a row of logits aims at: the place of its target, -1 if it is ignored and past the end if it is not among them, and the
/// target's scaled logit.
template <std::floating_point Real>
struct aim {
  index target;
  Real logit;
};

/// (softmax - onehot) share; 0 throughout for a row that is ignored (then `target` is -1).
template <std::floating_point Real>
struct gradient {
  static constexpr bool reads_weight = true;
  static constexpr auto outputs = softmax_parts::row_map_kind::shares_of_weights;
  softmax_parts::probability<Real> p;
  Real share;
  index target;
  Real at_target;
  template <class X>
  constexpr Real operator()(const X& x, Real weight) const {
    return math::select(target < 0, Real{0}, p(x, weight) * share);
  }
  constexpr softmax_parts::row_map<Real> of_row() const {
    return {target < 0 ? softmax_parts::row_map_kind::zeros : outputs, p.reciprocal, share, target, at_target};
  }
  /// Of a row that has the target: that output.
  template <class Row>
  constexpr void finish(const Row& y) const {
    y[target] = static_cast<std::remove_cvref_t<decltype(y[0])>>(at_target);
  }
};

/// The loss of a row, 0 if it is ignored.
template <std::floating_point Real>
constexpr Real loss_of(typename log_sum_exp<Real>::state row, aim<Real> at) {
  const Real loss = softmax_parts::nan_unless_finite(row.m, math::log(row.s) + (row.m - at.logit));
  return math::select(at.target < 0, Real{0}, loss);
}
/// Its gradient, times `share`: 1 for a sum without scales.
template <std::floating_point Real>
constexpr gradient<Real> gradient_of(typename log_sum_exp<Real>::state row, aim<Real> at, Real share) {
  const softmax_parts::probability<Real> p({Real{1}}, row);
  const Real wrong = math::fma(math::decay(at.logit - row.m), p.reciprocal, Real{-1});
  return {p, share, at.target, wrong * share};
}

}  // namespace cross_entropy_parts
}  // namespace regroup

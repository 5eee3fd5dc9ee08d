// SPDX-License-Identifier: Apache-2.0
// Cross-entropy of logits against integer targets: a row folds to (M, s) as in softmax, and its loss is
// log s + (M - x_target), never logsumexp - x_target, which would lose |logsumexp| u (6e-4 at logits of 1e4 in float).
// Losses are summed in double in the contract's order, so the result does not depend on threads. Level: thread.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>
#include <vector>

#include "regroup/algorithms/cross_entropy_row.hpp"
#include "regroup/algorithms/softmax.hpp"

namespace regroup {

/// Options of `cross_entropy`. `X` is the element type of the logits; `Real` is float, or double for double.
template <class X, class Real>
struct cross_entropy_options {
  index ignore_index = -100;  ///< rows with this target have loss 0 and gradient 0, and do not count for the mean
  loss_reduction reduction = loss_reduction::mean;
  /// scale gradient_scale (softmax - onehot), over the count for the mean; in the logits' shape
  std::optional<view<X>> gradient = {};
  std::optional<view<Real>> losses = {};  ///< one a row, in C order of the other axes; 0 for ignored rows
  double scale = 1;           ///< multiplies every logit first, rounded once; finite
  double gradient_scale = 1;  ///< multiplies the gradient: a loss scale, say, that keeps 16 bits from underflow; finite
};

namespace cross_entropy_parts {

/// Throws argument_error for the first row whose target is neither a class nor ignored; else counts the rows not ignored.
template <class Targets>
index count_used(const Targets& targets, index classes, index ignore_index) {
  index used = 0;
  for (index row = 0; row < targets.size(); ++row) {
    const auto target = targets[row];
    if (is_number(target, ignore_index)) continue;
    if (!is_class(target, classes)) throw_target(row, target, classes, ignore_index);
    ++used;
  }
  return used;
}

/// The targets in C order of their axes, one a row of the logits.
template <class Logits, class Targets>
auto targets_of(const Logits& logits, const Targets& targets) {
  const auto v = view(targets);
  index rows = 1;
  for (int a = 0; a + 1 < logits.rank(); ++a) rows *= logits.extent(a);
  require_targets<std::remove_cv_t<typename decltype(v)::element_type>>(rows, logits.extents(), v.size(), v.extents());
  return generate(rows, [v](index row) { return v.data()[offset_of(row, v.extents(), v.strides())]; });
}

/// What cross_entropy makes of a row: its loss, to be summed, and for `taker` where somebody takes it; and its gradient.
template <std::floating_point Real, class Aims, class Taker>
struct from_target {
  using state = typename log_sum_exp<Real>::state;
  using map = gradient<Real>;
  using given = aim<Real>;
  const Aims& aims;
  Real share;
  double* summands;
  const Taker* taker;
  constexpr given given_of(index row) const { return aims(row); }
  static constexpr bool has_values() { return true; }
  constexpr Real value(given at, state s) const { return loss_of(s, at); }
  constexpr void put(index row, given at, Real loss) const {
    if (at.target >= 0) summands[row] = static_cast<double>(loss);
    if (taker != nullptr) (*taker)(row, loss);
  }
  constexpr map map_of(given at, state s) const { return gradient_of(s, at, share); }
};

/// The number of classes; what a row aims at, by its number; and the executor for what was made of all rows. The verb finds
/// these, or those of an executor that has only a part of every row, by their arguments.
template <executor Executor, class In, class Targets>
index classes_of(const Executor&, const In& in, const Targets& /*targets*/, index /*ignore_index*/) {
  return in.length();
}
template <executor Executor, class In, class Targets, std::floating_point Real>
auto aims_of(const Executor&, const In& in, const Targets& targets, index ignore_index, softmax_parts::scaled<Real> seen) {
  return [&in, &targets, ignore_index, seen](index row) -> aim<Real> {
    const auto target = targets[row];
    if (is_number(target, ignore_index)) return {-1, Real{0}};
    const auto t = static_cast<index>(target);
    return {t, seen(in[row][t])};
  };
}
template <executor Executor>
const Executor& executor_of_rows(const Executor& ex) {
  return ex;
}

}  // namespace cross_entropy_parts

/// The cross-entropy of rows of logits (..., classes) against `targets` (...), integers from 0 to classes - 1, any strides:
/// the mean or sum over rows of log s + (M - scale x_target), in float (double for double); the mean of no rows is NaN, the
/// sum 0. A row that holds NaN, +inf or only -inf once it is scaled has a NaN loss. `.gradient` may be exactly the logits.
///
/// |error| of a row's loss: that of `log_softmax` at the target. |error| of its gradient, before it is multiplied by a scale
/// or divided by the count: that of `softmax`, and at the target u |p - 1| more. The sum adds u |sum| to the errors of the
/// losses.
///
/// Cost: two sweeps of the logits, one more with a gradient; memory for one double a row. Throws argument_error for a target
/// out of range (naming the row) and for a scale that is not finite, shape_error, and overlap_error; nothing is written then.
template <executor Executor, class View, class Targets>
auto cross_entropy(const Executor& ex, const View& logits, const Targets& targets,
                   const cross_entropy_options<element_of_view<View>,
                                               softmax_parts::real_in<const View>>& options = {}) {
  using namespace cross_entropy_parts;
  using real = softmax_parts::real_in<const View>;
  static_assert(requires { view(targets); }, "regroup: cross_entropy's targets are a view, a span or a contiguous container");
  const auto x = view(logits);
  const auto in = softmax_parts::rows_along(x, -1, "cross_entropy");
  const auto target = targets_of(x, targets);
  const auto seen = softmax_parts::scale_of<real>(options.scale, "cross_entropy's scale");
  const real factor = gradient_factor<real>(options.scale, options.gradient_scale);
  auto gradient = options.gradient;
  const auto out =
      gradient ? std::optional(softmax_parts::output_rows(x, *gradient, -1, "cross_entropy")) : std::nullopt;
  if (gradient) regroup::require_apart(view(targets), *gradient, false, "the targets");
  using places = decltype(verbs::output(x, *options.losses, in.size()));
  std::optional<places> put;
  if (options.losses) {
    regroup::require_apart(view(targets), *options.losses, false, "the targets");
    if (gradient) regroup::require_apart(*gradient, *options.losses, false, "another output");
    put.emplace(verbs::output(x, *options.losses, in.size()));
  }
  const auto& on = worker_of(ex);
  std::vector<double> losses(static_cast<std::size_t>(in.size()), plus<double>{}.identity());
  const index classes = classes_of(on, in, target, options.ignore_index);
  const index used = count_used(target, classes, options.ignore_index);
  const auto aims = aims_of(on, in, target, options.ignore_index, seen);
  const real share = options.reduction == loss_reduction::mean ? factor / static_cast<real>(used) : factor;
  using verb = from_target<real, decltype(aims), places>;
  const softmax_parts::look<verb> look{{aims, share, losses.data(), put ? &*put : nullptr}};
  if (out) {
    each_row(on, in, *out, seen, look);
  } else {
    each_row(on, in, std::nullopt, seen, look);
  }
  if (options.reduction == loss_reduction::none) return real{0};
  const double sum = reduce(executor_of_rows(ex), losses, plus<double>{});
  return static_cast<real>(options.reduction == loss_reduction::mean ? sum / static_cast<double>(used) : sum);
}

}  // namespace regroup

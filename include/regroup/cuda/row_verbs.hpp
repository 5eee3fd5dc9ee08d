// SPDX-License-Identifier: Apache-2.0
// From a caller's arguments to rows, outputs and looks, for softmax, log_softmax, logsumexp and cross_entropy on a device:
// shapes and options are checked, and the work becomes a value. Plain host code; `on` is anything with `launch`,
// `most_cluster_blocks` and `fold`: a device, or the tests' emulation. Level: device.
#pragma once

#include <algorithm>
#include <concepts>
#include <optional>
#include <type_traits>

#include "regroup/cuda/row_looks.hpp"
#include "regroup/cuda/row_plan.hpp"
#include "regroup/cuda/view.hpp"

namespace regroup::cuda {

/// Options of `softmax` and `log_softmax` on a device: `{.scale = 0.5, .axis = 0, .logsumexp = lse}`.
template <class Real>
struct softmax_options {
  double scale = 1;                                 ///< multiplies every element first, rounded once; finite
  int axis = -1;                                    ///< negative ones count from the end
  std::optional<device_view<Real>> logsumexp = {};  ///< log(sum exp x) of each row, in C order of the other axes
};
template <class X>
using real_of = widened<std::remove_const_t<X>>;

/// The rows of an input and of an output, and what looks at them: one verb's work, to be run by `on` in a workspace.
template <std::floating_point Real, class In, class Out, class Look>
struct row_work {
  In rows;
  Out out;
  softmax_parts::scaled<Real> seen;
  Look look;

  [[nodiscard]] std::size_t bytes() const { return workspace_of<Real, Look>(rows).bytes; }
  template <class On>
  void run(const On& on, const workspace& w) const {
    w.require(bytes());
    const auto launch = [&on](const auto& kernel, index blocks, int cluster) { on.launch(kernel, blocks, cluster); };
    const bool is_held = plan_rows<Real>(rows.length).is_held();
    const int clusters = is_held ? 1 : on.template most_cluster_blocks<map_clustered_rows<Real, In, Out, Look>>();
    launch_rows(launch, clusters, rows, out, seen, look, w.data);
  }
};
template <class In, class Out, class Real, class Look>
row_work(In, Out, softmax_parts::scaled<Real>, Look) -> row_work<Real, In, Out, Look>;

template <class X>
auto rows_along(const device_view<X>& x, int axis, const char* verb) {
  softmax_parts::require_softmax_rows<std::remove_const_t<X>>(x.rank(), verb);
  return device_view<const X>(x).axis_last(axis).rows();
}
/// The rows of an output in x's shape, which may be exactly x.
template <class X, class Y>
auto output_rows(const device_view<X>& x, const device_view<Y>& y, int axis, const char* verb) {
  static_assert(!std::is_const_v<Y>, "regroup: the output is written, so its elements cannot be const");
  softmax_parts::require_softmax_output<std::remove_const_t<X>, Y>(x.extents(), y.extents(), verb);
  x.require_apart_from(y, true);
  return y.axis_last(axis).rows();
}

template <template <class> class Map, class X, class Y>
auto normalise(const device_view<X>& x, const device_view<Y>& y, const softmax_options<real_of<X>>& options,
               const char* verb) {
  using real = real_of<X>;
  auto rows = rows_along(x, options.axis, verb);
  const auto out = output_rows(x, y, options.axis, verb);
  row_places<real> lse;
  if (options.logsumexp) {
    y.require_apart_from(*options.logsumexp, false, "another output");
    lse = {options.logsumexp->data(), x.require_places(*options.logsumexp, rows.size())};
  }
  const auto seen = softmax_parts::scale_of<real>(options.scale);
  if (rows.length == 0 && !options.logsumexp) rows.count = 0;  // nothing is written, however many rows of nothing there are
  return row_work{rows, out, seen, look_normalise<Map, real>{seen, lse}};
}
/// softmax's rows without an output.
template <class X, class Out>
auto log_sums(const device_view<X>& x, const device_view<Out>& out, const logsumexp_options& options) {
  using real = real_of<X>;
  require_place_for<Out, real>();
  const auto rows = rows_along(x, options.axis, "logsumexp");
  const row_places<Out> places{out.data(), x.require_places(out, rows.size())};
  const auto seen = softmax_parts::scale_of<real>(options.scale);
  return row_work{rows, row_batch<std::remove_const_t<X>>{}, seen,
                  look_normalise<softmax_parts::probability, real, Out>{seen, places}};
}

/// Options of `cross_entropy` on a device. `X` is the element type of the logits.
template <class X, class Real>
struct cross_entropy_options {
  index ignore_index = -100;  ///< rows with this target have loss 0, gradient 0 and no part in the mean
  loss_reduction reduction = loss_reduction::mean;
  /// scale gradient_scale (softmax - onehot), over the count for the mean; in the logits' shape
  std::optional<device_view<X>> gradient = {};
  std::optional<device_view<Real>> losses = {};  ///< one a row, in C order of the other axes; ignored rows 0
  double scale = 1;           ///< multiplies every logit first, rounded once; finite
  double gradient_scale = 1;  ///< multiplies the gradient: a loss scale, say, that keeps 16 bits from underflow; finite
};
template <class X>
using entropy_options = cross_entropy_options<std::remove_const_t<X>, real_of<X>>;

/// cross_entropy's work: a fold that checks the targets, the rows, and a fold of the losses.
template <class X, class Target>
class entropy_work {
 public:
  using real = real_of<X>;
  entropy_work(const device_view<X>& logits, const device_view<Target>& targets, const entropy_options<X>& options)
      : rows_(rows_along(logits, -1, "cross_entropy")),
        targets_(device_view<const Target>(targets).one_row()),
        check_{rows_.length, options.ignore_index},
        reduction_(options.reduction),
        seen_(softmax_parts::scale_of<real>(options.scale, "cross_entropy's scale")),
        factor_(cross_entropy_parts::gradient_factor<real>(options.scale, options.gradient_scale)) {
    cross_entropy_parts::require_targets<std::remove_const_t<Target>>(rows_.size(), logits.extents(), targets.size(),
                                                                      targets.extents());
    if (options.gradient) {
      gradient_ = output_rows(logits, *options.gradient, -1, "cross_entropy");
      targets.require_apart_from(*options.gradient, false, "the targets");
    }
    if (options.losses) {
      losses_ = {options.losses->data(), logits.require_places(*options.losses, rows_.size())};
      targets.require_apart_from(*options.losses, false, "the targets");
      if (options.gradient) options.gradient->require_apart_from(*options.losses, false, "another output");
    }
  }

  template <class On>
  [[nodiscard]] std::size_t bytes(const On& on) const {
    const std::size_t rows = rows_work(nullptr).bytes();
    const std::size_t checking = on.fold_bytes(targets_, check_);
    const std::size_t summing = on.fold_bytes(summands(nullptr), plus<double>{});
    return folds_at() + std::max({rows, checking, summing});
  }
  /// Counts the targets in use and finds the first wrong one: the workspace then begins with a check_targets::state.
  template <class On>
  void check(const On& on, const workspace& w) const {
    w.require(bytes(on));
    on.fold(targets_, check_, put_state<check_targets::state>{static_cast<check_targets::state*>(w.data)}, folds(w));
  }
  /// Losses and gradients, after the check; then the loss of the batch to `out`, unless no sum is wanted.
  template <class On, class Out>
  void run(const On& on, Out* out, const workspace& w) const {
    rows_work(w.data).run(on, folds(w));
    if (reduction_ == loss_reduction::none) return;
    on.fold(summands(w.data), plus<double>{}, put_loss<Out>{counted(w.data), out}, folds(w));
  }
  /// The address of a row's target on the device; and `refuse`, which throws for a wrong one.
  [[nodiscard]] const Target* target_at(index row) const { return targets_.first + row * targets_.stride; }
  [[noreturn]] void refuse(index row, Target target) const {
    cross_entropy_parts::throw_target(row, target, rows_.length, check_.ignore_index);
  }

 private:
  static constexpr std::size_t summands_at = 32;
  static_assert(sizeof(check_targets::state) <= summands_at);
  [[nodiscard]] std::size_t folds_at() const {
    return summands_at + (static_cast<std::size_t>(rows_.size()) * sizeof(double) + 15) / 16 * 16;
  }
  static char* at(void* base, std::size_t offset) { return base == nullptr ? nullptr : static_cast<char*>(base) + offset; }
  [[nodiscard]] workspace folds(const workspace& w) const { return {at(w.data, folds_at()), w.bytes - folds_at()}; }
  [[nodiscard]] row_batch<double> summands(void* base) const {
    const index n = rows_.size();
    return {reinterpret_cast<double*>(at(base, summands_at)), 1, n, n, 1};
  }
  [[nodiscard]] const check_targets::state* counted(void* base) const {
    return reduction_ == loss_reduction::mean ? static_cast<const check_targets::state*>(base) : nullptr;
  }
  [[nodiscard]] auto rows_work(void* base) const {
    const row_places<const Target> targets{targets_.first, targets_.stride};
    const look_target<real, decltype(rows_), Target> look{rows_,   targets,       check_.ignore_index,   seen_,
                                                          factor_, counted(base), summands(base).first, losses_};
    return row_work{rows_, gradient_, seen_, look};
  }

  row_batch<const X> rows_;
  row_batch<const Target> targets_;
  check_targets check_;
  loss_reduction reduction_;
  softmax_parts::scaled<real> seen_;
  real factor_;
  row_batch<std::remove_const_t<X>> gradient_ = {};  // null where none is wanted
  row_places<real> losses_;
};

}  // namespace regroup::cuda

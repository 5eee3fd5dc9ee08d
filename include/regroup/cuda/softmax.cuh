// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp on a GPU, with the bits of the CPU's (algorithms/softmax.hpp): a row up to 4096
// elements is held by 4, 32 or 128 threads, one read and one write of memory; up to 65,536 a block has it, in tiles, three
// reads, of which a cache may serve two; a longer one is folded by many blocks, and read once more. Which it is depends on
// the row's length alone. Needs nvcc with -std=c++20 --expt-relaxed-constexpr. Level: device.
#pragma once

#include <cmath>
#include <concepts>
#include <optional>
#include <type_traits>

#include "regroup/cuda/device.cuh"
#include "regroup/cuda/row_looks.hpp"
#include "regroup/cuda/row_plan.hpp"

namespace regroup {

namespace cuda {

/// What `softmax` and `log_softmax` may be told on a device: `{.scale = 0.5, .axis = 0, .logsumexp = lse}`.
template <std::floating_point Real>
struct softmax_options {
  double scale = 1;                                 ///< multiplies every element first, rounded once; finite
  int axis = -1;                                    ///< negative ones count from the end
  std::optional<device_view<Real>> logsumexp = {};  ///< log(sum exp x) of each row, in C order of the other axes
};
template <class X>
using real_of = widened<std::remove_const_t<X>>;

/// The rows of an input and of an output of its shape, and what looks at them: one verb's work, to be run in a workspace.
template <std::floating_point Real, class In, class Out, class Look>
struct row_work {
  In rows;
  Out out;
  softmax_parts::scaled<Real> seen;
  Look look;

  [[nodiscard]] std::size_t bytes() const { return workspace_of<Real, Out, Look>(plan_rows(rows.length), rows).bytes; }
  void run(const device& on, const workspace& w) const {
    w.require(bytes());
    launch_rows([&on](const auto& kernel, index blocks) { on.launch(kernel, blocks); }, rows, out, seen, look, w.data);
  }
  void run(const device& on, const std::optional<workspace>& w) const {
    if (w) return run(on, *w);
    with_workspace(on, bytes(), [&](const workspace& own) { run(on, own); });
  }
};
template <class In, class Out, class Real, class Look>
row_work(In, Out, softmax_parts::scaled<Real>, Look) -> row_work<Real, In, Out, Look>;

template <class X>
auto rows_along(const device_view<X>& x, int axis, const char* verb) {
  softmax_parts::require_softmax_element<std::remove_const_t<X>>();
  if (x.rank() == 0) throw_shape(std::string(verb) + " needs a rank of 1 or more; got rank 0");
  return device_view<const X>(x).axis_last(axis).rows();
}
/// The rows of an output in x's shape, which may be exactly x.
template <class X, class Y>
auto output_rows(const device_view<X>& x, const device_view<Y>& y, int axis, const char* verb) {
  static_assert(!std::is_const_v<Y>, "regroup: the output is written, so its elements cannot be const");
  softmax_parts::require_softmax_output<std::remove_const_t<X>, Y>();
  if (x.extents() != y.extents()) {
    throw_shape("the output of " + std::string(verb) + " has the shape of its input, " + to_string(x.extents()) +
                "; got " + to_string(y.extents()));
  }
  x.require_apart_from(y, true);
  return y.axis_last(axis).rows();
}

template <template <class> class Map, class X, class Y>
auto normalise(const device_view<X>& x, const device_view<Y>& y, const softmax_options<real_of<X>>& options,
               const char* verb) {
  using real = real_of<X>;
  const auto rows = rows_along(x, options.axis, verb);
  const auto out = output_rows(x, y, options.axis, verb);
  row_places<real> lse;
  if (options.logsumexp) {
    y.require_apart_from(*options.logsumexp, false);
    lse = {options.logsumexp->data(), require_places(x, *options.logsumexp, rows.size())};
  }
  const auto seen = softmax_parts::scale_of<real>(options.scale);
  return row_work{rows, out, seen, look_normalise<Map, real>{seen, lse}};
}
template <class X, class Out>
auto log_sums(const device_view<X>& x, const device_view<Out>& out, const logsumexp_options& options) {
  const auto rows = rows_along(x, options.axis, "logsumexp");
  const row_places<Out> places{out.data(), require_places(x, out, rows.size())};
  return row_work{rows, no_rows{}, softmax_parts::scale_of<real_of<X>>(options.scale), look_logsumexp<Out>{places}};
}

}  // namespace cuda

/// softmax (algorithms/softmax.hpp) along one axis of a view whose rows are one stride apart; y has x's shape, its element
/// type or a wider floating one, and may be exactly x. Returns when it is done. Throws as the host's, and device_error.
template <class X, class Y>
void softmax(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
             const cuda::softmax_options<cuda::real_of<X>>& options = {}) {
  cuda::normalise<softmax_parts::probability>(x, y, options, "softmax").run(on, std::nullopt);
}
template <class X, class Y>
void log_softmax(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                 const cuda::softmax_options<cuda::real_of<X>>& options = {}) {
  cuda::normalise<softmax_parts::log_probability>(x, y, options, "log_softmax").run(on, std::nullopt);
}
/// log(sum exp x) of each row, in C order of the other axes.
template <class X, class Out>
void logsumexp(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Out>& out,
               const logsumexp_options& options = {}) {
  cuda::log_sums(x, out, options).run(on, std::nullopt);
}

/// The bytes of workspace that any of the three needs for x along an axis: none for rows up to 65,536 elements.
template <class X>
std::size_t softmax_workspace(const cuda::device&, const cuda::device_view<X>& x, int axis = -1) {
  using real = cuda::real_of<X>;
  using look = cuda::look_normalise<softmax_parts::log_probability, real>;
  const auto rows = cuda::rows_along(x, axis, "softmax");
  return cuda::workspace_of<real, decltype(rows), look>(cuda::plan_rows(rows.length), rows).bytes;
}
/// The same in a workspace of the caller's, in the stream's order.
template <class X, class Y>
void softmax_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                  const cuda::workspace& w, const cuda::softmax_options<cuda::real_of<X>>& options = {}) {
  cuda::normalise<softmax_parts::probability>(x, y, options, "softmax").run(on, w);
}
template <class X, class Y>
void log_softmax_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                      const cuda::workspace& w, const cuda::softmax_options<cuda::real_of<X>>& options = {}) {
  cuda::normalise<softmax_parts::log_probability>(x, y, options, "log_softmax").run(on, w);
}
template <class X, class Out>
void logsumexp_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Out>& out,
                    const cuda::workspace& w, const logsumexp_options& options = {}) {
  cuda::log_sums(x, out, options).run(on, w);
}

template <class X, class... Rest>
  requires(!cuda::is_device_view<X>)
void softmax(const cuda::device&, const X&, const Rest&...) {
  cuda::refuse_host_memory<X>();
}
template <class X, class... Rest>
  requires(!cuda::is_device_view<X>)
void log_softmax(const cuda::device&, const X&, const Rest&...) {
  cuda::refuse_host_memory<X>();
}
template <class X, class... Rest>
  requires(!cuda::is_device_view<X>)
void logsumexp(const cuda::device&, const X&, const Rest&...) {
  cuda::refuse_host_memory<X>();
}

}  // namespace regroup

// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp along an axis, written with folds. A row folds to (M, s), its largest element and the
// sum of exp(x - M), by math::decay; a second sweep maps each element through that state. Nothing overflows: every exponent
// is <= 0. The order, a contract: for rows of up to 65,536 elements M, then plus's tree over decay(x - M); for longer ones
// log_sum_exp's tree. So a row has the same bits alone, in any batch, in any layout and with any threads. Level: thread
// (rows), or lane where a few long rows share their tiles among threads.
#pragma once

#include <algorithm>
#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

#include "regroup/algorithms/softmax_abreast.hpp"
#include "regroup/algorithms/softmax_columns.hpp"
#include "regroup/algorithms/softmax_far.hpp"
#include "regroup/algorithms/softmax_groups.hpp"
#include "regroup/algorithms/softmax_sweeps.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"

namespace regroup {

/// Options of `softmax` and `log_softmax`: `{.scale = 0.5, .axis = 0, .logsumexp = lse}`.
template <class Real>
struct softmax_options {
  double scale = 1;                          ///< multiplies every element first, rounded once; finite
  int axis = -1;                             ///< negative ones count from the end
  std::optional<view<Real>> logsumexp = {};  ///< log(sum exp x) of each row, in C order of the other axes
};

namespace softmax_parts {

/// The type of the computation and of every logsumexp: float, or double for double.
template <class View>
using real_in = widened<element_of_view<View>>;

/// The element type of an output's rows; the input's where there is no output.
template <class X, class Out>
struct output_of {
  using type = std::remove_cv_t<std::remove_pointer_t<decltype(std::declval<const Out&>()[0].first)>>;
};
template <class X>
struct output_of<X, std::nullopt_t> {
  using type = X;
};

/// Whether there are outputs that are made from weights.
template <class Out, class Verb>
constexpr bool outputs_need_weights() {
  if constexpr (std::same_as<Out, std::nullopt_t>) {
    return false;
  } else {
    return Verb::map::outputs != row_map_kind::differences;
  }
}

/// Folds every row; look(row, state) returns the map that makes its outputs. `out`: rows, or std::nullopt. Chooses how to
/// fold rows; the choice never changes the bits. Very short rows: several at once, one per vector lane. Short ones: several,
/// one after another, of which none waits for its own sums. Strided rows: copied together in blocks. Rows that fit a cache:
/// one thread each. A few long rows: one after another, all threads on each, unless a single thread would finish the row
/// before three rounds of synchronisation (it needs one exponential an element, the shared sweep two; Zen 4, two threads,
/// 50,000 elements: 14 us against 15 to 21). The verbs find this, or another executor's, by its arguments.
template <executor Executor, class In, class Out, std::floating_point Real, class Verb>
void each_row(const Executor& ex, const In& in, const Out& out, scaled<Real> seen, const look<Verb>& look) {
  using x = std::remove_cv_t<std::remove_pointer_t<decltype(in[0].first)>>;
  using y = typename output_of<x, Out>::type;
  const index count = in.size();
  const index length = in.length();
  if (count == 0) return;
  bool is_contiguous = in[0].contiguous() != nullptr;
  index group = 1;
  bool past_caches = false;
  if constexpr (!std::same_as<Out, std::nullopt_t>) {
    is_contiguous &= out[0].contiguous() != nullptr;
    group = host::group_rows(in, out, longest_row_abreast);
    const bool in_place = static_cast<const void*>(in[0].first) == static_cast<const void*>(out[0].first);
    past_caches = length >= 4 * lanes && !in_place &&  // of shorter rows too little is whole lines; a cache holds x's
                  static_cast<std::size_t>(count * length) * sizeof(y) > cached_output_bytes;
  } else {
    group = host::group_rows(in, in, longest_row_abreast);
  }
  const double cost = 20 + static_cast<double>(length) / 2;
  const index some = std::max<index>(4 * tile_elements / std::max<index>(length, 1), 1);
  const auto in_groups = [&](index rows, const auto& sweep_rows) {
    ex.for_each((count + rows - 1) / rows, cost * static_cast<double>(rows),
                [&](index g) { sweep_rows(g * rows, std::min((g + 1) * rows, count)); });
  };
  const index threads = std::max(concurrency_of(ex), 1);
  const bool is_near = length <= longest_two_sweep_row;
  const bool are_few = length >= 8 * tile_elements && count < (is_near ? std::min<index>(threads, 64) : 64);
  // Rows [first, last) of some that are side by side: row k of them is row `number` + k of all.
  const auto sweep_near = [&](const auto& xs, const auto& ys, index first, index last, index number, bool goes_past) {
    near_sweep<x, y> sweep(length, seen, goes_past);
    host::dispatch([&] {
      sweep.rows(xs, ys, first, last, [&](index k, const auto& state) { return look(number + k, state); });
    });
  };
  if constexpr (has_row_kernels<x, y>) {
    using columns = columns_as_rows<x, y>;
    const index together = columns::together(length);
    const bool go_together = group > 1 ? length >= shortest_transposed && host::are_enough(threads, count, length)
                                       : threads == 1 || !are_few;
    if (!is_contiguous && length <= longest_transposed && go_together) {
      index neighbours = in.grid_at(0, count).rows;  // in one matrix
      if constexpr (!std::same_as<Out, std::nullopt_t>) neighbours = std::min(neighbours, out.grid_at(0, count).rows);
      const index least = group > 1 ? group : std::min(std::max(some, neighbours), std::max<index>(count / threads, 1));
      in_groups(count >= 4 * together * threads ? std::max(together, least) : least, [&](index first, index last) {
        columns(length, last - first).each(in, out, first, last, [&](const auto& xs, const auto& ys, index row, index n) {
          if (is_near) return sweep_near(xs, ys, 0, n, row, false);
          const auto alone = worker_of(seq);
          const tile_sweep<std::remove_cvref_t<decltype(alone)>, x, y> sweep(alone, length, seen, false);
          for (index k = 0; k < n; ++k) {
            sweep.row(xs, ys, k, [&](index, const auto& state) { return look(row + k, state); });
          }
        });
      });
      return;
    }
  }
  if constexpr (has_row_kernels<x, y>) {
    if (is_contiguous && go_in_groups<Out>(count, length)) {
      in_groups((some + host::abreast - 1) / host::abreast * host::abreast, [&](index first, index last) {
        group_sweep<x, y> sweep(seen);
        host::dispatch([&] { sweep.rows(in, out, first, last, look); });
      });
      return;
    }
  }
  if (group > 1 && is_near && host::are_enough(threads, count, length)) {
    in_groups((some + group - 1) / group * group, [&](index first, index last) {
      abreast_sweep<x, y, Real> sweep(length, seen);
      host::dispatch([&] { sweep.rows(in, out, first, last, look); });
    });
    return;
  }
  const auto each_alone = [&](const auto& sweep_of) {
    if (are_few) {
      for (index row = 0; row < count; ++row) sweep_of(ex).row(in, out, row, look);
    } else {
      in_groups(1, [&](index row, index) { sweep_of(worker_of(seq)).row(in, out, row, look); });
    }
  };
  if constexpr (has_row_kernels<x, y>) {
    if (is_contiguous && is_near && (!are_few || outputs_need_weights<Out, Verb>())) {
      // The ends of a group overlap with nothing: all rows for one thread, or up to 8 groups of 4 and more for each.
      const index turns = concurrency_of(ex) == 1 ? 1 : threads * std::clamp<index>(count / threads / 4, 1, 8);
      in_groups(std::max(some, (count + turns - 1) / turns),
                [&](index first, index last) { sweep_near(in, out, first, last, 0, past_caches); });
      return;
    }
    each_alone([&](const auto& on) {
      return tile_sweep<std::remove_cvref_t<decltype(on)>, x, y>(on, length, seen, past_caches);
    });
  } else {
    each_alone([&](const auto& on) { return far_sweep(on, seen); });
  }
}

/// The lines along an axis of a view, which becomes the last.
template <class View>
auto lines_along(const View& x, int axis, const char* verb) {
  const auto v = view(x);
  using element = std::remove_cv_t<typename decltype(v)::element_type>;
  require_softmax_rows<element>(v.rank(), verb);
  return axes_last(view<const element>(v), {axis});
}
/// Those of an output in x's shape, which may be exactly x.
template <class View, class Y>
auto output_lines(const View& x, const view<Y>& out, int axis, const char* verb) {
  const auto in = view(x);
  require_softmax_output<element_of_view<View>, Y>(in.extents(), out.extents(), verb);
  regroup::require_apart(in, out, true);
  return axes_last(out, {axis});
}
/// The rows along an axis of a view, and of an output.
template <class View>
auto rows_along(const View& x, int axis, const char* verb) {
  return regroup::rows(lines_along(x, axis, verb));
}
template <class View, class Y>
auto output_rows(const View& x, const view<Y>& out, int axis, const char* verb) {
  return regroup::rows(output_lines(x, out, axis, verb));
}

/// What softmax's verbs make of a row's state alone: its logsumexp, for `taker` where somebody takes it, and the map of its
/// elements.
template <class Map, std::floating_point Real, class Taker>
struct from_state {
  using state = typename log_sum_exp<Real>::state;
  using map = Map;
  struct given {};
  scaled<Real> seen;
  const Taker* taker;
  index first = 0;  ///< the number of the first row
  constexpr given given_of(index) const { return {}; }
  constexpr bool has_values() const { return taker != nullptr; }
  constexpr Real value(given, state s) const { return log_sum_exp<Real>{}.lower(s); }
  constexpr void put(index row, given, Real value) const { (*taker)(first + row, value); }
  constexpr Map map_of(given, state s) const { return Map(seen, s); }
};

/// logsumexp's map: it has no outputs.
struct no_map {
  template <class Seen, class State>
  constexpr no_map(const Seen&, const State&) {}
};

/// each_row on a CPU's threads where there are row_kernels from X to Y (or, without outputs, of X), compiled by the library: a
/// program that calls softmax would take more than twice as long to compile. (Signatures of names that all compilers mangle
/// alike.)
template <class Map, class Real>
using look_of = look<from_state<Map, Real, verbs::places<Real>>>;
template <class X, class Y, class Real, class Map>
void each_row_compiled(const host::pool& ex, const row_slices<const X>& in, const row_slices<Y>& out, scaled<Real> seen,
                       const look_of<Map, Real>& look);
template <class X, class Real>
void each_row_compiled(const host::pool& ex, const row_slices<const X>& in, std::nullopt_t, scaled<Real> seen,
                       const look_of<no_map, Real>& look);

/// each_row, compiled, or this one, or another executor's, found by its arguments.
template <class X, class Y, class Executor, class In, class... Rest>
void each_row_of(const Executor& ex, const In& in, const Rest&... rest) {
  if constexpr (has_row_kernels<X, Y> && requires { softmax_parts::each_row_compiled(ex, in, rest...); }) {
    softmax_parts::each_row_compiled(ex, in, rest...);
  } else {
    each_row(ex, in, rest...);
  }
}

/// softmax and log_softmax: they differ in the map of the second sweep.
template <template <class> class Map, executor Executor, class View, class Y, class Real>
void normalise(const Executor& ex, const View& x, const view<Y>& y, const softmax_options<Real>& options, const char* verb) {
  const auto in = rows_along(x, options.axis, verb);
  const auto out = output_rows(x, y, options.axis, verb);
  const auto seen = scale_of<Real>(options.scale);
  using places = decltype(verbs::output(x, *options.logsumexp, in.size()));
  std::optional<places> put;
  if (options.logsumexp) {
    regroup::require_apart(y, *options.logsumexp, false, "another output");
    put.emplace(verbs::output(x, *options.logsumexp, in.size()));
  } else if (in.length() == 0 && !is_collective<Executor>) {
    return;  // nothing is written, however many rows of nothing there are
  }
  const look<from_state<Map<Real>, Real, places>> look{{seen, put ? &*put : nullptr}};
  softmax_parts::each_row_of<element_of_view<View>, Y>(ex, in, out, seen, look);
}

}  // namespace softmax_parts

/// y = exp(x - M) / sum exp(x - M) along one axis of a view of rank 1 or more, any strides. y has x's shape, and its element
/// type or a wider one; it may be exactly x. 16-bit floats are computed in float. A row that holds +inf, NaN, or only -inf is
/// NaN throughout. Throws shape_error, overlap_error, and argument_error for a scale that is not finite.
///
/// Relative error of an element: u ((1 + a) (M - x) + c + 2) + rel(s), where rel(s) <= u ((1 + a) ln n + c r + h), a =
/// decay_slope and c = exp_error of math, h combines and r exponentials deep (r = 1 up to 65,536 elements).
///
/// Cost, for rows of up to 65,536 elements:
///   memory traffic      two reads of x, one write of y
///   exponentials        one an element
///   scratch, a thread   two rows of weights; 4608 where contiguous rows of up to 511 elements go together, and 32 rows where
///                       rows, or columns, go across a vector: columns of up to 384 elements
///   copies, a thread    of columns longer than 384 elements, and of rows that are not contiguous where fewer than 8 stand at
///                       one stride: 64 of them, or past 4096 elements 16, of at most 4M elements in all
/// Other rows cost at most one more read and one more exponential an element: longer ones, those from float or 16 bits to
/// double, and those that are not contiguous if they are long and fewer than threads. y is written with non-temporal stores
/// where it has more than 8 MiB in contiguous rows of 512 or more elements, is not x, and is not double for a narrower x.
template <executor Executor, class View, class Out>
void softmax(const Executor& ex, const View& x, Out&& y,
             const softmax_options<softmax_parts::real_in<const View>>& options = {}) {
  softmax_parts::normalise<softmax_parts::probability>(worker_of(ex), x, regroup::writable(std::forward<Out>(y)), options,
                                                       "softmax");
}

/// y = (x - M) - log(sum exp(x - M)); otherwise like `softmax`. -inf stays -inf in a row that holds something else. |error|
/// of an element <= u ((M - x) + |y|) + rel(s) + log_error u |ln s|, rel(s) as in `softmax` and log_error of math; 16-bit
/// outputs add their rounding.
template <executor Executor, class View, class Out>
void log_softmax(const Executor& ex, const View& x, Out&& y,
                 const softmax_options<softmax_parts::real_in<const View>>& options = {}) {
  softmax_parts::normalise<softmax_parts::log_probability>(worker_of(ex), x, regroup::writable(std::forward<Out>(y)), options,
                                                           "log_softmax");
}

/// log(sum exp x), natural, along one axis: M + log(sum exp(x - M)), or M itself where M is infinite (-inf for a row of no
/// elements). `out` holds one float a row (double for double), in C order of the other axes, or is a function of (row, value)
/// called once a row from any thread. |error| <= rel(s) + log_error u |ln s| + u |result|, terms as in `log_softmax`. Throws
/// as `softmax`.
template <executor Executor, class View, class Out>
void logsumexp(const Executor& ex, const View& x, Out&& out, const logsumexp_options& options = {}) {
  using real = softmax_parts::real_in<const View>;
  const auto in = softmax_parts::rows_along(x, options.axis, "logsumexp");
  const auto put = verbs::output(x, std::forward<Out>(out), in.size());
  const auto seen = softmax_parts::scale_of<real>(options.scale);
  using verb = softmax_parts::from_state<softmax_parts::no_map, real, std::remove_const_t<decltype(put)>>;
  const softmax_parts::look<verb> look{{seen, &put}};
  softmax_parts::each_row_of<element_of_view<View>, element_of_view<View>>(worker_of(ex), in, std::nullopt, seen, look);
}

}  // namespace regroup

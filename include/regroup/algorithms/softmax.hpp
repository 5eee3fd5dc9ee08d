// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp along an axis: programs written with folds. A row folds to (M, s), its largest
// element and the sum of exp(x - M); a second sweep maps each element through that state. Nothing overflows: every
// exponent is <= 0. Rows up to 65,536 elements: M, then plus's tree over exp(x - M); longer ones: log_sum_exp's tree.
// So a row has the same bits alone, in any batch, in any layout and with any threads.
// Level: thread (rows), or lane where a few long rows share their tiles among threads.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "regroup/host/dispatch.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/reduce.hpp"

namespace regroup {

/// The longest row whose maximum is found before anything is summed. A row of one more element is swept once as
/// log_sum_exp, tile by tile. Part of the bits.
inline constexpr index longest_two_sweep_row = 65536;

/// What `softmax` and `log_softmax` may be told: `{.scale = 0.5, .axis = 0, .logsumexp = lse}`.
template <class Real>
struct softmax_options {
  double scale = 1;                          ///< multiplies every element first, rounded once; finite
  int axis = -1;                             ///< negative ones count from the end
  std::optional<view<Real>> logsumexp = {};  ///< log(sum exp x) of each row, in C order of the other axes
};

/// What `logsumexp` may be told.
struct logsumexp_options {
  double scale = 1;
  int axis = -1;
};

namespace softmax_parts {

template <class View>
using element_in = std::remove_cv_t<typename decltype(view(std::declval<View&>()))::element_type>;
/// What is computed with, and the type of every logsumexp: float, or double for double.
template <class View>
using real_in = widened<element_in<View>>;

/// x scale, rounded once. An fma, so that no compiler joins the product to the subtraction that follows.
template <std::floating_point Real>
struct scaled {
  Real scale;
  constexpr explicit scaled(double s) : scale(static_cast<Real>(s)) {
    if (!std::isfinite(s)) throw_argument("a softmax's scale must be finite; got " + std::to_string(s));
  }
  template <class X>
  constexpr Real operator()(const X& x) const {
    return math::fma(static_cast<Real>(widen(x)), scale, Real{-0.0});
  }
};

/// exp(x - m). Where m is infinite or NaN nobody reads it, so it needs no special cases.
template <std::floating_point Real>
struct weight {
  scaled<Real> seen;
  Real m;
  template <class X>
  constexpr Real operator()(const X& x) const {
    return math::exp(seen(x) - m);
  }
};

/// A monoid over map(x), so that a fold reads x and nothing is stored in between.
template <class M, class Map>
struct over {
  static constexpr bool is_commutative = regroup::is_commutative<M>;
  M m;
  Map map;
  constexpr state_of<M> identity() const { return m.identity(); }
  template <class X>
  constexpr state_of<M> lift(const X& x) const {
    return regroup::lift(m, map(x));
  }
  constexpr state_of<M> operator()(const state_of<M>& a, const state_of<M>& b) const { return m(a, b); }
  template <class Tile>
  constexpr state_of<M> lift_tile(const Tile& tile) const {
    return tile.fold(m, map);
  }
};
template <class M, class Map>
over(M, Map) -> over<M, Map>;

template <executor Executor, class Row, class M>
state_of<M> fold_row(const Executor& ex, const Row& row, const M& m) {
  state_of<M> state = m.identity();
  ex.fold(single{row}, m, [&](index, const state_of<M>& s) { state = s; });
  return state;
}

/// (M, s) of a row, in the order that the head of this file states.
template <executor Executor, class Row, std::floating_point Real>
typename log_sum_exp<Real>::state state_of_row(const Executor& ex, const Row& row, scaled<Real> seen) {
  if (row.size() > longest_two_sweep_row) return fold_row(ex, row, over{log_sum_exp<Real>{}, seen});
  const Real m = fold_row(ex, row, over{maximum<Real>{}, seen}) + Real{0};
  const Real s = fold_row(ex, row, over{plus<Real>{}, weight<Real>{seen, m}});
  return {m, plus<Real>{}.lower(s)};
}

template <std::floating_point Real>
constexpr Real unless_infinite(Real m, Real value) {
  return math::abs(m) <= std::numeric_limits<Real>::max() ? value : std::numeric_limits<Real>::quiet_NaN();
}

/// An element of softmax: exp(x - M) (1 / s), and NaN throughout a row whose M is infinite or NaN. One division a row:
/// that the reciprocal is rounded first is part of the bits, and costs half a unit in the last place.
template <std::floating_point Real>
struct probability {
  weight<Real> w;
  Real reciprocal;
  probability(scaled<Real> seen, typename log_sum_exp<Real>::state row)
      : w{seen, row.m}, reciprocal(unless_infinite(row.m, Real{1} / row.s)) {}
  template <class X>
  constexpr Real operator()(const X& x) const {
    return w(x) * reciprocal;
  }
};

/// An element of log_softmax: (x - M) - log s, never x - logsumexp, which would lose |logsumexp| u.
template <std::floating_point Real>
struct log_probability {
  scaled<Real> seen;
  Real m;
  Real log_s;
  log_probability(scaled<Real> seen_as, typename log_sum_exp<Real>::state row)
      : seen(seen_as), m(row.m), log_s(unless_infinite(row.m, math::log(row.s))) {}
  template <class X>
  constexpr Real operator()(const X& x) const {
    return (seen(x) - m) - log_s;
  }
};

/// y[i] = map(x[i]). By way of L values at a time, so that the loop vectorises where y is x, too.
template <executor Executor, class X, class Y, class Map>
void write_row(const Executor& ex, const strided<X>& x, const strided<Y>& y, const Map& map) {
  ex.for_each(tiles_of(x.size()), static_cast<double>(tile_elements), [&](index t) {
    host::dispatch([&] {
      const index last = std::min((t + 1) * tile_elements, x.size());
      const auto move = [&](const auto& from, const auto& to, index i, index n) {
        std::array<Y, lanes> values;
        for (index j = 0; j < n; ++j) values[static_cast<std::size_t>(j)] = static_cast<Y>(map(from(i + j)));
        for (index j = 0; j < n; ++j) to(i + j) = values[static_cast<std::size_t>(j)];
      };
      const auto move_all = [&](const auto& from, const auto& to) {
        index i = t * tile_elements;
        for (; i + lanes <= last; i += lanes) move(from, to, i, lanes);
        if (i < last) move(from, to, i, last - i);
      };
      if (x.contiguous() != nullptr && y.contiguous() != nullptr) {
        move_all([in = x.first](index i) { return in[i]; }, [out = y.first](index i) -> Y& { return out[i]; });
      } else {
        move_all([&](index i) { return x[i]; }, [&](index i) -> Y& { return y[i]; });
      }
    });
  });
}

/// body(row, executor) for each of `count` rows: rows side by side, each on one thread (`seq`); or, where a few long
/// rows would leave threads idle, one after another, each with all of them. The bits do not know.
template <executor Executor, class Body>
void each_row(const Executor& ex, index count, index length, const Body& body) {
  if (count < 64 && length >= 8 * tile_elements) {
    for (index row = 0; row < count; ++row) body(row, ex);
  } else {
    ex.for_each(count, 20 + 2 * static_cast<double>(length), [&](index row) { body(row, seq); });
  }
}

/// The rows along an axis of a view.
template <class View>
auto rows_along(const View& x, int axis, const char* verb) {
  const auto v = view(x);
  using element = std::remove_cv_t<typename decltype(v)::element_type>;
  static_assert(std::floating_point<widened<element>>,
                "regroup: softmax, log_softmax, logsumexp and cross_entropy take float16, bfloat16, float or double");
  if (v.rank() == 0) throw_shape(std::string(verb) + " needs a rank of 1 or more; got rank 0");
  return rows(axes_last(view<const element>(v), {axis}));
}

/// The rows of an output in x's shape, which may be exactly x.
template <class View, class Out>
auto output_rows(const View& x, Out& y, int axis, const char* verb) {
  const auto in = view(x);
  const auto out = view(y);
  using from = element_in<const View>;
  using to = typename decltype(out)::element_type;
  static_assert(std::same_as<to, from> || (std::floating_point<to> && sizeof(to) >= sizeof(widened<from>)),
                "regroup: softmax writes its input's element type or a wider floating one");
  if (in.extents() != out.extents()) {
    throw_shape("the output of " + std::string(verb) + " has the shape of its input, " + to_string(in.extents()) +
                "; got " + to_string(out.extents()));
  }
  require_apart(in, out, true);
  return rows(axes_last(out, {axis}));
}

/// softmax and log_softmax: they differ in the map of the second sweep.
template <template <class> class Map, executor Executor, class View, class Out, class Real>
void normalise(const Executor& ex, const View& x, Out& y, const softmax_options<Real>& options, const char* verb) {
  const auto in = rows_along(x, options.axis, verb);
  const auto out = output_rows(x, y, options.axis, verb);
  const scaled<Real> seen(options.scale);
  const auto put = [&](const auto& put_logsumexp) {
    each_row(ex, in.size(), in.length(), [&](index row, const auto& by) {
      const auto state = state_of_row(by, in[row], seen);
      write_row(by, in[row], out[row], Map<Real>(seen, state));
      put_logsumexp(row, log_sum_exp<Real>{}.lower(state));
    });
  };
  if (options.logsumexp) {
    require_apart(view(y), *options.logsumexp, false);
    put(verbs::output(x, *options.logsumexp, in.size()));
  } else {
    put([](index, Real) {});
  }
}

}  // namespace softmax_parts

/// y = exp(x - M) / sum exp(x - M) along one axis of a view of rank 1 or more, any strides. y has x's shape, and its
/// element type or a wider one; it may be exactly x. 16-bit floats are computed in float. A row that holds +inf, NaN,
/// or only -inf is NaN throughout. Error of an element, relative: u ((M - x) + c + 2) + rel(s), where
/// rel(s) <= u (ln n + c r + h), c = math::exp_error, h combines and r exponentials deep (r = 1 up to 65,536 elements).
/// Three reads of x and a write of y; no memory for contiguous rows up to 4096 elements, then O(log n) states a thread,
/// and a tile of elements for strided rows. Throws shape_error, overlap_error, and argument_error for a scale that is
/// not finite.
template <executor Executor, class View, class Out>
void softmax(const Executor& ex, const View& x, Out&& y,
             const softmax_options<softmax_parts::real_in<const View>>& options = {}) {
  softmax_parts::normalise<softmax_parts::probability>(ex, x, y, options, "softmax");
}

/// y = (x - M) - log(sum exp(x - M)); otherwise as `softmax`. -inf stays -inf in a row that holds something else.
template <executor Executor, class View, class Out>
void log_softmax(const Executor& ex, const View& x, Out&& y,
                 const softmax_options<softmax_parts::real_in<const View>>& options = {}) {
  softmax_parts::normalise<softmax_parts::log_probability>(ex, x, y, options, "log_softmax");
}

/// log(sum exp x), natural, along one axis: M + log(sum exp(x - M)), and M itself where that is infinite (-inf for
/// nothing). `out` holds one float a row (double for double), in C order of the other axes, or is a function of
/// (row, value) called once a row from any thread. |error| <= rel(s) + c u |ln s| + u |result|. Throws as `softmax`.
template <executor Executor, class View, class Out>
void logsumexp(const Executor& ex, const View& x, Out&& out, const logsumexp_options& options = {}) {
  using real = softmax_parts::real_in<const View>;
  const auto in = softmax_parts::rows_along(x, options.axis, "logsumexp");
  const auto put = verbs::output(x, out, in.size());
  const softmax_parts::scaled<real> seen(options.scale);
  softmax_parts::each_row(ex, in.size(), in.length(), [&](index row, const auto& by) {
    put(row, log_sum_exp<real>{}.lower(softmax_parts::state_of_row(by, in[row], seen)));
  });
}

}  // namespace regroup

// SPDX-License-Identifier: Apache-2.0
// One row of softmax, whoever reads it: the sweeps that fold it to (M, s), as folds of any machine, and the maps of its
// elements through that state. Level: element and row.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "regroup/error.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/view.hpp"

namespace regroup {

/// The longest row whose maximum is found before anything is summed. Longer rows are swept once as log_sum_exp, tile by tile.
/// Changing it changes bits.
inline constexpr index longest_two_sweep_row = 65536;

/// Options of `logsumexp`.
struct logsumexp_options {
  double scale = 1;
  int axis = -1;
};

namespace softmax_parts {

/// x scale, rounded once; no compiler joins the product to the subtraction that follows.
template <std::floating_point Real>
struct scaled {
  Real scale;
  template <class X>
  constexpr Real operator()(const X& x) const {
    return math::product(static_cast<Real>(regroup::widen(x)), scale);
  }
};
/// decay(x - m), m the largest x. Where m is infinite or NaN it is not read, so it needs no special cases.
template <std::floating_point Real>
struct weight {
  scaled<Real> seen;
  Real m;
  template <class X>
  constexpr Real operator()(const X& x) const {
    return math::decay(seen(x) - m);
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

/// A maximum of which a NaN is the usual one, and a zero +0.
template <std::floating_point Real>
constexpr Real quiet_maximum(Real m) {
  return math::is_nan(m) ? std::numeric_limits<Real>::quiet_NaN() : m + Real{0};
}
/// The largest element, where `peak` could not say; `fold(m)` is the row's fold by a monoid over its elements.
template <std::floating_point Real, class Fold>
constexpr Real maximum_of(scaled<Real> seen, const Fold& fold) {
  return quiet_maximum(fold(over{maximum<Real>{}, seen}));
}
/// (M, s) of a row of at most 65,536 elements, by its fold.
template <std::floating_point Real, class Fold>
constexpr typename log_sum_exp<Real>::state two_sweeps(scaled<Real> seen, const Fold& fold) {
  Real m = detail::peak<Real>{}.lower(fold(over{detail::peak<Real>{}, seen}));
  if (!math::is_finite(m)) m = maximum_of(seen, fold);
  return {m, plus<Real>{}.lower(fold(over{plus<Real>{}, weight<Real>{seen, m}}))};
}
/// (M, s) of any row: a longer one is a single fold.
template <std::floating_point Real, class Fold>
constexpr typename log_sum_exp<Real>::state state_of_row(index n, scaled<Real> seen, const Fold& fold) {
  return n > longest_two_sweep_row ? fold(over{log_sum_exp<Real>{}, seen}) : two_sweeps(seen, fold);
}

/// A sentence for elements that softmax does not take, and for a single one that is no row.
template <class X>
void require_softmax_rows(int rank, const char* verb) {
  static_assert(std::floating_point<widened<X>>,
                "regroup: softmax, log_softmax, logsumexp and cross_entropy take float16, bfloat16, float or double");
  if (rank == 0) throw_shape(std::string(verb) + " needs a rank of 1 or more; got rank 0");
}
/// And for outputs that would lose what it computed, or have not the input's shape.
template <class From, class To>
void require_softmax_output(const shape& in, const shape& out, const char* verb) {
  static_assert(std::same_as<To, From> || (std::floating_point<To> && sizeof(To) >= sizeof(widened<From>)),
                "regroup: softmax writes its input's element type or a wider floating one");
  if (!(in == out)) {
    throw_shape("the output of " + std::string(verb) + " has the shape of its input, " + to_string(in) + "; got " +
                to_string(out));
  }
}

/// The scale of the options; throws argument_error where it is not finite as a Real.
template <std::floating_point Real>
scaled<Real> scale_of(double s, const char* whose = "a softmax's scale") {
  require_finite_as<Real>(s, whose);
  return {static_cast<Real>(s)};
}

/// `value`, or NaN where m is not finite, without a branch: m - m is 0 or NaN. (A value of -0, which none is here, becomes 0.)
template <std::floating_point Real>
constexpr Real nan_unless_finite(Real m, Real value) {
  if (std::is_constant_evaluated() && !math::is_finite(m)) return std::numeric_limits<Real>::quiet_NaN();
  return value + (m - m);
}

/// What a verb makes of a row, told its number and its state: of these, and of what is `given` of the row besides, a value of
/// the row's own, which `put` takes where the verb has values, and the map that makes the row's outputs.
template <class Verb>
struct look : Verb {
  template <class State>
  constexpr auto operator()(index row, State folded) const {
    const auto besides = this->given_of(row);
    if (this->has_values()) this->put(row, besides, this->value(besides, folded));
    return this->map_of(besides, folded);
  }
};

/// What the outputs of a row are, of its weights w: w a, or (w a) b; or of its elements: (x scale - M) - b; or zeros; and a
/// single one, if it is at 0 or more, `value` instead.
enum class row_map_kind { weights, shares_of_weights, differences, zeros };
template <std::floating_point Real>
struct row_map {
  row_map_kind kind;
  Real a, b;
  std::int64_t single = -1;
  Real value = 0;
};

/// An element of softmax: exp(x - M) (1 / s), and NaN throughout a row whose M is infinite or NaN. One division a row:
/// that the reciprocal is rounded first is part of the bits, and costs half a unit in the last place.
template <std::floating_point Real>
struct probability {
  static constexpr bool reads_weight = true;  ///< of an element and its weight
  static constexpr auto outputs = row_map_kind::weights;
  Real reciprocal;
  constexpr probability(scaled<Real>, typename log_sum_exp<Real>::state row)
      : reciprocal(nan_unless_finite(row.m, Real{1} / row.s)) {}
  template <class X>
  constexpr Real operator()(const X&, Real weight) const {
    return weight * reciprocal;
  }
  constexpr row_map<Real> of_row() const { return {outputs, reciprocal, Real{1}}; }
};

/// An element of log_softmax: (x - M) - log s, never x - logsumexp, which would lose |logsumexp| u.
template <std::floating_point Real>
struct log_probability {
  static constexpr bool reads_weight = false;
  static constexpr auto outputs = row_map_kind::differences;
  scaled<Real> seen;
  Real m;
  Real log_s;
  constexpr log_probability(scaled<Real> seen_as, typename log_sum_exp<Real>::state row)
      : seen(seen_as), m(row.m), log_s(nan_unless_finite(row.m, math::log(row.s))) {}
  template <class X>
  constexpr Real operator()(const X& x, Real) const {
    return (seen(x) - m) - log_s;
  }
  constexpr row_map<Real> of_row() const { return {outputs, Real{1}, log_s}; }
};

}  // namespace softmax_parts
}  // namespace regroup

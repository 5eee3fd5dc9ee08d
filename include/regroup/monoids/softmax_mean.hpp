// SPDX-License-Identifier: Apache-2.0
// The mean of vectors weighted by the softmax of their scores: attention's state (m, l, O), the largest score, the sum
// of exp(score - m) and the unnormalised sum of exp(score - m) value. l and O merge as log_sum_exp's sum does, so O may
// be split over threads with (m, l) replicated. Divide once, at the end (FlashAttention: Dao et al. 2022, with O
// unnormalised). A hidden key is the identity (-inf, 0, -0). This file and all it includes stand alone.
// Level: element; a kernel merges whole fragments by `rescale` or by this combine. Commutes bitwise.
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/monoids/log_sum_exp.hpp"

namespace regroup {

/// What the O of a softmax_mean must offer, elementwise (found by argument-dependent lookup): `axpy(low, factor, high)`
/// = fma(low, factor, high), `scale(v, factor)`, `divide(v, l)` = v / l + 0, and `V::filled(size, x)`.
template <class V, class Real>
concept softmax_vector = std::copyable<V> && requires(const V& v, Real x, index size) {
  { axpy(v, x, v) } -> std::convertible_to<V>;
  { scale(v, x) } -> std::convertible_to<V>;
  { divide(v, x) } -> std::convertible_to<V>;
  { V::filled(size, x) } -> std::convertible_to<V>;
};

/// D numbers, trivially copyable: O of a known dimension.
template <std::floating_point Real, index D>
struct fixed_vector {
  Real values[static_cast<std::size_t>(D)];

  static constexpr fixed_vector filled(index, Real x) {
    fixed_vector v{};
    for (Real& element : v.values) element = x;
    return v;
  }
  /// The first D of anything with `[]`, converted; 16-bit floats widened.
  template <class Xs>
  static constexpr fixed_vector from(const Xs& xs) {
    fixed_vector v{};
    for (std::size_t k = 0; k < v.size(); ++k) v.values[k] = static_cast<Real>(regroup::widen(xs[k]));
    return v;
  }
  static constexpr std::size_t size() { return static_cast<std::size_t>(D); }
  constexpr Real& operator[](std::size_t k) { return values[k]; }
  constexpr const Real& operator[](std::size_t k) const { return values[k]; }
  constexpr const Real* begin() const { return values; }
  constexpr const Real* end() const { return values + D; }
};

/// d numbers, d known at run time: one allocation a vector, moved where it can be.
template <std::floating_point Real>
struct dynamic_vector {
  std::vector<Real> values;

  static constexpr dynamic_vector filled(index d, Real x) {
    return {std::vector<Real>(static_cast<std::size_t>(d), x)};
  }
  /// All of anything with `size()` and `[]`, converted; 16-bit floats widened.
  template <class Xs>
  static constexpr dynamic_vector from(const Xs& xs) {
    dynamic_vector v{std::vector<Real>(static_cast<std::size_t>(xs.size()))};
    for (std::size_t k = 0; k < v.size(); ++k) v.values[k] = static_cast<Real>(regroup::widen(xs[k]));
    return v;
  }
  constexpr std::size_t size() const { return values.size(); }
  constexpr Real& operator[](std::size_t k) { return values[k]; }
  constexpr const Real& operator[](std::size_t k) const { return values[k]; }
  constexpr auto begin() const { return values.begin(); }
  constexpr auto end() const { return values.end(); }
};

namespace detail {
template <class V>
inline constexpr bool is_shipped_vector = false;
template <class Real, index D>
inline constexpr bool is_shipped_vector<fixed_vector<Real, D>> = true;
template <class Real>
inline constexpr bool is_shipped_vector<dynamic_vector<Real>> = true;
template <class V>
concept shipped_vector = is_shipped_vector<V>;
template <class V>
using element_of_vector = std::remove_cvref_t<decltype(std::declval<V&>()[0])>;
}  // namespace detail

/// fma(low, factor, high), elementwise; `low` and `high` have the same size.
template <detail::shipped_vector V>
constexpr V axpy(const V& low, std::type_identity_t<detail::element_of_vector<V>> factor, V high) {
  for (std::size_t k = 0; k < high.size(); ++k) high[k] = math::fma(low[k], factor, high[k]);
  return high;
}
/// v factor, elementwise: an O moved to a higher maximum (tile by tile: one rescale a chunk).
template <detail::shipped_vector V>
constexpr V scale(V v, std::type_identity_t<detail::element_of_vector<V>> factor) {
  for (std::size_t k = 0; k < v.size(); ++k) v[k] *= factor;
  return v;
}
namespace detail {
/// v / l + 0, bitwise, with one division in all and no branch for each element: a reciprocal, then two corrections by
/// remainders (Markstein 1990: the last quotient is rounded correctly, since the one before is within a unit). Returns false
/// and leaves v unchanged if a remainder might leave the range.
template <index D>
constexpr bool divide_at_once(fixed_vector<float, D>& v, float l) {
  float least = 1, most = 1;
  for (const float x : v.values) {
    const float size = math::abs(x);
    least = size < least && size > 0 ? size : least;
    most = size > most || math::is_nan(size) ? size : most;
  }
  if (!(least >= 0x1p-60f && most <= 0x1p60f && l >= 0x1p-30f && l <= 0x1p30f)) return false;
  const float reciprocal = 1 / l;
  for (float& x : v.values) {
    float quotient = math::product(x, reciprocal);
    for (int i = 0; i < 2; ++i) quotient = math::fma(math::fma(-l, quotient, x), reciprocal, quotient);
    x = quotient + 0;
  }
  return true;
}
}  // namespace detail

/// v / l + 0, elementwise: the end of a softmax_mean.
template <detail::shipped_vector V>
constexpr V divide(V v, std::type_identity_t<detail::element_of_vector<V>> l) {
#ifdef __CUDA_ARCH__  // where a division is a dozen instructions and a branch
  if constexpr (requires { detail::divide_at_once(v, l); }) {
    if (detail::divide_at_once(v, l)) return v;
  }
#endif
  for (std::size_t k = 0; k < v.size(); ++k) v[k] = v[k] / l + 0;
  return v;
}

/// An element of softmax_mean: a score, and a value that is the monoid's Vector or what `Vector::from` takes.
template <class Score, class Value>
struct scored {
  Score score;
  Value value;
};

/// Attention's state, a value to merge, save and send; O is unnormalised, relative to m.
template <std::floating_point Real, class Vector>
struct softmax_state {
  Real m;
  Real l;
  Vector o;
};

/// The base of a logsumexp's logarithm: e here and in PyTorch, 2 in FlashInfer and others.
enum class log_base { e, two };

/// A natural logarithm in `Base`, and back: one product, exact at 0 and the infinities.
template <log_base Base, std::floating_point Real>
constexpr Real in_base(Real natural) {
  return Base == log_base::e ? natural : natural * Real(0x1.71547652b82fep+0);
}
template <log_base Base, std::floating_point Real>
constexpr Real from_base(Real logarithm) {
  return Base == log_base::e ? logarithm : logarithm * Real(0x1.62e42fefa39efp-1);
}

/// A state as other systems hold it: O divided by l, and the logsumexp to a base that the type names, so that bases cannot be
/// mixed up. It is an element of softmax_mean: a key whose score is the logsumexp and whose value is O.
template <std::floating_point Real, class Vector, log_base Base = log_base::e>
struct normalised_softmax {
  Vector o;
  Real logsumexp;
};

/// sum exp(score - m) value / sum exp(score - m) of elements `scored`. Nothing, or only scores of -inf (whatever their
/// values), gives 0; a score of +inf gives NaN; a NaN score gives NaN throughout. d is needed only if the Vector's size is
/// not known at compile time: `softmax_mean<float>{.d = 64}`, `softmax_mean<float, fixed_vector<float, 64>>{}`; a value of
/// another size is a std::invalid_argument. One exp and d fma a combine; |error of O| <= u sum w |v| ((M - x) + c (r + 1) + h
/// + 1), w = exp(x - M), h combines and r rescales deep.
template <std::floating_point Real, class Vector = dynamic_vector<Real>>
struct softmax_mean {
  static_assert(
      softmax_vector<Vector, Real>,
      "regroup: the vector of a softmax_mean needs axpy(low, factor, high), scale(v, factor), divide(v, l) and "
      "a static filled(size, x)");
  using state = softmax_state<Real, Vector>;
  static constexpr bool is_commutative = true;

  index d = 0;

  constexpr state identity() const { return {detail::least<Real>, 0, Vector::filled(d, -Real{0})}; }
  template <class Score, class Value>
  requires std::convertible_to<widened<Score>, Real>
  constexpr state lift(const scored<Score, Value>& key) const {
    const auto [m, l] = log_sum_exp<Real>{}.lift(regroup::widen(key.score));
    if (m == detail::least<Real>) return identity();
    if (m != m) return {m, l, Vector::filled(d, m)};
    if constexpr (std::same_as<Vector, dynamic_vector<Real>>) {
      if (static_cast<index>(key.value.size()) != d) {
        throw std::invalid_argument("softmax_mean{.d = " + std::to_string(d) + "} takes values of as many numbers; got one "
                                    "of " + std::to_string(key.value.size()));
      }
    }
    if constexpr (std::convertible_to<const Value&, Vector>) {
      return {m, l, key.value};
    } else {
      return {m, l, Vector::from(key.value)};
    }
  }
  template <log_base Base>
  constexpr state lift(const normalised_softmax<Real, Vector, Base>& part) const {
    return lift(scored<Real, Vector>{from_base<Base>(part.logsumexp), part.o});
  }
  constexpr state operator()(state a, state b) const {
    const rescale<Real> merge{a.m, b.m};
    const Real l = merge(a.l, b.l);
    if (merge.right_is_higher) return {merge.m, l, axpy(a.o, merge.factor, std::move(b.o))};
    return {merge.m, l, axpy(b.o, merge.factor, std::move(a.o))};
  }
  constexpr Vector lower(const state& s) const {
    const Real not_a_number = std::numeric_limits<Real>::quiet_NaN();
    const Real finite = s.m == detail::greatest<Real> ? not_a_number : s.l;
    return divide(s.o, s.m == detail::least<Real> ? Real{1} : finite);
  }
  /// (O / l, logsumexp), as other systems hold it.
  template <log_base Base = log_base::e>
  constexpr normalised_softmax<Real, Vector, Base> normalised(const state& s) const {
    return {lower(s), in_base<Base>(log_sum_exp<Real>{}.lower({s.m, s.l}))};
  }
};

}  // namespace regroup

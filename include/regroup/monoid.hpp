// SPDX-License-Identifier: Apache-2.0
// A monoid is a state, an empty state and an associative way to combine two states:
//     identity() + s == s == s + identity()            (a + b) + c == a + (b + c)
// A reduction lifts every element to a state, combines the states in order, and lowers the last one to the answer.
// Associativity is the freedom to regroup: every lane, thread, block, rank and stream folds its own and hands up a state.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "regroup/float16.hpp"

namespace regroup {

/// Positions, extents and counts: signed, 64 bits everywhere.
using index = std::int64_t;

/// The state of monoid `M`: what its `identity()` returns.
template <class M>
using state_of = std::remove_cvref_t<decltype(std::declval<const M&>().identity())>;

/// A type with an identity and a combine. The laws themselves are checked by `check_laws` (check_laws.hpp).
///
///     struct longest {                                                  // the longest word
///       constexpr int identity() const { return 0; }                    // the state of no elements
///       constexpr int lift(std::string_view word) const { ... }         // optional; default: convert
///       constexpr int operator()(int a, int b) const { ... }            // combine; a stands left of b
///       constexpr int lower(int state) const { ... }                    // optional; default: the state
///     };
///
/// A branch-free combine using math.hpp vectorises. Replace `?:` with `math::select(cond, a, b)` when a side computes
/// something; g++ otherwise keeps a branch.
///
/// A state may refer to what an element owns (a string_view of a string): elements that are not trivially copyable are read
/// where they are. It may not refer to the bytes of a trivially copyable element, which may be copied first, nor to anything
/// an element owns in an in-place scan, which overwrites the elements.
template <class M>
concept monoid = std::copyable<state_of<M>> && requires(const M& m, const state_of<M> a, const state_of<M> b) {
  { m(a, b) } -> std::convertible_to<state_of<M>>;
};

/// The optional members of a monoid. (One more: `using element = X`, if `lift` takes many types; see `lifted_element`.)
template <class M, class X>
concept has_lift = requires(const M& m, const X& x) { m.lift(regroup::widen(x)); };
template <class M>
concept has_lower = requires(const M& m, const state_of<M>& s) { m.lower(s); };
/// `append(n, s, x)` returns s + lift(x), bitwise, for a state s of n >= 1 elements. An executor's lanes hold equally many
/// elements, so what depends on n alone is computed once for all lanes.
template <class M, class X>
concept has_append = requires(const M& m, index n, const state_of<M>& s, const X& x) { m.append(n, s, regroup::widen(x)); };
/// `lift_tile(const auto& tile) const` returns the state of a tile: 1 to 4096 elements in position order. A tile has `size()`
/// >= 1, `operator[](i)` and `fold(m, map)`: the fold of map(element) by another monoid `m`, in the contract's order. The
/// result must equal the fold of the elements within the error bound (bitwise where `is_exact`). Scans do not call it. On a
/// device all threads that hold the tile run it together: it must be constexpr and allocate nothing, and every thread must
/// make the same calls of `fold`.
template <class M, class Tile>
concept has_lift_tile = requires(const M& m, const Tile& tile) { m.lift_tile(tile); };
/// A product of monoids (`fanout`): an executor takes it apart and folds each member by the member's own rule.
template <class M>
concept has_members = requires(const M& m) {
  typename std::tuple_size<std::remove_cvref_t<decltype(m.members())>>::type;
};

/// `monoid_over<M, X>`: elements of type `X` can be lifted into the states of `M`.
template <class M, class X>
concept monoid_over = monoid<M> && (has_lift<M, X> || std::convertible_to<widened<X>, state_of<M>>);

namespace detail {
/// What a monoid declares of itself.
template <class Declared>
constexpr bool declared(const Declared& is) {
  static_assert(!std::is_function_v<Declared> && !std::is_pointer_v<Declared>,
                "regroup: what a monoid declares of itself is a bool, `static constexpr bool is_commutative = true`");
  return static_cast<bool>(is);
}
}  // namespace detail

/// a b == b a, within the error bound (the library's own: bitwise). Declared by `static constexpr bool is_commutative = true`.
template <class M>
inline constexpr bool is_commutative = [] {
  if constexpr (requires { M::is_commutative; }) return detail::declared(M::is_commutative);
  return false;
}();

/// Associativity holds bitwise (integers, min, max, ...). Declared by `static constexpr bool is_exact = true`.
template <class M>
inline constexpr bool is_exact = [] {
  if constexpr (requires { M::is_exact; }) return detail::declared(M::is_exact);
  return false;
}();

/// A combine costs an instruction or two, less than moving its elements. It affects speed only. Declared by `static constexpr
/// bool is_quick = true`; by default true for integer states, false for all others. (Of integers that are divided, say, `false`
/// is worth declaring.)
template <class M>
inline constexpr bool is_quick = [] {
  if constexpr (requires { M::is_quick; }) return detail::declared(M::is_quick);
  return std::is_integral_v<state_of<M>>;
}();

namespace probe {
template <class Tile>
struct tiles {  // none, to ask whether a monoid would take them
  template <class Body>
  void operator()(const Body&) const {}
};
}  // namespace probe
/// `lift_tiles(const auto& each) const`, beside `lift_tile`, returns the state of one or more tiles: `each(body)`, to be called
/// once, calls body(const auto& tile) for them in position order. For states that are large, or tell what of later tiles can be
/// left out. seq and par call it for any tiles that follow one another. Only for a monoid that is exact: it returns the bits of
/// lift_tile's states combined.
template <class M, class Tile>
concept has_lift_tiles = is_exact<M> && has_lift_tile<M, Tile> && !has_members<M> &&
    requires(const M& m, const probe::tiles<Tile>& each) { m.lift_tiles(each); };

// clang's `flatten` inlines only one level of calls (host/dispatch.hpp), and by itself clang inlines no long operator.
#if defined(__clang__)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// One element as a state. 16-bit floats are widened to float first, exactly.
template <class M, class X>
constexpr state_of<M> lift(const M& m, const X& x) {
  if constexpr (has_lift<M, X>) {
    return m.lift(regroup::widen(x));
  } else {
    return static_cast<state_of<M>>(regroup::widen(x));
  }
}

/// s + lift(x) for a state s of n >= 1 elements.
template <class M, class State, class X>
constexpr state_of<M> append(const M& m, index n, State&& s, const X& x) {
  if constexpr (has_append<M, X>) {
    return m.append(n, std::forward<State>(s), regroup::widen(x));
  } else {
    return m(std::forward<State>(s), regroup::lift(m, x));
  }
}

/// The answer that a state stands for.
template <class M>
constexpr auto lower(const M& m, const state_of<M>& s) {
  if constexpr (has_lower<M>) {
    return m.lower(s);
  } else {
    return s;
  }
}

#if defined(__clang__)
#pragma clang attribute pop
#endif

template <class M>
using answer_of = decltype(regroup::lower(std::declval<const M&>(), std::declval<const state_of<M>&>()));

/// The first thing that a monoid has; what lacks it, an accumulator for one, is none.
template <class M>
concept has_identity = requires(const M& m) { m.identity(); };

namespace detail {
template <class M, class C, class X>
X parameter_of(state_of<M> (C::*)(X) const);
template <has_identity M>
constexpr auto element_of_lift() {
  if constexpr (requires { typename M::element; }) {
    return std::type_identity<typename M::element>{};
  } else if constexpr (requires { parameter_of<M>(&M::lift); }) {
    return std::type_identity<std::remove_cvref_t<decltype(parameter_of<M>(&M::lift))>>{};
  } else if constexpr (has_lift<M, answer_of<M>>) {
    return std::type_identity<std::remove_cvref_t<answer_of<M>>>{};
  } else {
    return std::type_identity<state_of<M>>{};
  }
}
}  // namespace detail

/// The default element type of a monoid: its member type `element`; else the parameter of `M::lift`; if `lift` takes many
/// types, the type of the answer where `lift` takes it; else the type of the state.
template <class M>
using lifted_element = typename decltype(detail::element_of_lift<M>())::type;

/// `lift` as a function object, for other libraries' transform-reduce:
/// `std::transform_reduce(first, last, m.identity(), m, regroup::lifting(m))`.
template <class M>
struct lifting {
  M m;
  constexpr explicit lifting(M operator_) : m(std::move(operator_)) {}
  template <class X>
  constexpr state_of<M> operator()(const X& x) const {
    return regroup::lift(m, x);
  }
};

}  // namespace regroup

// SPDX-License-Identifier: Apache-2.0
// A monoid is a state, an empty state and an associative way to combine two states:
//     identity() + s == s == s + identity()            (a + b) + c == a + (b + c)
// A reduction lifts every element to a state, combines the states in order, and lowers the last one to the answer.
// Associativity is the freedom to regroup: every lane, thread, block, rank and stream folds its own and hands up a state.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <ranges>
#include <tuple>
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
concept has_members = requires(const M& m) { m.members(); };

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
/// bool is_quick = true`; by default true for integer states, false for all others.
template <class M>
inline constexpr bool is_quick = [] {
  if constexpr (requires { M::is_quick; }) return detail::declared(M::is_quick);
  return std::is_integral_v<state_of<M>>;
}();

/// `lift_tile_after(before, tile)`, beside `lift_tile`, returns what a tile adds to a state: any s for which before + s is
/// before + lift_tile(tile), so what `before` outweighs may be left out. seq and par pass it the state of earlier tiles of the
/// same source. Only for a monoid that is commutative and exact.
template <class M, class Tile>
concept has_lift_tile_after = is_commutative<M> && is_exact<M> && has_lift_tile<M, Tile> && !has_members<M> &&
    requires(const M& m, const state_of<M>& before, const Tile& tile) { m.lift_tile_after(before, tile); };

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
template <class M, class X>
constexpr state_of<M> append(const M& m, index n, const state_of<M>& s, const X& x) {
  if constexpr (has_append<M, X>) {
    return m.append(n, s, regroup::widen(x));
  } else {
    return m(s, regroup::lift(m, x));
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

namespace detail {
template <class M, class C, class X>
X parameter_of(state_of<M> (C::*)(X) const);
template <class M>
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

template <class T>
struct indexed;  // monoids/extremum.hpp

template <class M>
concept has_identity = requires(const M& m) { m.identity(); };
/// True, or a compile error that says in one sentence what is missing. For a static_assert before code that needs the type of
/// the state.
template <class M>
constexpr bool require_identity() {
  static_assert(has_identity<M>, "regroup: a monoid needs `identity() const`, the state of no elements");
  return true;
}
namespace detail {
/// Whether converting the floating-point From to State may lose the fraction, range or precision.
template <class From, class State>
constexpr bool cuts_off() {
  if constexpr (std::is_floating_point_v<From> && std::is_arithmetic_v<State>) {
    return std::is_integral_v<State> || std::numeric_limits<From>::digits > std::numeric_limits<State>::digits;
  }
  return false;
}
/// Whether converting From to the integer State may lose a fraction or range.
template <class From, class State>
constexpr bool narrows() {
  if constexpr (!std::is_integral_v<State> || std::same_as<State, bool>) {
    return false;
  } else {
    return std::is_floating_point_v<From> || (std::is_integral_v<From> && sizeof(From) > sizeof(State));
  }
}
/// The number in an element: of an indexed one, its value.
template <class X>
struct number_in {
  using type = widened<X>;
};
template <class X>
struct number_in<indexed<X>> {
  using type = widened<X>;
};
/// What elements X become before they are lifted: what `lift` or the monoid's `element` names, or a state without a `lift`.
template <class M, class X>
constexpr auto taken_elements() {
  if constexpr (!has_lift<M, X>) {
    return std::type_identity<state_of<M>>{};
  } else if constexpr (requires { typename M::element; } || requires { parameter_of<M>(&M::lift); }) {
    return std::type_identity<lifted_element<M>>{};
  } else {
    return std::type_identity<X>{};
  }
}
template <class M, class X>
using taken_for = typename decltype(taken_elements<M, X>())::type;
/// Whether every number of type From is one of type To, if both are integers.
template <class From, class To>
constexpr bool holds_integers() {
  if constexpr (!std::is_integral_v<From> || !std::is_integral_v<To>) {
    return true;
  } else {
    return std::numeric_limits<From>::digits <= std::numeric_limits<To>::digits &&
           (std::is_signed_v<To> || !std::is_signed_v<From>);
  }
}
/// Rejects optional members that are present but would be ignored, for instance because of a wrong signature.
template <class M, class X>
constexpr void require_members_are_seen() {
  using state = state_of<M>;
  static_assert(has_lift<M, X> || !requires(M& m, const X& x) { m.lift(regroup::widen(x)); },
                "regroup: this monoid's `lift` is not const, so nothing would call it");
  static_assert(has_lift<M, X> || std::same_as<X, state> || !requires { &M::lift; },
                "regroup: this monoid's `lift` does not take these elements, nor are they states");
  static_assert(has_lower<M> || (!requires(M& m, const state& s) { m.lower(s); } && !requires { &M::lower; }),
                "regroup: this monoid's `lower` is not const, or does not take a state, so nothing would call it");
  using number = typename number_in<X>::type;
  using taken = typename number_in<taken_for<M, X>>::type;
  static_assert(!std::is_floating_point_v<number> || !std::is_integral_v<taken> || std::same_as<taken, bool>,
                "regroup: these elements would be cut to integers, which this monoid takes: use one of floating-point numbers, "
                "or a projection that rounds");
  if constexpr (requires { typename M::element; }) {
    static_assert(holds_integers<number, typename number_in<typename M::element>::type>(),
                  "regroup: these integers do not fit in those that this monoid takes: give it the type of the elements");
  }
  static_assert(!requires { &M::lift_tile; },
                "regroup: `lift_tile` takes tiles of many types: make it a template, `lift_tile(const auto& tile) const`");
  if constexpr (!has_lift<M, X> && narrows<widened<X>, state>()) {
    using of_elements = std::remove_cvref_t<std::invoke_result_t<const M&, const widened<X>&, const widened<X>&>>;
    static_assert(!narrows<of_elements, state>(),
                  "regroup: of these elements the combine returns more than `identity()`'s type holds, the state's: return one "
                  "of theirs there, 0.0 and not 0, or give the monoid a `lift` that says what becomes of them");
  }
  if constexpr (has_lower<M>) {
    using answer = std::remove_cvref_t<decltype(std::declval<const M&>().lower(std::declval<const state&>()))>;
    constexpr bool is_view = std::ranges::view<answer> && std::ranges::borrowed_range<answer>;
    static_assert(!is_view || std::is_trivially_copyable_v<state> || !std::convertible_to<const state&, answer>,
                  "regroup: this `lower` returns a view of a state, which is gone by then: let it return what it shows");
  }
  if constexpr (has_lift<M, X>) {
    using lifted = std::remove_cvref_t<decltype(std::declval<const M&>().lift(regroup::widen(std::declval<const X&>())))>;
    static_assert(std::convertible_to<lifted, state>, "regroup: a monoid's `lift` returns a state, the type of `identity()`");
    static_assert(!cuts_off<lifted, state>(),
                  "regroup: `lift` returns more than `identity()`'s type holds, the state's: return 0.0 there, not 0");
  }
  using combined = std::remove_cvref_t<std::invoke_result_t<const M&, const state&, const state&>>;
  static_assert(!cuts_off<combined, state>(),
                "regroup: the combine returns more than `identity()`'s type holds, the state's: return 0.0 there, not 0");
}
}  // namespace detail

/// The largest state, in bytes: loops keep some hundreds of states on a thread's stack.
inline constexpr std::size_t largest_state = std::size_t{1} << 16;

template <class M, class X>
constexpr void require_monoid();
namespace detail {
template <class X, class... M>
constexpr void require_members(std::type_identity<std::tuple<M...>>) {
  (require_monoid<M, X>(), ...);
}
}  // namespace detail

/// A compile error that says in one sentence what a monoid over elements `X` lacks; every verb calls this first.
template <class M, class X>
constexpr void require_monoid() {
  if constexpr (static_cast<void>(require_identity<M>()), has_identity<M>) {
    static_assert(std::copyable<state_of<M>>, "regroup: a monoid's state must be copyable");
    static_assert(monoid<M>,
                  "regroup: a monoid needs `operator()(state, state) const` that returns the combined state, "
                  "left operand first");
    static_assert(sizeof(state_of<M>) <= largest_state,
                  "regroup: a state has at most 65,536 bytes, for loops keep many on the stack; let it hold a std::vector");
    if constexpr (has_members<M>) {
      detail::require_members<X>(std::type_identity<std::remove_cvref_t<decltype(std::declval<const M&>().members())>>{});
    } else if constexpr (monoid<M>) {
      detail::require_members_are_seen<M, X>();
    }
    if constexpr (monoid<M>) {
      if constexpr (!monoid_over<M, X>) {
        constexpr bool takes_positions = requires {
          sizeof(indexed<widened<X>>);
          requires monoid_over<M, indexed<widened<X>>>;
        };
        static_assert(!takes_positions,
                      "regroup: this monoid takes elements with their positions: pass `with_position{}` as the projection");
        static_assert(takes_positions,
                      "regroup: these elements cannot be lifted; give the monoid `lift(x) const` that returns its state");
      }
    }
  }
}

}  // namespace regroup

// SPDX-License-Identifier: Apache-2.0
// What a monoid over given elements lacks, or has in vain, as one sentence each of the compiler's. Every verb asks first.
// Level: element; computes nothing.
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>

#include "regroup/monoid.hpp"

namespace regroup {

template <class T>
struct indexed;  // monoids/extremum.hpp

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
/// Whether every number of type From is one of type To, if both are integers. (Any is true or false.)
template <class From, class To>
constexpr bool holds_integers() {
  if constexpr (!std::is_integral_v<From> || !std::is_integral_v<To> || std::same_as<To, bool>) {
    return true;
  } else {
    return std::numeric_limits<From>::digits <= std::numeric_limits<To>::digits &&
           (std::is_signed_v<To> || !std::is_signed_v<From>);
  }
}
/// Rejects elements that lose their fraction where they become `Taken`.
template <class X, class Taken>
constexpr void require_uncut() {
  using number = typename number_in<X>::type;
  using taken = typename number_in<Taken>::type;
  static_assert(!std::is_floating_point_v<number> || !std::is_integral_v<taken> || std::same_as<taken, bool>,
                "regroup: these elements would be cut to integers, which this monoid takes: use one of floating-point numbers, "
                "or a projection that rounds");
}
/// Rejects integers that lose their range.
template <class X, class Taken>
constexpr void require_fit() {
  static_assert(holds_integers<typename number_in<X>::type, typename number_in<Taken>::type>(),
                "regroup: these integers do not fit in those that this monoid takes: give it the type of the elements");
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
  require_uncut<X, taken_for<M, X>>();
  if constexpr (requires { typename M::element; }) require_fit<X, typename M::element>();
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
constexpr bool require_monoid();
namespace detail {
template <class Members, class X>
constexpr void require_members() {
  [&]<std::size_t... K>(std::index_sequence<K...>) { (require_monoid<std::tuple_element_t<K, Members>, X>(), ...); }
  (std::make_index_sequence<std::tuple_size_v<Members>>{});
}
}  // namespace detail

/// A compile error that says in one sentence what a monoid over elements `X` lacks; every verb calls this first, and goes no
/// further where it returns false: what the compiler would say then is longer.
template <class M, class X>
constexpr bool require_monoid() {
  if constexpr (static_cast<void>(require_identity<M>()), has_identity<M>) {
    static_assert(std::copyable<state_of<M>>, "regroup: a monoid's state must be copyable");
    static_assert(monoid<M>,
                  "regroup: a monoid needs `operator()(state, state) const` that returns the combined state, "
                  "left operand first");
    static_assert(sizeof(state_of<M>) <= largest_state,
                  "regroup: a state has at most 65,536 bytes, for loops keep many on the stack; let it hold a std::vector");
    if constexpr (has_members<M>) {
      detail::require_members<std::remove_cvref_t<decltype(std::declval<const M&>().members())>, X>();
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
  if constexpr (has_identity<M>) {
    return std::copyable<state_of<M>> && monoid<M> && (has_members<M> || monoid_over<M, X>);
  } else {
    return false;
  }
}

}  // namespace regroup

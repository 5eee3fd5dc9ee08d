// SPDX-License-Identifier: Apache-2.0
// Several monoids over the same elements in one pass: the product of monoids is a monoid, member by member. An executor
// takes it apart by `members()` and folds each member by its own rule, so a member's bits never depend on its
// neighbours. Level: element. Commutes, and is exact, where all members do.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "regroup/monoid.hpp"

namespace regroup {

namespace detail {
template <std::size_t k, class State>
struct fanout_part {
  State part;
};
template <class Indices, class... States>
struct fanout_parts;
template <std::size_t... k, class... States>
struct fanout_parts<std::index_sequence<k...>, States...> : fanout_part<k, States>... {};

template <std::size_t k, class State>
constexpr State& get(fanout_part<k, State>& s) {
  return s.part;
}
template <std::size_t k, class State>
constexpr const State& get(const fanout_part<k, State>& s) {
  return s.part;
}
template <std::size_t k, class State>
constexpr State&& get(fanout_part<k, State>&& s) {
  return std::move(s.part);
}
/// The element type that all members share, if there is one.
template <class... Monoids>
struct common_element {};
template <class... Monoids>
  requires requires { typename std::common_type_t<lifted_element<Monoids>...>; }
struct common_element<Monoids...> {
  using element = std::common_type_t<lifted_element<Monoids>...>;
};
}  // namespace detail

/// The states of a fanout's members: an aggregate, trivially copyable if they all are; `get<k>(state)` is the k-th.
template <class... States>
using fanout_state = detail::fanout_parts<std::index_sequence_for<States...>, States...>;

/// `auto [n, stats, low] = reduce(par, xs, fanout{count{}, moments<double>{}, minimum<double>{}})`: every member lifts
/// every element; the answer is the tuple of their answers.
template <class... Monoids>
class fanout : public detail::common_element<Monoids...> {
  static_assert((has_identity<Monoids> && ...), "regroup: the members of a fanout are monoids");

 public:
  using state = fanout_state<state_of<Monoids>...>;
  static constexpr bool is_commutative = (regroup::is_commutative<Monoids> && ...);
  static constexpr bool is_exact = (regroup::is_exact<Monoids> && ...);

  constexpr explicit fanout(Monoids... members) : members_(std::move(members)...) {}

  constexpr state identity() const {
    return over([](const auto&... m) { return state{{m.identity()}...}; });
  }
  template <class X>
  requires(monoid_over<Monoids, X>&&...) constexpr state lift(const X& x) const {
    return over([&](const auto&... m) { return state{{regroup::lift(m, x)}...}; });
  }
  constexpr state operator()(state a, state b) const { return combine(a, b, std::index_sequence_for<Monoids...>{}); }
  constexpr std::tuple<answer_of<Monoids>...> lower(const state& s) const {
    return answers(s, std::index_sequence_for<Monoids...>{});
  }

  /// The monoids, in order.
  constexpr const std::tuple<Monoids...>& members() const { return members_; }
  /// The state whose members are these states.
  constexpr state from_parts(state_of<Monoids>... parts) const { return state{{std::move(parts)}...}; }

 private:
  template <class F>
  constexpr state over(F f) const {
    return std::apply(f, members_);
  }
  template <std::size_t... k>
  constexpr state combine(state& a, state& b, std::index_sequence<k...>) const {
    return state{{std::get<k>(members_)(detail::get<k>(std::move(a)), detail::get<k>(std::move(b)))}...};
  }
  template <std::size_t... k>
  constexpr std::tuple<answer_of<Monoids>...> answers(const state& s, std::index_sequence<k...>) const {
    return {regroup::lower(std::get<k>(members_), detail::get<k>(s))...};
  }

  std::tuple<Monoids...> members_;
};

}  // namespace regroup

/// A fanout's state opens as a tuple: `auto [a, b] = state`.
template <std::size_t... k, class... States>
struct std::tuple_size<regroup::detail::fanout_parts<std::index_sequence<k...>, States...>>
    : std::integral_constant<std::size_t, sizeof...(States)> {};
template <std::size_t i, std::size_t... k, class... States>
struct std::tuple_element<i, regroup::detail::fanout_parts<std::index_sequence<k...>, States...>>
    : std::tuple_element<i, std::tuple<States...>> {};

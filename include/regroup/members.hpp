// SPDX-License-Identifier: Apache-2.0
// A state as the numbers it is made of: aggregates, tuples, ranges and optionals are taken apart, down to arithmetic.
// A fold keeps each member in an array of its own (host/scalars.hpp), a stream saves the members (stream.hpp), and the laws
// compare, print, make and perturb them (laws/). The user declares nothing for it; only an aggregate with bit-fields or an
// anonymous union, which no binding names, needs a constructor, so that it is none. Level: element.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>

#include "regroup/float16.hpp"

namespace regroup::members {

template <class T>
concept tuple_like = requires {
  std::tuple_size<T>::value;
}
&&!std::ranges::range<T>;
template <class T>
concept optional_like = requires(const T& x) {
  { x.has_value() } -> std::same_as<bool>;
  *x;
};
/// A pair of reals that is no aggregate: std::complex and types like it.
template <class T>
concept complex_like = std::is_floating_point_v<typename T::value_type> && sizeof(T) == 2 * sizeof(typename T::value_type) &&
    requires(const T& x, const typename T::value_type& part) {
  { x.real() } -> std::convertible_to<typename T::value_type>;
  { x.imag() } -> std::convertible_to<typename T::value_type>;
  T(part, part);
};
/// A range whose elements come in any order.
template <class T>
concept unordered = std::ranges::forward_range<const T> && requires { typename T::hasher; };
template <class T>
concept half = std::same_as<T, float16> || std::same_as<T, bfloat16>;

/// The most members that an aggregate may have and still be taken apart.
inline constexpr std::size_t most = 12;

namespace detail {

template <class S>
struct any_member {
  template <class T>
  requires(!std::same_as<T, S>) operator T() const noexcept {  // NOLINT: implicit on purpose; never called
    std::terminate();
  }
};
template <class S>
struct any_base {
  template <class T>
  requires(std::is_base_of_v<T, S> && !std::same_as<T, S>) operator T() const noexcept {  // NOLINT: as above
    std::terminate();
  }
};
template <class S, std::size_t>
using any_at = any_member<S>;

template <class S, std::size_t... I>
constexpr bool is_built_from(std::index_sequence<I...>) {
  return requires { S{any_at<S, I>{}...}; };
}
/// Whether a member follows these that takes none of them: one that any type converts to, as std::any.
template <class S, std::size_t... I>
constexpr bool is_followed(std::index_sequence<I...>) {
  return requires { S{any_at<S, I>{}..., {}}; };
}
/// Before members, then one braced list of Inside, then After members.
template <class S, std::size_t... Before, std::size_t... Inside, std::size_t... After>
constexpr bool is_built_around(std::index_sequence<Before...>, std::index_sequence<Inside...>,
                               std::index_sequence<After...>) {
  return requires { S{any_at<S, Before>{}..., {any_at<S, Inside>{}...}, any_at<S, After>{}...}; };
}

inline constexpr std::size_t most_initialisers = 32;
/// Initialisers that S takes where the braces of inner arrays are left out: each element of an array counts.
template <class S, std::size_t N = most_initialisers + 1>
constexpr std::size_t initialisers() {
  if constexpr (N == 0 || is_built_from<S>(std::make_index_sequence<N>{})) {
    return N;
  } else {
    return initialisers<S, N - 1>();
  }
}

/// Elements of the array that begins at initialiser `At`; 1 where it is no array.
template <class S, std::size_t Total, std::size_t At, std::size_t Size = Total - At>
constexpr std::size_t array_size() {
  if constexpr (Size <= 1) {
    return 1;
  } else if constexpr (is_built_around<S>(std::make_index_sequence<At>{}, std::make_index_sequence<Size>{},
                                          std::make_index_sequence<Total - At - Size>{}) &&
                       !is_built_around<S>(std::make_index_sequence<At>{}, std::make_index_sequence<Size>{},
                                           std::make_index_sequence<Total - At - Size + 1>{})) {
    return Size;
  } else {
    return array_size<S, Total, At, Size - 1>();
  }
}

template <class S, std::size_t Total, std::size_t At = 0>
constexpr std::size_t members_from() {
  if constexpr (At >= Total) {
    return 0;
  } else {
    return 1 + members_from<S, Total, At + array_size<S, Total, At>()>();
  }
}

}  // namespace detail

/// The number of members of an aggregate. 0 where a structured binding would not give them: for an array, a union, a type
/// with bases or with a `tuple_size` of its own, for more than `most` members, or more than 32 with the elements of arrays,
/// and where a member can be made of anything.
template <class S>
constexpr std::size_t count() {
  if constexpr (!std::is_aggregate_v<S> || std::is_array_v<S> || std::is_union_v<S>) {
    return 0;
  } else if constexpr (requires { std::tuple_size<S>::value; } || requires { S{detail::any_base<S>{}}; }) {
    return 0;
  } else {
    constexpr std::size_t all = detail::initialisers<S>();
    if constexpr (all > detail::most_initialisers || detail::is_followed<S>(std::make_index_sequence<all>{})) {
      return 0;
    } else {
      constexpr std::size_t n = detail::members_from<S, all>();
      return n <= most ? n : 0;
    }
  }
}

/// References to the members. To a bit-field there is none: one that is const would be a reference to a copy.
template <class S>
constexpr auto tie(S& as_given) noexcept {
  auto& s = const_cast<std::remove_const_t<S>&>(as_given);
  constexpr std::size_t n = count<std::remove_const_t<S>>();
  if constexpr (n == 1) {
    auto& [a] = s;
    return std::tie(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = s;
    return std::tie(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = s;
    return std::tie(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = s;
    return std::tie(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = s;
    return std::tie(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = s;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = s;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = s;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = s;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = s;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = s;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = s;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  }
}

namespace detail {

struct tied_get {  // finds the members' own get, or the standard's
  template <std::size_t I, class T>
  static constexpr decltype(auto) at(T& t) {
    using std::get;
    return get<I>(t);
  }
};

}  // namespace detail

/// Calls f(member) for each direct member of an aggregate or tuple, in order.
template <class T, class F>
constexpr void for_each(T& x, const F& f) {
  if constexpr (tuple_like<std::remove_const_t<T>>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (f(detail::tied_get::at<I>(x)), ...); }
    (std::make_index_sequence<std::tuple_size_v<std::remove_const_t<T>>>{});
  } else if constexpr (!std::is_empty_v<T>) {
    std::apply([&](auto&... member) { (f(member), ...); }, members::tie(x));
  }
}

namespace detail {
template <class T, std::size_t... I>
constexpr bool gives_references(std::index_sequence<I...>) {
  return (std::is_lvalue_reference_v<decltype(tied_get::at<I>(std::declval<T&>()))> && ...);
}
template <class T>
constexpr bool has_references() {
  if constexpr (tuple_like<T>) {
    return gives_references<T>(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    return count<T>() > 0;
  }
}
}  // namespace detail

/// Whether `for_each` gives references to the members where they are.
template <class T>
inline constexpr bool in_place = detail::has_references<const T>();

namespace detail {
template <class T>
constexpr bool transparent();
template <class... T>
constexpr bool all_transparent(std::type_identity<std::tuple<T...>>) {
  return (transparent<std::remove_cvref_t<T>>() && ...);
}
template <class T, std::size_t... I>
constexpr bool tuple_transparent(std::index_sequence<I...>) {
  return (transparent<std::remove_cvref_t<decltype(tied_get::at<I>(std::declval<T&>()))>>() && ...);
}
template <class T>
constexpr bool transparent() {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || half<T> || complex_like<T> || std::is_empty_v<T>) {
    return true;
  } else if constexpr (std::ranges::forward_range<const T>) {
    return transparent<std::remove_cvref_t<std::ranges::range_value_t<const T>>>();
  } else if constexpr (optional_like<T>) {
    return transparent<std::remove_cvref_t<decltype(*std::declval<const T&>())>>();
  } else if constexpr (tuple_like<T>) {
    return tuple_transparent<T>(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (count<T>() > 0) {
    return all_transparent(std::type_identity<decltype(members::tie(std::declval<T&>()))>{});
  } else {
    return false;
  }
}
}  // namespace detail

/// Whether a type can be taken apart down to numbers.
template <class T>
inline constexpr bool is_transparent = detail::transparent<std::remove_cvref_t<T>>();

/// Calls f(x) for every arithmetic value inside a transparent object, and f.size(n) before the n elements of a range. For a
/// range whose elements come in any order it calls f.unordered(range) instead, if f has that.
template <class T, class F>
constexpr void visit(T& x, F& f) {
  using value = std::remove_cvref_t<T>;
  if constexpr (std::is_arithmetic_v<value> || half<value>) {
    f(x);
  } else if constexpr (std::is_enum_v<value>) {
    const auto number = static_cast<std::underlying_type_t<value>>(x);
    f(number);
  } else if constexpr (complex_like<value>) {
    auto real = x.real(), imag = x.imag();
    f(real);
    f(imag);
    if constexpr (!std::is_const_v<T>) x = value(real, imag);
  } else if constexpr (unordered<value> && requires { f.unordered(x); }) {
    f.unordered(x);
  } else if constexpr (std::ranges::forward_range<T>) {
    f.size(static_cast<std::size_t>(std::ranges::distance(x)));
    if constexpr (std::is_lvalue_reference_v<std::ranges::range_reference_t<T>>) {
      for (auto& element : x) members::visit(element, f);
    } else {
      for (const std::ranges::range_value_t<T> element : x) members::visit(element, f);
    }
  } else if constexpr (optional_like<value>) {
    f.size(x.has_value() ? 1 : 0);
    if (x.has_value()) members::visit(*x, f);
  } else {
    members::for_each(x, [&](auto& member) { members::visit(member, f); });
  }
}

}  // namespace regroup::members

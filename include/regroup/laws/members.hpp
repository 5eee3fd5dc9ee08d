// SPDX-License-Identifier: Apache-2.0
// A state as the numbers it is made of: aggregates, tuples, ranges and optionals are taken apart, down to arithmetic.
// So two states can be compared member by member (all NaNs are one), printed, filled by a generator, and nudged, with
// nothing asked of the user. Level: element; only for checking, nothing here runs in a fold.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <exception>
#include <limits>
#include <ostream>
#include <ranges>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/monoid.hpp"

namespace regroup::laws {

template <class T>
concept tuple_like = requires { std::tuple_size<T>::value; } && !std::ranges::range<T>;
template <class T>
concept optional_like = requires(const T& x) {
  { x.has_value() } -> std::same_as<bool>;
  *x;
};
template <class T>
concept half = std::same_as<T, float16> || std::same_as<T, bfloat16>;

/// Members that an aggregate may have and still be taken apart.
inline constexpr std::size_t most_members = 12;

namespace detail {

template <class S>
struct any_member {
  template <class T>
    requires(!std::same_as<T, S>)
  operator T() const noexcept {  // NOLINT: implicit on purpose; never called
    std::terminate();
  }
};
template <class S>
struct any_base {
  template <class T>
    requires(std::is_base_of_v<T, S> && !std::same_as<T, S>)
  operator T() const noexcept {  // NOLINT: as above
    std::terminate();
  }
};
template <class S, std::size_t>
using any_at = any_member<S>;

template <class S, std::size_t... I>
constexpr bool is_built_from(std::index_sequence<I...>) {
  return requires { S{any_at<S, I>{}...}; };
}
/// Before members, then one braced list of Inside, then After members.
template <class S, std::size_t... Before, std::size_t... Inside, std::size_t... After>
constexpr bool is_built_around(std::index_sequence<Before...>, std::index_sequence<Inside...>,
                               std::index_sequence<After...>) {
  return requires { S{any_at<S, Before>{}..., {any_at<S, Inside>{}...}, any_at<S, After>{}...}; };
}

/// Initialisers that S takes where the braces of inner arrays are left out: each element of an array counts.
template <class S, std::size_t N = 32>
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

/// The number of members of an aggregate, or 0 where it cannot be taken apart.
template <class S>
constexpr std::size_t member_count() {
  if constexpr (!std::is_aggregate_v<S> || std::is_array_v<S> || std::is_union_v<S>) {
    return 0;
  } else if constexpr (requires { S{any_base<S>{}}; }) {
    return 0;
  } else {
    constexpr std::size_t n = members_from<S, initialisers<S>()>();
    return n <= most_members ? n : 0;
  }
}

/// References to the members.
template <class S>
constexpr auto tie_members(S& s) {
  constexpr std::size_t n = member_count<std::remove_const_t<S>>();
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
constexpr void for_each_member(T& x, const F& f) {
  if constexpr (tuple_like<std::remove_const_t<T>>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (f(detail::tied_get::at<I>(x)), ...);
    }(std::make_index_sequence<std::tuple_size_v<std::remove_const_t<T>>>{});
  } else if constexpr (!std::is_empty_v<T>) {
    std::apply([&](auto&... member) { (f(member), ...); }, detail::tie_members(x));
  }
}

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
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || half<T> || std::is_empty_v<T>) {
    return true;
  } else if constexpr (std::ranges::forward_range<const T>) {
    return transparent<std::remove_cvref_t<std::ranges::range_value_t<const T>>>();
  } else if constexpr (optional_like<T>) {
    return transparent<std::remove_cvref_t<decltype(*std::declval<const T&>())>>();
  } else if constexpr (tuple_like<T>) {
    return tuple_transparent<T>(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (member_count<T>() > 0) {
    return all_transparent(std::type_identity<decltype(tie_members(std::declval<T&>()))>{});
  } else {
    return false;
  }
}
}  // namespace detail

/// Whether a type can be taken apart down to numbers.
template <class T>
inline constexpr bool is_transparent = detail::transparent<std::remove_cvref_t<T>>();

/// Calls f(x) for every arithmetic value inside a transparent object, and f.size(n) before the n elements of a range.
template <class T, class F>
constexpr void visit(T& x, F& f) {
  using value = std::remove_cvref_t<T>;
  if constexpr (std::is_arithmetic_v<value> || half<value>) {
    f(x);
  } else if constexpr (std::is_enum_v<value>) {
    const auto number = static_cast<std::underlying_type_t<value>>(x);
    f(number);
  } else if constexpr (std::ranges::forward_range<T>) {
    f.size(static_cast<std::size_t>(std::ranges::distance(x)));
    if constexpr (std::is_lvalue_reference_v<std::ranges::range_reference_t<T>>) {
      for (auto& element : x) visit(element, f);
    } else {
      for (const std::ranges::range_value_t<T> element : x) visit(element, f);
    }
  } else if constexpr (optional_like<value>) {
    f.size(x.has_value() ? 1 : 0);
    if (x.has_value()) visit(*x, f);
  } else {
    for_each_member(x, [&](auto& member) { visit(member, f); });
  }
}

/// One number of a state, apart from its type.
struct cell {
  enum class kind : unsigned char { integer, real, size };
  kind what = kind::integer;
  int digits = 0;  ///< bits of mantissa of a real: 24, 53 or 64
  long double value = 0;
};
/// The numbers of a state in order.
using image = std::vector<cell>;

namespace detail {
struct imaging {
  image cells;
  void size(std::size_t n) { cells.push_back({cell::kind::size, 0, static_cast<long double>(n)}); }
  template <class T>
  void operator()(const T& x) {
    if constexpr (half<T>) {
      cells.push_back({cell::kind::real, std::same_as<T, float16> ? 11 : 8, static_cast<long double>(widen(x))});
    } else if constexpr (std::is_floating_point_v<T>) {
      cells.push_back({cell::kind::real, std::numeric_limits<T>::digits, static_cast<long double>(x)});
    } else {
      cells.push_back({cell::kind::integer, 0, static_cast<long double>(x)});
    }
  }
};
}  // namespace detail

template <class T>
  requires is_transparent<T>
image image_of(const T& x) {
  detail::imaging f;
  visit(x, f);
  return std::move(f.cells);
}

/// How strictly two reals are the same: all NaNs are one either way.
enum class zeros { signed_, equal };

inline bool same(const cell& a, const cell& b, zeros z) {
  if (a.what != b.what) return false;
  if (std::isnan(a.value) || std::isnan(b.value)) return std::isnan(a.value) && std::isnan(b.value);
  return a.value == b.value && (z == zeros::equal || std::signbit(a.value) == std::signbit(b.value));
}
inline bool same(const image& a, const image& b, zeros z = zeros::signed_) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i], z)) return false;
  }
  return true;
}

/// The default equivalence of the laws: bitwise, but for NaN, whose payload and sign do not count. Strings, vectors and
/// aggregates are compared member by member; a type that cannot be taken apart, by its own ==.
struct bitwise {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    if constexpr (is_transparent<T>) {
      return same(image_of(a), image_of(b));
    } else {
      static_assert(std::equality_comparable<T>,
                    "regroup: to compare states, make the state an aggregate of at most 12 members or give it operator==");
      return a == b;
    }
  }
};

namespace detail {
template <class T>
void print_number(std::ostream& out, T x) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), x).ptr;
  const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
  out << (digits == "-nan" ? "nan" : digits);
}
}  // namespace detail

/// Writes a value for a reader: numbers as short as they round-trip, (a, b) for aggregates, [a, b] for ranges.
template <class T>
void print(std::ostream& out, const T& x) {
  if constexpr (std::same_as<T, bool>) {
    out << (x ? "true" : "false");
  } else if constexpr (std::same_as<T, char>) {
    if (x >= ' ' && x <= '~') {
      out << '\'' << x << '\'';
    } else {
      out << "char(" << static_cast<int>(x) << ')';
    }
  } else if constexpr (half<T>) {
    detail::print_number(out, widen(x));
  } else if constexpr (std::is_integral_v<T>) {
    out << +x;
  } else if constexpr (std::is_floating_point_v<T>) {
    detail::print_number(out, x);
  } else if constexpr (std::is_enum_v<T>) {
    out << +static_cast<std::underlying_type_t<T>>(x);
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    out << '"' << std::string_view(x) << '"';
  } else if constexpr (std::ranges::forward_range<const T>) {
    constexpr std::size_t most = 8;
    const auto n = static_cast<std::size_t>(std::ranges::distance(x));
    std::size_t i = 0;
    out << '[';
    for (const auto& element : x) {
      if (i == most) break;
      out << (i++ == 0 ? "" : ", ");
      print<std::ranges::range_value_t<const T>>(out, element);
    }
    out << (n > most ? ", ... " + std::to_string(n) + " in all]" : "]");
  } else if constexpr (optional_like<T>) {
    if (x.has_value()) {
      print(out, *x);
    } else {
      out << "nothing";
    }
  } else if constexpr (tuple_like<T> || std::is_empty_v<T> || detail::member_count<T>() > 0) {
    bool first = true;
    out << '(';
    for_each_member(x, [&](const auto& member) {
      out << (first ? "" : ", ");
      first = false;
      print<std::remove_cvref_t<decltype(member)>>(out, member);
    });
    out << ')';
  } else if constexpr (requires { out << x; }) {
    out << x;
  } else {
    out << "<" << sizeof(T) << " bytes>";
  }
}

template <class T>
std::string text_of(const T& x) {
  std::ostringstream out;
  print(out, x);
  return std::move(out).str();
}

}  // namespace regroup::laws

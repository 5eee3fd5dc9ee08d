// SPDX-License-Identifier: Apache-2.0
// A state as the numbers it is made of, in order, apart from its type: so that comparing two of them, within a bound or
// bitwise with all NaNs as one, is written once, and a reader sees every state the same way. Level: element.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <functional>
#include <limits>
#include <ostream>
#include <ranges>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/members.hpp"

namespace regroup::laws {

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
  /// A range that has its elements in any order: in that of their images.
  template <class Range>
  void unordered(const Range& range) {
    std::vector<image> all;
    for (const auto& element : range) {
      imaging one;
      members::visit(element, one);
      all.push_back(std::move(one.cells));
    }
    std::ranges::sort(all, [](const image& a, const image& b) {
      return std::ranges::lexicographical_compare(a, b, std::less{}, &cell::value, &cell::value);
    });
    size(all.size());
    for (const image& one : all) cells.insert(cells.end(), one.begin(), one.end());
  }
  template <class T>
  void operator()(const T& x) {
    if constexpr (members::half<T>) {
      cells.push_back({cell::kind::real, std::same_as<T, float16> ? 11 : 8, static_cast<long double>(regroup::widen(x))});
    } else if constexpr (std::is_floating_point_v<T>) {
      cells.push_back({cell::kind::real, std::numeric_limits<T>::digits, static_cast<long double>(x)});
    } else {
      cells.push_back({cell::kind::integer, 0, static_cast<long double>(x)});
    }
  }
};
}  // namespace detail

template <class T>
requires members::is_transparent<T> image image_of(const T& x) {
  detail::imaging f;
  members::visit(x, f);
  return std::move(f.cells);
}

/// How strictly two reals are the same: all NaNs are one either way.
enum class zeros { signed_, equal };

inline bool same(const cell& a, const cell& b, zeros z) {
  if (a.what != b.what) return false;
  if (std::isnan(a.value) || std::isnan(b.value)) return std::isnan(a.value) && std::isnan(b.value);
  return a.value == b.value && (z == zeros::equal || std::signbit(a.value) == std::signbit(b.value));
}
inline bool has_nan(const image& a) {
  return std::ranges::any_of(a, [](const cell& c) { return std::isnan(c.value); });
}
inline bool same(const image& a, const image& b, zeros z = zeros::signed_) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i], z)) return false;
  }
  return true;
}

/// Whether == compiles: the standard's containers say that they have it whatever they hold.
template <class T>
constexpr bool has_equality() {
  if constexpr (!std::equality_comparable<T>) {
    return false;
  } else if constexpr (std::ranges::forward_range<const T>) {
    return has_equality<std::remove_cvref_t<std::ranges::range_value_t<const T>>>();
  } else if constexpr (members::tuple_like<T>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (has_equality<std::remove_cvref_t<std::tuple_element_t<I, T>>>() && ...);
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (members::optional_like<T>) {
    return has_equality<std::remove_cvref_t<decltype(*std::declval<const T&>())>>();
  } else {
    return true;
  }
}

/// The default equivalence of the laws: bitwise, but for NaN, whose payload and sign do not count. Strings, vectors and
/// aggregates are compared member by member; a type that cannot be taken apart, by its own ==.
struct bitwise {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    if constexpr (members::is_transparent<T>) {
      return same(image_of(a), image_of(b));
    } else {
      static_assert(
          std::equality_comparable<T>,
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
  } else if constexpr (members::half<T>) {
    detail::print_number(out, regroup::widen(x));
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
  } else if constexpr (members::optional_like<T>) {
    if (x.has_value()) {
      print(out, *x);
    } else {
      out << "nothing";
    }
  } else if constexpr (members::tuple_like<T> || std::is_empty_v<T> || members::count<T>() > 0) {
    bool first = true;
    out << '(';
    members::for_each(x, [&](const auto& member) {
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

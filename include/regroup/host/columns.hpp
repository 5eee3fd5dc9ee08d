// SPDX-License-Identifier: Apache-2.0
// The L lanes of a tile, or several rows abreast, as arrays, so that a loop over them becomes a loop over packs. A state that
// is arithmetic, or an aggregate of arithmetic members, or complex, has one array for each; any other is kept as an array of
// states. The bits are the same. Level: lane.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/executor.hpp"
#include "regroup/members.hpp"

namespace regroup::host {

/// Whether a type is a complex number that holds its real part, then its imaginary one. (clang 14 cannot look into std::complex
/// at compile time and keeps it whole.)
template <class State>
constexpr bool is_complex() {
  if constexpr (members::complex_like<State> && !std::is_aggregate_v<State>) {
    using parts = std::array<typename State::value_type, 2>;
    if constexpr (requires { typename std::bool_constant<std::bit_cast<parts>(State(1, 2))[0] == 1>; }) {
      return std::bit_cast<parts>(State(1, 2)) == parts{1, 2};
    }
  }
  return false;
}

/// The members of an aggregate, or both parts of a complex number.
template <class State>
constexpr auto parts_of(const State& s) noexcept {
  if constexpr (is_complex<State>()) {
    return std::tuple(s.real(), s.imag());
  } else {
    return members::tie(s);
  }
}
/// Their types, in a tuple.
template <class Parts>
struct parts_without_references;
template <class... T>
struct parts_without_references<std::tuple<T...>> {
  using type = std::tuple<std::remove_cvref_t<T>...>;
};
template <class State>
using parts_in = typename parts_without_references<decltype(parts_of(std::declval<const State&>()))>::type;

/// Whether a state is kept by members: an aggregate of arithmetic ones, or a complex number.
template <class State>
constexpr bool is_split() {
  if constexpr (!std::is_trivially_copyable_v<State>) {
    return false;
  } else if constexpr (is_complex<State>()) {
    return true;
  } else if constexpr (members::count<State>() == 0) {
    return false;
  } else {
    return []<class... T>(std::type_identity<std::tuple<T...>>) {
      return (std::is_arithmetic_v<T> && ...);
    }(std::type_identity<parts_in<State>>{});
  }
}

/// The number of words of a state: of its members, if they are numbers of one size (2, 4 or 8 bytes) without padding between
/// them; else 1, the state itself.
template <class X>
constexpr index words_of() {
  if constexpr (!is_split<X>()) {
    return 1;
  } else {
    return []<class First, class... Rest>(std::type_identity<std::tuple<First, Rest...>>) {
      constexpr std::size_t size = sizeof(First), count = 1 + sizeof...(Rest);
      constexpr bool are_words = (size == 2 || size == 4 || size == 8) && ((sizeof(Rest) == size) && ...);
      return are_words && sizeof(X) == count * size ? index{count} : index{1};
    }(std::type_identity<parts_in<X>>{});
  }
}
template <class X, index Words>
inline constexpr std::size_t word_size = sizeof(X) / static_cast<std::size_t>(Words);
/// The type of one word of an X that has `Words` words.
template <class X, index Words>
using word_of = std::conditional_t<
    Words == 1, X,
    std::conditional_t<word_size<X, Words> == 8, std::uint64_t,
                       std::conditional_t<word_size<X, Words> == 4, std::uint32_t, std::uint16_t>>>;

/// The state of word(0), word(1), ...
template <class X, class Word>
constexpr X from_words(const Word& word) {
  using parts = parts_in<X>;
  return [&]<std::size_t... W>(std::index_sequence<W...>) {
    return X{std::bit_cast<std::tuple_element_t<W, parts>>(word(static_cast<index>(W)))...};
  }(std::make_index_sequence<std::tuple_size_v<parts>>{});
}
/// put(0, word 0 of x), put(1, word 1), ...
template <class Word, class X, class Put>
constexpr void to_words(const X& x, const Put& put) {
  const auto from = parts_of(x);
  [&]<std::size_t... W>(std::index_sequence<W...>) {
    (put(static_cast<index>(W), std::bit_cast<Word>(std::get<W>(from))), ...);
  }(std::make_index_sequence<std::tuple_size_v<std::remove_const_t<decltype(from)>>>{});
}

// Only lanes that were set are read; g++ cannot always see that, and clearing them first would cost a short row dearly.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// An array of states, for states that cannot be taken apart.
template <class State, std::size_t Width = lanes>
class columns {
 public:
  [[nodiscard]] const State& get(index j) const { return states_[static_cast<std::size_t>(j)]; }
  void set(index j, State s) {
    const auto at = static_cast<std::size_t>(j);
    if (at < states_.size()) {
      states_[at] = std::move(s);
    } else {
      states_.push_back(std::move(s));  // lanes are first set in order
    }
  }

 private:
  std::vector<State> states_;
};

template <class State, std::size_t Width>
  requires std::is_arithmetic_v<State>
class columns<State, Width> {
 public:
  [[nodiscard]] State get(index j) const noexcept { return values_[static_cast<std::size_t>(j)]; }
  void set(index j, State s) noexcept { values_[static_cast<std::size_t>(j)] = s; }

 private:
  alignas(64) std::array<State, Width> values_;
};

template <class State, std::size_t Width>
  requires(is_split<State>())
class columns<State, Width> {
  template <std::size_t K, class T>
  struct member {  // a tuple would clear them
    std::array<T, Width> values;
  };
  template <class Indices, class Parts>
  struct members_of;
  template <std::size_t... K, class... T>
  struct members_of<std::index_sequence<K...>, std::tuple<T...>> : member<K, T>... {};
  using parts = parts_in<State>;
  using indices = std::make_index_sequence<std::tuple_size_v<parts>>;
  template <std::size_t K>
  using nth = member<K, std::tuple_element_t<K, parts>>;

 public:
  [[nodiscard]] State get(index j) const noexcept {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return State{static_cast<const nth<K>&>(values_).values[static_cast<std::size_t>(j)]...};
    }(indices{});
  }
  void set(index j, const State& s) noexcept {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      const auto from = parts_of(s);
      ((static_cast<nth<K>&>(values_).values[static_cast<std::size_t>(j)] = std::get<K>(from)), ...);
    }(indices{});
  }

 private:
  alignas(64) members_of<indices, parts> values_;
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace regroup::host

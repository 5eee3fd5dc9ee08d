// SPDX-License-Identifier: Apache-2.0
// A state or element as the scalars that it is made of, at compile time: of which types, in what order, taken apart and put
// together again. (As numbers, at run time: members.hpp.) Level: element.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "regroup/executor.hpp"
#include "regroup/members.hpp"

namespace regroup::detail {  // monoids/fanout.hpp
template <std::size_t k, class State>
struct fanout_part;
template <class Indices, class... States>
struct fanout_parts;
template <std::size_t k, class State>
constexpr State& get(fanout_part<k, State>& s);
template <std::size_t k, class State>
constexpr const State& get(const fanout_part<k, State>& s);
}  // namespace regroup::detail

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

template <class T>
inline constexpr bool is_fanout_state = false;
template <class Indices, class... State>
inline constexpr bool is_fanout_state<detail::fanout_parts<Indices, State...>> = true;
/// The pairs, tuples and arrays of the standard library, and a fanout's states, whose members are all that they hold.
template <class T>
inline constexpr bool is_tuple = is_fanout_state<T>;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class T, std::size_t N>
inline constexpr bool is_tuple<std::array<T, N>> = true;

/// The most scalars of a state that is kept by them.
inline constexpr std::size_t most_scalars = 16;

/// The number of members of an array, a tuple or an aggregate; 0 where they may not be all that it holds.
template <class T>
constexpr std::size_t members_in() {
  if constexpr (std::is_array_v<T>) {
    return std::extent_v<T>;
  } else if constexpr (is_tuple<T>) {
    return std::is_default_constructible_v<T> ? std::tuple_size_v<T> : 0;
  } else if constexpr (std::is_trivially_copyable_v<T>) {
    return members::count<T>();
  } else {
    return 0;
  }
}
/// References to them.
template <class T>
constexpr auto members_of(T& x) noexcept {
  using value = std::remove_const_t<T>;
  if constexpr (std::is_array_v<value> || is_tuple<value>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      if constexpr (std::is_array_v<value>) {
        return std::tie(x[I]...);
      } else if constexpr (is_fanout_state<value>) {
        return std::tie(regroup::detail::get<I>(x)...);
      } else {
        return std::tie(std::get<I>(x)...);
      }
    }(std::make_index_sequence<members_in<value>()>{});
  } else {
    return members::tie(x);
  }
}

/// The types of the scalars in a T, in order, in a tuple; an empty one where T holds something else, or too many.
template <class T>
constexpr auto types_of_scalars();
template <class T>
using scalars_in = decltype(types_of_scalars<std::remove_const_t<T>>());
template <class T>
inline constexpr std::size_t count_of_scalars = std::tuple_size_v<scalars_in<T>>;

template <class... Member>
constexpr auto types_of_all(std::type_identity<std::tuple<Member&...>>) {
  using all = decltype(std::tuple_cat(types_of_scalars<std::remove_const_t<Member>>()...));
  constexpr bool are_scalars = ((count_of_scalars<Member> > 0) && ...) && std::tuple_size_v<all> <= most_scalars;
  return std::conditional_t<are_scalars, all, std::tuple<>>{};
}
template <class T>
constexpr auto types_of_scalars() {
  if constexpr (std::is_scalar_v<T>) {
    return std::tuple<T>{};
  } else if constexpr (is_complex<T>()) {
    return std::tuple<typename T::value_type, typename T::value_type>{};
  } else if constexpr (members_in<T>() == 0 || members_in<T>() > most_scalars) {
    return std::tuple<>{};
  } else {
    return host::types_of_all(std::type_identity<decltype(host::members_of(std::declval<T&>()))>{});
  }
}

template <class... Member>
constexpr std::size_t scalars_of_first(std::size_t members) {
  std::size_t at = 0, scalars = 0;
  ((scalars += at++ < members ? count_of_scalars<Member> : 0), ...);
  return scalars;
}

template <std::size_t K>
using place = std::integral_constant<std::size_t, K>;

/// f(place<K>, x) for the scalars x in a T, whose first has place `At`.
template <std::size_t At = 0, class T, class F>
constexpr void each_scalar(T& x, const F& f) {
  using value = std::remove_const_t<T>;
  if constexpr (std::is_scalar_v<value>) {
    f(place<At>{}, x);
  } else if constexpr (!is_complex<value>()) {
    [&]<std::size_t... I, class... Member>(std::index_sequence<I...>, const std::tuple<Member&...>& members) {
      (host::each_scalar<At + scalars_of_first<Member...>(I), std::conditional_t<std::is_const_v<T>, const Member, Member>>(
           std::get<I>(members), f),
       ...);
    }(std::make_index_sequence<members_in<value>()>{}, host::members_of(x));
  } else if constexpr (std::is_const_v<T>) {
    f(place<At>{}, x.real());
    f(place<At + 1>{}, x.imag());
  } else {
    typename value::value_type real{}, imag{};
    f(place<At>{}, real);
    f(place<At + 1>{}, imag);
    x = value(real, imag);
  }
}

#if defined(__clang__)  // the braces of arrays and structs inside T are left out
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wmissing-braces"
#endif
/// The T whose K-th scalar is scalar(place<K>).
template <class T, class Scalar>
constexpr T assembled(const Scalar& scalar) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    if constexpr (requires { T{scalar(place<K>{})...}; }) {
      return T{scalar(place<K>{})...};
    } else {
      T x;
      host::each_scalar(x, [&](const auto k, auto& to) { to = scalar(k); });
      return x;
    }
  }(std::make_index_sequence<count_of_scalars<T>>{});
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

/// Whether a state is made of several scalars that are known: those of a complex number, an array, a standard tuple or an
/// aggregate, also inside one another.
template <class State>
constexpr bool is_split() {
  return !std::is_scalar_v<State> && count_of_scalars<State> > 0;
}
/// Whether to copy a T is to copy bytes or scalars. (Elements with bit-fields are bytes, and cannot be taken apart.)
template <class T>
constexpr bool copies_scalars() {
  if constexpr (std::is_trivially_copyable_v<T>) {
    return true;
  } else {
    return is_split<T>();
  }
}
/// Whether lanes of a state become packs.
template <class State>
inline constexpr bool has_scalars = count_of_scalars<State> > 0;

/// The unsigned integer of so many bytes.
template <std::size_t Bytes>
using word_of_bytes =
    std::conditional_t<Bytes == 1, std::uint8_t,
                       std::conditional_t<Bytes == 2, std::uint16_t,
                                          std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>;
/// which ? a : b by a mask, as math::select, for any scalar.
template <class Scalar>
constexpr Scalar chosen(bool which, Scalar a, Scalar b) {
  if constexpr (sizeof(Scalar) <= 8) {
    using word = word_of_bytes<sizeof(Scalar)>;
    const auto mask = static_cast<word>(word{0} - static_cast<word>(which));
    const auto bits_of_b = std::bit_cast<word>(b);
    return std::bit_cast<Scalar>(static_cast<word>(bits_of_b ^ ((std::bit_cast<word>(a) ^ bits_of_b) & mask)));
  } else {
    return which ? a : b;
  }
}
/// The bytes of a state's widest scalar.
template <class State>
inline constexpr std::size_t widest_scalar = []<class... T>(std::type_identity<std::tuple<T...>>) {
  return std::max({sizeof(T)...});
}(std::type_identity<scalars_in<State>>{});

/// Whether the K-th scalar of an X is in the low bits of its K-th word, and nothing but padding is in the others.
template <class X, class Word, std::size_t... K>
constexpr bool begin_words(std::index_sequence<K...>) {
  const auto begins = []<std::size_t W>(place<W>) {
    constexpr std::size_t bits = 8 * sizeof(std::tuple_element_t<W, scalars_in<X>>);
    std::array<Word, sizeof...(K)> words{};
    words[W] = static_cast<Word>(bits < 8 * sizeof(Word) ? 1 | ~std::uint64_t{0} << bits % 64 : 1);
    bool is_so = true;
    const auto x_of_one = std::bit_cast<X>(words);
    host::each_scalar(x_of_one, [&](const auto k, const auto& x) {
      is_so &= (x != std::remove_cvref_t<decltype(x)>{}) == (k == W);
    });
    return is_so;
  };
  return (begins(place<K>{}) && ...);
}

/// The number of words of a state: of its scalars, where each begins a word as large as the widest (of 2, 4 or 8 bytes),
/// whether it fills that or padding does, as the compiler can see; else 1, the state itself.
template <class X>
constexpr index words_of() {
  if constexpr (!is_split<X>() || !std::is_trivially_copyable_v<X>) {
    return 1;
  } else {
    return []<class... T>(std::type_identity<std::tuple<T...>>) {
      constexpr std::size_t size = widest_scalar<X>, count = sizeof...(T);
      if constexpr ((size == 2 || size == 4 || size == 8) && sizeof(X) == count * size) {
        if constexpr (((sizeof(T) == size) && ...)) {
          return index{count};
        } else if constexpr (requires {
                               typename std::bool_constant<host::begin_words<X, word_of_bytes<size>>(
                                   std::make_index_sequence<count>{})>;
                             }) {
          return host::begin_words<X, word_of_bytes<size>>(std::make_index_sequence<count>{}) ? index{count} : index{1};
        }
      }
      return index{1};
    }(std::type_identity<scalars_in<X>>{});
  }
}
template <class X, index Words>
inline constexpr std::size_t word_size = sizeof(X) / static_cast<std::size_t>(Words);
/// The type of one word of an X that has `Words` words.
template <class X, index Words>
using word_of = std::conditional_t<Words == 1, X, word_of_bytes<word_size<X, Words>>>;

/// The state of word(0), word(1), ...
template <class X, class Word>
constexpr X from_words(const Word& word) {
  return host::assembled<X>([&]<std::size_t K>(place<K>) {
    using scalar = std::tuple_element_t<K, scalars_in<X>>;
    return std::bit_cast<scalar>(static_cast<word_of_bytes<sizeof(scalar)>>(word(index{K})));
  });
}
/// put(0, word 0 of x), put(1, word 1), ...
template <class Word, class X, class Put>
constexpr void to_words(const X& x, const Put& put) {
  host::each_scalar(x, [&](const auto k, const auto& scalar) {
    put(index{k}, static_cast<Word>(std::bit_cast<word_of_bytes<sizeof(scalar)>>(scalar)));
  });
}

}  // namespace regroup::host

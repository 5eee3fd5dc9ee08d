// SPDX-License-Identifier: Apache-2.0
// The L lanes of a tile as arrays, one per member of the state, so that a loop over lanes becomes a loop over packs.
// A state that is arithmetic, or an aggregate of up to six arithmetic members, is kept by members; any other as an array
// of states. The bits are the same. Level: lane.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/executor.hpp"

namespace regroup::host {

namespace members {

struct any_arithmetic {
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr operator T() const noexcept;  // NOLINT: implicit on purpose; never defined
};
template <std::size_t>
using any_at = any_arithmetic;

template <class S, std::size_t... I>
constexpr bool is_built_from(std::index_sequence<I...>) {
  return requires { S{any_at<I>{}...}; };
}
/// Whether the member behind `Before` others takes a braced pair: then it is an array or an aggregate itself.
template <class S, std::size_t... Before>
constexpr bool is_nested_at(std::index_sequence<Before...>) {
  return requires { S{any_at<Before>{}..., {any_arithmetic{}, any_arithmetic{}}}; };
}
template <class S, std::size_t... At>
constexpr bool is_nested(std::index_sequence<At...>) {
  return (is_nested_at<S>(std::make_index_sequence<At>{}) || ...);
}

/// The number of members, 1 to 6, or 0 where a structured binding would not give arithmetic members.
template <class S>
constexpr std::size_t count() {
  if constexpr (!std::is_aggregate_v<S> || !std::is_trivially_copyable_v<S> || std::is_array_v<S>) {
    return 0;
  } else if constexpr (is_built_from<S>(std::make_index_sequence<7>{})) {
    return 0;
  } else {
    constexpr std::size_t n = [] {
      std::size_t most = 0;
      [&]<std::size_t... N>(std::index_sequence<N...>) {
        ((most = is_built_from<S>(std::make_index_sequence<N>{}) ? N : most), ...);
      }(std::make_index_sequence<7>{});
      return most;
    }();
    if constexpr (n == 0) {
      return 0;
    } else {
      return is_nested<S>(std::make_index_sequence<n>{}) ? 0 : n;
    }
  }
}

/// References to the members.
template <class S>
constexpr auto tie(S& s) noexcept {
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
  } else {
    auto& [a, b, c, d, e, f] = s;
    return std::tie(a, b, c, d, e, f);
  }
}

template <class S>
constexpr bool all_arithmetic() {
  if constexpr (count<S>() == 0) {
    return false;
  } else {
    return []<class... T>(std::type_identity<std::tuple<T&...>>) {
      return (std::is_arithmetic_v<T> && ...);
    }(std::type_identity<decltype(tie(std::declval<S&>()))>{});
  }
}

}  // namespace members

// Only lanes that were set are read; g++ cannot always see that, and clearing them first would cost a short row dearly.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// An array of states, for states that cannot be taken apart.
template <class State>
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

template <class State>
  requires std::is_arithmetic_v<State>
class columns<State> {
 public:
  [[nodiscard]] State get(index j) const noexcept { return values_[static_cast<std::size_t>(j)]; }
  void set(index j, State s) noexcept { values_[static_cast<std::size_t>(j)] = s; }

 private:
  alignas(64) std::array<State, lanes> values_;
};

template <class State>
  requires(members::all_arithmetic<State>())
class columns<State> {
  template <class Refs>
  struct arrays;
  template <class... T>
  struct arrays<std::tuple<T&...>> {
    using type = std::tuple<std::array<T, lanes>...>;
  };
  using indices = std::make_index_sequence<members::count<State>()>;

 public:
  [[nodiscard]] State get(index j) const noexcept {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return State{std::get<K>(values_)[static_cast<std::size_t>(j)]...};
    }(indices{});
  }
  void set(index j, const State& s) noexcept {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      const auto from = members::tie(s);
      ((std::get<K>(values_)[static_cast<std::size_t>(j)] = std::get<K>(from)), ...);
    }(indices{});
  }

 private:
  alignas(64) typename arrays<decltype(members::tie(std::declval<State&>()))>::type values_;
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace regroup::host

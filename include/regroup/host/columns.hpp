// SPDX-License-Identifier: Apache-2.0
// The L lanes of a tile, or several rows abreast, as arrays, so that a loop over them becomes a loop over packs. A state that
// is a scalar, or made of some, has one array for each; any other is kept as an array of states. The bits are the same.
// Level: lane.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/host/scalars.hpp"

namespace regroup::host {

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
  /// A lane that is not read again before it is set.
  [[nodiscard]] State&& take(index j) { return std::move(states_[static_cast<std::size_t>(j)]); }
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
  requires std::is_scalar_v<State>
class columns<State, Width> {
 public:
  [[nodiscard]] State get(index j) const noexcept { return values_[static_cast<std::size_t>(j)]; }
  [[nodiscard]] State take(index j) const noexcept { return get(j); }
  void set(index j, State s) noexcept { values_[static_cast<std::size_t>(j)] = s; }
  void set_if(bool condition, index j, State s) noexcept { set(j, host::chosen(condition, s, get(j))); }

 private:
  alignas(64) std::array<State, Width> values_;
};

template <class State, std::size_t Width>
  requires(is_split<State>())
class columns<State, Width> {
  /// A bool beside wider scalars stands as an integer of the widest: lanes of one width become packs.
  template <class T>
  using kept =
      std::conditional_t<std::is_same_v<T, bool> && (widest_scalar<State> > 1), word_of_bytes<widest_scalar<State>>, T>;
  template <std::size_t K, class T>
  struct column {  // a tuple would clear them
    std::array<kept<T>, Width> values;
  };
  template <class Indices, class Scalars>
  struct columns_of;
  template <std::size_t... K, class... T>
  struct columns_of<std::index_sequence<K...>, std::tuple<T...>> : column<K, T>... {};
  template <std::size_t K>
  using nth = column<K, std::tuple_element_t<K, scalars_in<State>>>;

 public:
  [[nodiscard]] State get(index j) const noexcept {
    return host::assembled<State>([&]<std::size_t K>(place<K>) {
      return static_cast<std::tuple_element_t<K, scalars_in<State>>>(
          static_cast<const nth<K>&>(scalars_).values[static_cast<std::size_t>(j)]);
    });
  }
  [[nodiscard]] State take(index j) const noexcept { return get(j); }
  void set(index j, const State& s) noexcept {
    host::each_scalar(s, [&]<std::size_t K>(place<K>, const auto& scalar) {
      static_cast<nth<K>&>(scalars_).values[static_cast<std::size_t>(j)] = scalar;
    });
  }
  void set_if(bool condition, index j, const State& s) noexcept {
    host::each_scalar(s, [&]<std::size_t K>(place<K>, const auto& scalar) {
      auto& value = static_cast<nth<K>&>(scalars_).values[static_cast<std::size_t>(j)];
      value = host::chosen(condition, static_cast<std::remove_cvref_t<decltype(value)>>(scalar), value);
    });
  }

 private:
  alignas(64) columns_of<std::make_index_sequence<count_of_scalars<State>>, scalars_in<State>> scalars_;
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace regroup::host

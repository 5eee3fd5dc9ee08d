// SPDX-License-Identifier: Apache-2.0
// The innermost combine: one tile to one state, over L lanes. The contract (executor.hpp) says which lane an element belongs
// to; the compiler turns a loop over lanes into a loop over packs. (A tile's prefixes: host/tile_scanner.hpp.)
//   commutative:  lane j = left fold of positions j, j + L, ...; then lane[j] = lane[j] lane[j + h], h = L/2, ..., 1
//   otherwise:    lane j = left fold of the contiguous piece [T/L j, T/L (j + 1)); then perfect(lanes) (host/pieces.hpp)
// Level: lane. Law: associativity, and commutativity only where it is declared.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "regroup/executor.hpp"
#include "regroup/host/columns.hpp"
#include "regroup/host/dispatch.hpp"
#include "regroup/host/halves.hpp"
#include "regroup/host/pieces.hpp"
#include "regroup/host/tile.hpp"
#include "regroup/memory.hpp"

namespace regroup::host {

/// Whether a loop over these states and elements is worth instantiating for every instruction set.
template <class State, class X>
inline constexpr bool is_plain = copies_scalars<State>() && copies_scalars<X>();

template <bool Plain, class F>
void run(F&& f) {
  if constexpr (Plain) {
    dispatch(f);
  } else {
    f();
  }
}

// clang's flatten goes one call deep, so there these loops are inlined into the dispatched function by name, and their
// calls, the operator's among them, into the loops (host/dispatch.hpp).
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// The first `count` lanes, joined by halves; all of them if `count` >= `lanes`.
template <class M>
constexpr state_of<M> join_halves(const M& m, columns<state_of<M>>& lane, index count) {
  const auto halve = [&](const auto h, const auto present) {
    for (index j = 0; j < present; ++j) lane.set(j, m(lane.take(j), lane.take(j + h)));
  };
  const auto halve_below = [&]<index... K>(const index end, std::integer_sequence<index, K...>) {
    const auto known = [&](const auto h) { if (h < end) halve(h, h); };  // known lengths become packs
    (known(std::integral_constant<index, lanes / 2 / (index{1} << K)>{}), ...);
  };
  constexpr std::make_integer_sequence<index, std::countr_zero(static_cast<std::uint64_t>(lanes))> halves;
  if (count >= lanes) {
    halve_below(lanes, halves);  // all of them, so in registers
  } else {
    const index half = static_cast<index>(std::bit_ceil(static_cast<std::uint64_t>(count))) / 2;
    halve(half, std::min(half, count - half));  // lanes past `count` are absent
    halve_below(half, halves);
  }
  return lane.take(0);
}

template <class M, class Tile>
constexpr state_of<M> striped_leaf(const M& m, const Tile& t) {
  columns<state_of<M>> lane;
  const index count = std::min(t.size(), lanes);
  for (index j = 0; j < count; ++j) lane.set(j, regroup::lift(m, t[j]));
  index i = count;
  for (; i + lanes <= t.size(); i += lanes) {
    if constexpr (requires { t.load().template meanwhile<M>(i); }) t.load().template meanwhile<M>(i);
    for (index j = 0; j < lanes; ++j) lane.set(j, regroup::append(m, i / lanes, lane.take(j), t[i + j]));
  }
  for (index j = 0; i + j < t.size(); ++j) lane.set(j, regroup::append(m, i / lanes, lane.take(j), t[i + j]));
  return join_halves(m, lane, count);
}

/// body(member, ...) for the members of a product. (std::apply is a call that clang compiles for no instruction set.)
template <class M, class Body>
constexpr decltype(auto) with_members(const M& m, const Body& body) {
  return [&]<std::size_t... K>(const auto& members, std::index_sequence<K...>) -> decltype(auto) {
    return body(std::get<K>(members)...);
  }(m.members(), std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(m.members())>>>{});
}

/// body(tile), where a tile of float16 is widened first.
template <class Tile, class Body>
constexpr decltype(auto) with_widened(const Tile& t, const Body& body) {
  if constexpr (std::same_as<Tile, tile<load_from<float16>>>) {
    alignas(64) std::array<float, tile_elements> values;
    widen_all(t.load().first, values.data(), t.size());
    return body(tile<load_widened<float16>>{{values.data(), t.load().first}, t.size()});
  } else {
    return body(t);
  }
}

/// The state of one tile of at least one element, in the contract's order.
template <class M, class Tile>
constexpr state_of<M> leaf(const M& m, const Tile& t) {
  if constexpr (std::same_as<Tile, tile<load_from<float16>>>) {
    return host::with_widened(t, [&](const auto& widened) { return host::leaf(m, widened); });
  } else if constexpr (has_members<M>) {  // each member by its own rule
    return host::with_members(m, [&](const auto&... member) { return m.from_parts(host::leaf(member, t)...); });
  } else if constexpr (has_lift_tile<M, Tile>) {
    return m.lift_tile(t);
  } else if constexpr (is_commutative<M>) {
    return striped_leaf(m, t);
  } else {
    return pieces_leaf(m, t);
  }
}

template <class Load>
template <class M, class Map>
constexpr state_of<M> tile<Load>::fold(const M& m, const Map& map) const {
  if constexpr (std::same_as<Map, std::identity>) {
    return host::leaf(m, *this);
  } else {
    return host::leaf(m, tile<mapped<Load, Map>>{{load_, map}, size_});
  }
}

/// Copies the elements [first, first + n) of a source to contiguous memory.
template <source Source>
constexpr void copy_here(const Source& s, index first, index n, element_of<Source>* to) {
  if constexpr (has_visit<Source>) {
    s.visit(first, n, [&](index k, const auto& x) { to[k] = x; });
  } else {
    for (index i = 0; i < n; ++i) to[i] = s[first + i];
  }
}
/// Whether its elements are made as they are copied, which the best instruction set then does: of a lazy range, say.
template <source Source>
inline constexpr bool makes_elements =
    is_plain<element_of<Source>, element_of<Source>> && !requires(const Source& s) { s.contiguous(); };
template <source Source>
void copy_elements(const Source& s, index first, index n, element_of<Source>* to) {
  run<makes_elements<Source>>([&] { host::copy_here(s, first, n, to); });
}

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

/// The leaf of a tile whose first `offset` places are absent, because a stream begins inside it. `lift_tile` gets the
/// elements that are present; lanes keep their places. Needed once a stream, so written plainly.
template <class M, class Tile>
state_of<M> leaf_after(const M& m, const Tile& t, index offset) {
  if constexpr (has_members<M>) {
    return host::with_members(m, [&](const auto&... member) { return m.from_parts(host::leaf_after(member, t, offset)...); });
  } else if constexpr (has_lift_tile<M, Tile>) {
    return m.lift_tile(t);
  } else {
    std::vector<std::optional<state_of<M>>> lane(static_cast<std::size_t>(lanes));
    for (index i = 0; i < t.size(); ++i) {
      auto& s = lane[static_cast<std::size_t>(is_commutative<M> ? (offset + i) % lanes : (offset + i) / piece_elements)];
      s = regroup::joined(m, s, regroup::lift(m, t[i]));
    }
    for (std::size_t h = lane.size() / 2; h >= 1; h /= 2) {
      for (std::size_t j = 0; j < h; ++j) {
        const auto [left, right] = is_commutative<M> ? std::pair(j, j + h) : std::pair(2 * j, 2 * j + 1);
        lane[j] = lane[right] ? regroup::joined(m, lane[left], *lane[right]) : lane[left];
      }
    }
    return *lane[0];
  }
}

/// Whether a source is one of elements in memory, or that can be copied there, which a projection can number as they are read.
template <class Source>
inline constexpr bool can_be_numbered = false;
template <class Source, class Projection>
  requires requires(const Projection& p, const element_of<Source>* x) { p.of(x, index{}); }
inline constexpr bool can_be_numbered<projected<Source, Projection>> =
    is_movable<element_of<Source>> && !numbered<Source>;

/// Calls body(tile) with the elements [first, first + n) of a source: in place if they are contiguous or must not be copied,
/// else copied.
template <source Source, class Body>
void with_tile(const Source& s, index first, index n, const Body& body) {
  using element = element_of<Source>;
  const auto in_memory = [&](const auto& load) {
    if (n < s.size()) regroup::find_pages_ahead(load.first, static_cast<std::size_t>(n) * sizeof(*load.first));
    body(tile(load, n));
  };
  if constexpr (can_be_numbered<Source>) {
    host::with_tile(s.source, first, n, [&](const auto& t) {
      body(tile(load_numbered(s.projection.of(t.load().first, first)), n));
    });
  } else if (const auto data = contiguous(s); data != nullptr) {
    in_memory(load_from<element>{data + first});
  } else if constexpr (numbered<Source>) {
    in_memory(load_numbered(s.f.from(first)));
  } else if constexpr (is_movable<element>) {
    const auto copy = std::make_unique_for_overwrite<element[]>(static_cast<std::size_t>(n));
    host::copy_elements(s, first, n, copy.get());
    body(tile<load_from<element>>{{copy.get()}, n});
  } else {
    body(tile<load_of<Source>>{{&s, first}, n});
  }
}

/// Contiguous elements, at most a tile.
template <class X>
struct stretch {
  const X* first;
  index size;
};

/// The states of `n` <= L stretches, whose elements are read by load(first), by one dispatched call that all verbs share.
template <class M, class X, class Load>
void fold_leaves(const M& m, const stretch<X>* from, index n, columns<state_of<M>>& leaves, const Load& load) {
  run<is_plain<state_of<M>, X>>([&] {
    for (index k = 0; k < n; ++k) {
      const auto& [first, size] = from[k];
      leaves.set(k, size == 0 ? m.identity() : host::leaf(m, tile(load(first), size)));
    }
  });
}
/// sink(first + k, state_at(k)) for k < n, dispatched since answers may take fma.
template <class Sink, class StateAt>
void sink_some(const Sink& sink, index first, index n, const StateAt& state_at) {
  dispatch([&] {
    if constexpr (requires { sink.some(first, n, state_at); }) {
      sink.some(first, n, state_at);
    } else {
      for (index k = 0; k < n; ++k) sink(first + k, state_at(k));
    }
  });
}

/// How elements are read where they are.
struct as_they_lie {
  template <class X>
  constexpr auto operator()(const X* first) const {
    return load_from<X>{first};
  }
};

/// The leaf of a tile of at least one element.
template <class M, class Load>
state_of<M> leaf_of(const M& m, const tile<Load>& t) {
  using element = std::remove_cvref_t<decltype(t[0])>;
  std::optional<state_of<M>> state;
  run<is_plain<state_of<M>, element> || (has_lift_tile<M, tile<Load>> && std::is_trivially_copyable_v<element>)>(
      [&] { state.emplace(host::leaf(m, t)); });
  return *std::move(state);
}
template <class M, class X>
requires is_plain<state_of<M>, X>
state_of<M> leaf_of(const M& m, const tile<load_from<X>>& t) {
  const stretch<X> all{t.load().first, t.size()};
  columns<state_of<M>> leaf;
  host::fold_leaves(m, &all, 1, leaf, as_they_lie{});
  return leaf.get(0);
}

/// The leaf of `n` >= 1 contiguous elements, the first of them at place `offset` of its tile.
template <class M, class X>
state_of<M> leaf_of(const M& m, const X* first, index n, index offset = 0) {
  const tile<load_from<X>> t{{first}, n};
  return offset == 0 ? host::leaf_of(m, t) : host::leaf_after(m, t, offset);
}

}  // namespace regroup::host

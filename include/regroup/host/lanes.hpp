// SPDX-License-Identifier: Apache-2.0
// The innermost combine: one tile to one state, and one tile to its prefixes, over L lanes. Which lane an element
// belongs to is the contract's (executor.hpp); that a loop over lanes becomes a loop over packs is the compiler's work.
//   commutative:  lane j = left fold of positions j, j + L, ...; then lane[j] = lane[j] lane[j + h], h = L/2, ..., 1
//   otherwise:    lane j = left fold of the contiguous piece [T/L j, T/L (j + 1)); then perfect(lanes)
// Level: lane. Law: associativity, and commutativity only where it is declared.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "regroup/executor.hpp"
#include "regroup/host/columns.hpp"
#include "regroup/host/dispatch.hpp"

namespace regroup::host {

inline constexpr index piece_elements = tile_elements / lanes;

/// One tile of elements in position order; what `lift_tile` receives.
template <class Load>
class tile {
 public:
  constexpr tile(Load load, index size) : load_(std::move(load)), size_(size) {}
  [[nodiscard]] constexpr index size() const noexcept { return size_; }
  constexpr decltype(auto) operator[](index i) const { return load_(i); }

  /// The leaf of another monoid over map(element): the same lanes, the same order.
  template <class M, class Map = std::identity>
  constexpr state_of<M> fold(const M& m, const Map& map = {}) const;

 private:
  Load load_;
  index size_;
};

/// Reads a contiguous tile, 16-bit floats widened.
template <class X>
struct load_from {
  const X* first;
  constexpr decltype(auto) operator()(index i) const { return widen(first[i]); }
};

template <class Load, class Map>
struct mapped {
  Load load;
  Map map;
  constexpr auto operator()(index i) const { return map(load(i)); }
};

template <class M, class Tile>
constexpr state_of<M> striped_leaf(const M& m, const Tile& t) {
  columns<state_of<M>> lane;
  index count = std::min(t.size(), lanes);
  for (index j = 0; j < count; ++j) lane.set(j, regroup::lift(m, t[j]));
  index i = count;
  for (; i + lanes <= t.size(); i += lanes) {
    for (index j = 0; j < lanes; ++j) lane.set(j, m(lane.get(j), regroup::lift(m, t[i + j])));
  }
  for (index j = 0; i + j < t.size(); ++j) lane.set(j, m(lane.get(j), regroup::lift(m, t[i + j])));
  for (index h = lanes / 2; h >= 1; h /= 2) {
    const index pairs = std::min(h, count - h);  // lanes past `count` are absent
    for (index j = 0; j < pairs; ++j) lane.set(j, m(lane.get(j), lane.get(j + h)));
    count = std::min(count, h);
  }
  return lane.get(0);
}

/// The pieces that `n` elements touch; all but the last are whole.
constexpr index pieces_of(index n) noexcept { return (n + piece_elements - 1) / piece_elements; }

/// lane[j] = left fold of piece j of a tile.
template <class M, class Tile>
constexpr void fold_pieces(const M& m, const Tile& t, columns<state_of<M>>& lane) {
  const index count = pieces_of(t.size());
  const index rest = t.size() - (count - 1) * piece_elements;  // elements of the last piece
  for (index j = 0; j < count; ++j) lane.set(j, regroup::lift(m, t[j * piece_elements]));
  for (index i = 1; i < piece_elements; ++i) {
    const index present = i < rest ? count : count - 1;
    for (index j = 0; j < present; ++j) lane.set(j, m(lane.get(j), regroup::lift(m, t[j * piece_elements + i])));
  }
}

template <class M, class Tile>
constexpr state_of<M> pieces_leaf(const M& m, const Tile& t) {
  columns<state_of<M>> from;
  fold_pieces(m, t, from);
  for (index count = pieces_of(t.size()); count > 1; count = (count + 1) / 2) {  // perfect(lanes)
    columns<state_of<M>> to;
    for (index k = 0; k < count / 2; ++k) to.set(k, m(from.get(2 * k), from.get(2 * k + 1)));
    if (count % 2 == 1) to.set(count / 2, from.get(count - 1));
    from = std::move(to);
  }
  return from.get(0);
}

/// The state of one tile of at least one element, as the contract orders it.
template <class M, class Tile>
constexpr state_of<M> leaf(const M& m, const Tile& t) {
  if constexpr (has_members<M>) {  // each member by its own rule
    return std::apply([&](const auto&... member) { return m.from_parts(leaf(member, t)...); }, m.members());
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
    return leaf(m, *this);
  } else {
    return leaf(m, tile<mapped<Load, Map>>{{load_, map}, size_});
  }
}

/// The leaf of a tile whose first `offset` places are absent, as where a stream begins inside it. `lift_tile` counts
/// from the first element present; lanes keep their places. Once a stream, so plain.
template <class M, class Tile>
state_of<M> leaf_after(const M& m, const Tile& t, index offset) {
  if constexpr (has_members<M>) {
    return std::apply([&](const auto&... member) { return m.from_parts(leaf_after(member, t, offset)...); },
                      m.members());
  } else if constexpr (has_lift_tile<M, Tile>) {
    return m.lift_tile(t);
  } else {
    std::vector<std::optional<state_of<M>>> lane(static_cast<std::size_t>(lanes));
    const auto join = [&](std::optional<state_of<M>>& a, const std::optional<state_of<M>>& b) {
      if (b) a = a ? m(*a, *b) : *b;
    };
    for (index i = 0; i < t.size(); ++i) {
      const index j = is_commutative<M> ? (offset + i) % lanes : (offset + i) / piece_elements;
      join(lane[static_cast<std::size_t>(j)], regroup::lift(m, t[i]));
    }
    for (std::size_t h = lane.size() / 2; h >= 1; h /= 2) {
      for (std::size_t j = 0; j < h; ++j) {
        if constexpr (is_commutative<M>) {
          join(lane[j], lane[j + h]);
        } else {
          std::optional<state_of<M>> pair = lane[2 * j];
          join(pair, lane[2 * j + 1]);
          lane[j] = std::move(pair);
        }
      }
    }
    return *lane[0];
  }
}

/// Calls body(pointer) with a copy of the elements [first, first + n) of a source side by side.
template <source Source, class Body>
void with_copy(const Source& s, index first, index n, const Body& body) {
  using element = element_of<Source>;
  if constexpr (std::is_trivially_default_constructible_v<element>) {
    const auto copy = std::make_unique_for_overwrite<element[]>(static_cast<std::size_t>(n));
    for (index i = 0; i < n; ++i) copy[static_cast<std::size_t>(i)] = s[first + i];
    body(static_cast<const element*>(copy.get()));
  } else {
    std::vector<element> copy;
    copy.reserve(static_cast<std::size_t>(n));
    for (index i = 0; i < n; ++i) copy.push_back(s[first + i]);
    body(static_cast<const element*>(copy.data()));
  }
}

/// The same without the copy where the elements are side by side already.
template <source Source, class Body>
void with_contiguous(const Source& s, index first, index n, const Body& body) {
  if (const auto data = contiguous(s); data != nullptr) {
    body(static_cast<const element_of<Source>*>(data + first));
  } else {
    with_copy(s, first, n, body);
  }
}

/// Whether a loop over these states and elements is worth instantiating for every instruction set.
template <class State, class X>
inline constexpr bool is_plain = std::is_trivially_copyable_v<State> && std::is_trivially_copyable_v<X>;

template <bool Plain, class F>
void run(F&& f) {
  if constexpr (Plain) {
    dispatch(f);
  } else {
    f();
  }
}

/// The leaf of `n` >= 1 contiguous elements, the first of them at place `offset` of its tile.
template <class M, class X>
state_of<M> leaf_of(const M& m, const X* first, index n, index offset = 0) {
  const tile<load_from<X>> t{{first}, n};
  if (offset != 0) return leaf_after(m, t, offset);
  std::optional<state_of<M>> state;
  run<is_plain<state_of<M>, X>>([&] { state.emplace(leaf(m, t)); });
  return *std::move(state);
}

/// The forest of the tiles [first, last) of a source.
template <class M, source Source>
forest<state_of<M>> fold_tiles(const M& m, const Source& s, index first, index last) {
  forest<state_of<M>> nodes;
  for (index t = first; t < last; ++t) {
    const index n = std::min(tile_elements, s.size() - t * tile_elements);
    with_contiguous(s, t * tile_elements, n, [&](const auto* data) { nodes.push(m, {0, t, leaf_of(m, data, n)}); });
  }
  return nodes;
}

/// The state of a whole source: reduce.
template <class M, source Source>
state_of<M> fold_source(const M& m, const Source& s) {
  const index n = s.size();
  if (n == 0) return m.identity();
  if (n > tile_elements) return *fold_tiles(m, s, 0, tiles_of(n)).value(m);
  std::optional<state_of<M>> state;
  with_contiguous(s, 0, n, [&](const auto* data) { state.emplace(leaf_of(m, data, n)); });
  return *std::move(state);
}

}  // namespace regroup::host

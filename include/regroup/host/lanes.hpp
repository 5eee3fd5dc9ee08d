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

/// One tile of elements in position order; what `lift_tile` receives. `offset` is the place of its first element in the
/// tile: 0 but for a stream that starts inside one.
template <class Load>
class tile {
 public:
  constexpr tile(Load load, index size, index offset = 0) : load_(std::move(load)), size_(size), offset_(offset) {}
  [[nodiscard]] constexpr index size() const noexcept { return size_; }
  [[nodiscard]] constexpr index offset() const noexcept { return offset_; }
  constexpr auto operator[](index i) const { return load_(i); }

  /// The leaf of another monoid over map(element): the same lanes, the same order.
  template <class M, class Map = std::identity>
  constexpr state_of<M> fold(const M& m, const Map& map = {}) const;

 private:
  Load load_;
  index size_;
  index offset_;
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

/// lane[j] = lane[j] lane[j + h] for h = L/2, ..., 1 over the first `count` lanes; the rest are absent.
template <class M>
constexpr state_of<M> halve(const M& m, columns<state_of<M>>& lane, index count) {
  const auto level = [&](const index h) {
    for (index j = 0; j < h; ++j) lane.set(j, m(lane.get(j), lane.get(j + h)));
  };
  if (count == lanes) {
    [&]<index... Halving>(std::integer_sequence<index, Halving...>) {
      (level(lanes >> (Halving + 1)), ...);
    }(std::make_integer_sequence<index, std::bit_width(static_cast<std::uint64_t>(lanes)) - 1>{});
  } else {
    for (index h = lanes / 2; h >= 1; h /= 2) {
      for (index j = 0; j < std::min(h, count - h); ++j) lane.set(j, m(lane.get(j), lane.get(j + h)));
      count = std::min(count, h);
    }
  }
  return lane.get(0);
}

template <class M, class Tile>
constexpr state_of<M> striped_leaf(const M& m, const Tile& t) {
  const index n = t.size();
  columns<state_of<M>> lane;
  const index shift = t.offset() % lanes;
  if (n < lanes && shift != 0) {  // a short tile that starts inside its lanes: absent lanes hold the identity
    for (index j = 0; j < lanes; ++j) lane.set(j, m.identity());
    for (index i = 0; i < n; ++i) lane.set((shift + i) % lanes, regroup::lift(m, t[i]));
    return halve(m, lane, lanes);
  }
  const index head = std::min(n, lanes);
  if (shift == 0) {
    for (index j = 0; j < head; ++j) lane.set(j, regroup::lift(m, t[j]));
  } else {
    for (index j = 0; j < lanes; ++j) lane.set(j, regroup::lift(m, t[(j - shift + lanes) % lanes]));
  }
  index i = head;
  for (; shift == 0 && i + lanes <= n; i += lanes) {
    for (index j = 0; j < lanes; ++j) lane.set(j, m(lane.get(j), regroup::lift(m, t[i + j])));
  }
  if (shift == 0) {
    for (index j = 0; j < n - i; ++j) lane.set(j, m(lane.get(j), regroup::lift(m, t[i + j])));
  } else {
    for (; i < n; ++i) {
      const index j = (shift + i) % lanes;
      lane.set(j, m(lane.get(j), regroup::lift(m, t[i])));
    }
  }
  return halve(m, lane, head);
}

/// The left folds of the contiguous pieces of a tile: lanes [first, last), in a tile whose element 0 stands at `offset`.
template <class M, class Tile>
constexpr void fold_pieces(const M& m, const Tile& t, columns<state_of<M>>& lane, index first, index last) {
  const auto begin = [&](index j) { return std::max<index>(j * piece_elements - t.offset(), 0); };
  const auto end = [&](index j) { return std::min((j + 1) * piece_elements - t.offset(), t.size()); };
  for (index j = first; j < last; ++j) lane.set(j - first, regroup::lift(m, t[begin(j)]));
  index whole_first = first;
  index whole_last = last;
  const auto ragged = [&](index j) {
    for (index i = begin(j) + 1; i < end(j); ++i) {
      lane.set(j - first, m(lane.get(j - first), regroup::lift(m, t[i])));
    }
  };
  if (end(first) - begin(first) != piece_elements) ragged(whole_first++);
  if (last > whole_first && end(last - 1) - begin(last - 1) != piece_elements) ragged(--whole_last);
  for (index i = 1; i < piece_elements; ++i) {
    for (index j = whole_first; j < whole_last; ++j) {
      lane.set(j - first, m(lane.get(j - first), regroup::lift(m, t[j * piece_elements - t.offset() + i])));
    }
  }
}

/// The first and one past the last lane whose piece holds an element.
template <class Tile>
constexpr std::pair<index, index> pieces_of(const Tile& t) {
  return {t.offset() / piece_elements, (t.offset() + t.size() - 1) / piece_elements + 1};
}

template <class M, class Tile>
constexpr state_of<M> pieces_leaf(const M& m, const Tile& t) {
  columns<state_of<M>> from;
  auto [first, last] = pieces_of(t);
  fold_pieces(m, t, from, first, last);
  // perfect(lanes): lane first + k is from.get(k); pairs are aligned to even lanes
  while (last - first > 1) {
    columns<state_of<M>> to;
    const index parents = first / 2;
    const index paired_first = (first + 1) / 2;
    const index paired_last = last / 2;
    if (parents < paired_first) to.set(0, from.get(0));
    for (index k = paired_first; k < paired_last; ++k) {
      to.set(k - parents, m(from.get(2 * k - first), from.get(2 * k + 1 - first)));
    }
    if (paired_last < (last + 1) / 2) to.set(paired_last - parents, from.get(2 * paired_last - first));
    first = parents;
    last = (last + 1) / 2;
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
    return leaf(m, tile<Load>{load_, size_});  // a tile lift counts its lanes from the first present element
  } else {
    return leaf(m, tile<mapped<Load, Map>>{{load_, map}, size_});
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
  std::optional<state_of<M>> state;
  run<is_plain<state_of<M>, X>>([&] { state.emplace(leaf(m, tile<load_from<X>>{{first}, n, offset})); });
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

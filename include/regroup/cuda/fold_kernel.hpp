// SPDX-License-Identifier: Apache-2.0
// The ordered fold as kernels. A team of threads folds a tile to its leaf: each thread loads its elements, up to 32, into
// registers before the first combine, so many loads are in flight, and a tile lift that folds twice reads memory once.
// Blocks fold aligned ranges of tiles as perfect trees, and later kernels fold those nodes, until every row has one.
// Every value is a node of the contract's tree (executor.hpp): the bits of `seq`, whatever the grid.
// Level: lane to device. Law: associativity, and commutativity only where it is declared.
#pragma once

#include <functional>
#include <tuple>
#include <type_traits>

#include "regroup/cuda/batch.hpp"
#include "regroup/cuda/team.hpp"

namespace regroup::cuda {

template <class Held, class Map>
class team_tile;

/// One tile of at least one element, as its team holds it: if elements are small, thread j of P has the elements j, j + P, j
/// + 2 P, ... in registers; others are read when needed.
template <class Team, class Source>
class held_tile {
 public:
  using element = std::remove_cvref_t<widened<element_of<Source>>>;
  static constexpr bool in_registers = sizeof(element) <= 8;

  constexpr held_tile(Team& of, const Source& source, index first, int size)
      : team_(of), source_(source), first_(first), size_(size) {
    if constexpr (in_registers) {
      const auto from = contiguous_from(source, first + of.rank());  // then places are constants
      if constexpr (!std::is_null_pointer_v<std::remove_const_t<decltype(from)>>) {
        if (from != nullptr) {
          each([&](int k) { held_[k].value = regroup::widen(from[Team::threads * k]); });
          return;
        }
      }
      each([&](int k) { held_[k].value = at(of.rank() + Team::threads * k); });
    }
  }
  [[nodiscard]] constexpr Team& of() const { return team_; }
  [[nodiscard]] constexpr int size() const { return size_; }
  constexpr element at(index i) const { return regroup::widen(source_[first_ + i]); }
  constexpr element held(int k) const {
    if constexpr (in_registers) {
      return held_[k].value;
    } else {
      return at(team_.rank() + Team::threads * k);
    }
  }
  /// The number of this thread's elements.
  [[nodiscard]] constexpr int steps() const { return (size_ - team_.rank() + Team::threads - 1) / Team::threads; }
  /// Calls body(that number): a constant for a whole tile.
  template <class Body>
  constexpr void with_steps(const Body& body) const {
    constexpr int whole = Team::threads * Team::held;
    if (whole == tile_elements && size_ == whole) {
      body(std::integral_constant<int, Team::held>{});
    } else {
      body(steps());
    }
  }

  /// Calls body(k) for every element of this thread.
  template <class Body>
  constexpr void each(const Body& body) const {
    with_steps([&](const auto count) {
      unrolled<Team::held>([&](int k) {
        if (k < count) body(k);
      });
    });
  }
  /// The tile's leaf by m over map(element), in every thread.
  template <class M, class Map>
  constexpr state_of<M> fold(const M& m, const Map& map) const {
    return team_tile(*this, map).fold(m);
  }
  /// x = f(x) for every element held in a register.
  template <class F>
    requires in_registers
  constexpr void replace(const F& f) {
    each([&](int k) { held_[k].value = f(held_[k].value); });
  }

 private:
  Team& team_;
  Source source_;
  index first_;
  int size_;
  slots<element, in_registers ? Team::held : 1> held_;
};

template <class M, class Tile>
constexpr state_of<M> leaf(const M& m, const Tile& t);

/// What `lift_tile` receives on a device: the elements of a tile in position order, each through a map.
template <class Held, class Map>
class team_tile {
 public:
  constexpr team_tile(const Held& held, const Map& map) : held_(held), map_(map) {}
  [[nodiscard]] constexpr index size() const { return held_.size(); }
  constexpr auto operator[](index i) const { return map_(held_.at(i)); }
  [[nodiscard]] constexpr const Held& elements() const { return held_; }
  [[nodiscard]] constexpr const Map& map() const { return map_; }

  /// The leaf of another monoid over map(element), in every thread: the same lanes, the same order.
  template <class M, class Next = std::identity>
  constexpr state_of<M> fold(const M& m, const Next& next = {}) const {
    const auto both = [this, &next](const auto& x) { return next(map_(x)); };
    return held_.of().broadcast(cuda::leaf(m, team_tile<Held, decltype(both)>(held_, both)));
  }

 private:
  const Held& held_;
  const Map& map_;
};

/// commutative: lane j = left fold of positions j, j + L, ...
template <class M, class Tile>
constexpr state_of<M> striped_leaf(const M& m, const Tile& t) {
  using team = std::remove_cvref_t<decltype(t.elements().of())>;
  slots<state_of<M>, team::own_lanes> lane;
  const auto lifted = [&](int k) { return regroup::lift(m, t.map()(t.elements().held(k))); };
  t.elements().with_steps([&](const auto count) {
    unrolled<team::own_lanes>([&](int k) { lane[k].value = k < count ? lifted(k) : m.identity(); });
    unrolled<team::held - team::own_lanes>([&](int i) {
      const int k = i + team::own_lanes;
      if (k < count) lane[k % team::own_lanes].value = m(lane[k % team::own_lanes].value, lifted(k));
    });
  });
  return t.elements().of().halve(m, lane, smaller(t.elements().size(), block_threads));
}

/// otherwise: lane j = left fold of the contiguous piece [T/L j, T/L (j + 1))
template <class M, class Tile>
constexpr state_of<M> pieces_leaf(const M& m, const Tile& t) {
  using held = std::remove_cvref_t<decltype(t.elements())>;
  using team = std::remove_cvref_t<decltype(t.elements().of())>;
  const int n = t.elements().size();
  state_of<M> s = m.identity();
  const auto at = [&](int i) { return t.elements().at(i); };
  t.elements().of().template each_of_piece<typename held::element>(n, at, [&](int i, const auto& x) {
    const state_of<M> one = regroup::lift(m, t.map()(x));
    s = i == 0 ? one : m(s, one);
  });
  return t.elements().of().perfect(m, s, (n - 1) / team::steps + 1);
}

/// The state of one tile of at least one element, in the contract's order; valid in the team's first thread.
template <class M, class Tile>
constexpr state_of<M> leaf(const M& m, const Tile& t) {
  if constexpr (has_members<M>) {  // each member by its own rule
    return std::apply([&](const auto&... member) { return m.from_parts(cuda::leaf(member, t)...); }, m.members());
  } else if constexpr (has_lift_tile<M, Tile>) {
    return m.lift_tile(t);
  } else if constexpr (is_commutative<M>) {
    return striped_leaf(m, t);
  } else {
    return pieces_leaf(m, t);
  }
}

template <class M, class Team, class Source>
constexpr state_of<M> leaf_of(const M& m, Team& of, const Source& source, index first, int size) {
  const held_tile<Team, Source> held(of, source, first, size);
  const std::identity as_it_is;
  return cuda::leaf(m, team_tile(held, as_it_is));
}

/// Writes the states of rows to the caller's memory.
template <class State>
struct put_state {
  State* to;
  constexpr void operator()(index row, const State& s) const { to[row] = s; }
};

/// Writes answers to the caller's memory.
template <class M, class Out>
struct put_answer {
  M m;
  Out* to;
  index stride;
  constexpr void operator()(index row, const state_of<M>& s) const {
    to[row * stride] = static_cast<Out>(regroup::lower(m, s));
  }
};

/// Where the state of a node of `reach` elements goes: to `put` if the node is a whole row, else into the list of nodes of
/// longer rows.
template <class M, class Put>
struct node_sink {
  state_of<M>* nodes;
  Put put;
  template <class Batch>
  constexpr void operator()(const Batch& rows, index reach, index row, index position, const state_of<M>& s) const {
    if (rows[row].size() > reach) {
      nodes[rows.slot_of(row, reach, reach) + position] = s;
    } else {
      put(row, s);
    }
  }
};

template <class M, class Batch>
inline constexpr int fold_blocks = resident_blocks_for(sizeof(widened<element_in<Batch>>) <= 8
                                                           ? 32 * sizeof(widened<element_in<Batch>>)
                                                           : 128,
                                                       sizeof(state_of<M>));

/// Rows of at most `Threads` pieces, one team each; longer rows are skipped.
template <int Threads, class M, class Batch, class Put>
struct fold_short_rows {
  static constexpr int resident_blocks = fold_blocks<M, Batch>;
  M m;
  Batch rows;
  Put put;

  template <block Block>
  constexpr void operator()(Block& b) const {
    each_row<Threads>(b, rows, [&](auto& of, index row) {
      const auto source = rows[row];
      const index n = source.size();
      if (n > Threads * of.steps) return;
      const state_of<M> s = n == 0 ? m.identity() : leaf_of(m, of, source, 0, static_cast<int>(n));
      if (of.rank() == 0) put(row, s);
    });
  }
};

/// The most tiles that one block folds before it hands up their node: one for each thread of a warp.
inline constexpr int most_tiles = warp_threads;

/// The node of n >= 1 elements from `first`, at most 32 tiles; valid in the block's first thread.
template <class M, class Team, class Source>
constexpr state_of<M> range_of(const M& m, Team& of, const Source& source, index first, index n) {
  auto leaves = of.block().template shared<state_of<M>, most_tiles>();
  int count = 0;
  state_of<M> s = m.identity();
  for (index i = 0; i < n; i += tile_elements) {
    s = leaf_of(m, of, source, first + i, static_cast<int>(smaller(tile_elements, n - i)));
    if (n > tile_elements && of.rank() == 0) leaves.set(count, s);
    ++count;
  }
  if (count == 1 || of.rank() >= warp_threads) return s;
  of.block().template group_barrier<warp_threads>();  // the next leaf's barrier keeps these reads from its writes
  if (of.rank() < count) s = leaves.get(of.rank());
  return of.perfect_of_group(m, s, count);
}

/// Whether what a sink makes of a state takes registers that a fold of its own does not.
template <class Put>
inline constexpr bool is_heavy = requires { requires Put::is_heavy; };

/// Folds elements to nodes of `reach` elements: 1, 2, 4, ..., 32 tiles. Rows of `shortest` elements or fewer are skipped.
template <class M, class Batch, class Put>
struct fold_ranges {
  static constexpr int resident_blocks = fold_blocks<M, Batch> - (is_heavy<Put> ? 1 : 0);
  M m;
  Batch rows;
  index reach;
  index shortest;
  node_sink<M, Put> sink;

  template <block Block>
  constexpr void operator()(Block& b) const {
    each_node(b, rows, reach, shortest, [&](auto& of, index row, index position) {
      const auto source = rows[row];
      const index first = position * reach;
      const state_of<M> s = range_of(m, of, source, first, smaller(source.size() - first, reach));
      if (of.rank() == 0) sink(rows, reach, row, position, s);
    });
  }
};

/// Folds nodes of reach `below` to nodes of L times that reach, one a block, for rows longer than `below`.
template <class M, class Batch, class Put>
struct fold_nodes {
  M m;
  Batch rows;
  index below;
  const state_of<M>* children;
  node_sink<M, Put> sink;

  template <block Block>
  constexpr void operator()(Block& b) const {
    const index reach = below * lanes;
    each_node(b, rows, reach, below, [&](auto& of, index row, index position) {
      const index count = smaller(nodes_of(rows[row].size(), below) - position * lanes, lanes);
      state_of<M> s = m.identity();
      if (of.rank() < count) s = children[rows.slot_of(row, below, below) + position * lanes + of.rank()];
      s = of.perfect(m, s, static_cast<int>(count));
      if (of.rank() == 0) sink(rows, reach, row, position, s);
    });
  }
};

}  // namespace regroup::cuda

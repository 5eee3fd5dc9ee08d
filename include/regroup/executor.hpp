// SPDX-License-Identifier: Apache-2.0
// The order of combination, and what an executor must provide. The order is a contract: a tree that depends on the
// number of elements and on the monoid, never on threads, instruction sets, chunks, layout or timing.
//   tile t     = positions [T t, T t + T); its state, the leaf, is `lift_tile`, or the fold of L lanes (host/lanes.hpp)
//   reduce     = perfect(leaves): adjacent pairs, level by level, padded right to a power of two, absent operands skipped
//   a forest   = the maximal aligned nodes of an interval of tiles: what a worker, a stream or a rank hands up
// Executors evaluate only nodes of this tree (of an exact monoid perhaps by `lift_tiles`); adjacent forests merge to the same
// bits. NaNs are not distinguished: their sign and payload depend on the processor. All threads use the caller's
// floating-point environment. In the default one every instruction set gives the same bits; in another (say, denormals
// flushed) they still do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "regroup/batch.hpp"
#include "regroup/error.hpp"
#include "regroup/monoid.hpp"

namespace regroup {

/// T: elements in a tile. L: lanes of a tile. Saved states carry `order_version`. It changes whenever the bits of any result
/// may change, and only in a major release; golden bits are pinned (properties/habits/golden_bits.txt).
inline constexpr index tile_elements = 4096;
inline constexpr index lanes = 128;
/// The elements of a lane, contiguous where the monoid does not commute.
inline constexpr index piece_elements = tile_elements / lanes;
inline constexpr std::uint32_t order_version = 1;

/// The number of tiles that `n` elements from position 0 touch.
constexpr index tiles_of(index n) noexcept { return n / tile_elements + (n % tile_elements != 0 ? 1 : 0); }

/// a := a b, moving what can be moved.
template <class M>
constexpr void combine_into(const M& m, state_of<M>& a, state_of<M> b) {
  a = state_of<M>(m(std::move(a), std::move(b)));  // a combine may return a reference to its argument
}

/// a b, where there may be nothing on the left.
template <class M>
constexpr state_of<M> joined(const M& m, const std::optional<state_of<M>>& a, state_of<M> b) {
  return a ? m(*a, std::move(b)) : b;
}

/// perfect(xs) of at least one state: adjacent pairs, level by level. `xs` is used up.
template <class M>
constexpr state_of<M> perfect(const M& m, std::span<state_of<M>> xs) {
  for (std::size_t n = xs.size(); n > 1; n = (n + 1) / 2) {
    for (std::size_t k = 0; k < n / 2; ++k) xs[k] = state_of<M>(m(std::move(xs[2 * k]), std::move(xs[2 * k + 1])));
    if (n % 2 == 1) xs[n / 2] = std::move(xs[n - 1]);
  }
  return std::move(xs[0]);
}

/// A node of the tree: those of the tiles [position * 2^level, (position + 1) * 2^level) that are present, combined.
template <class State>
struct node {
  int level = 0;
  index position = 0;
  State state;
};

/// The level of the maximal aligned node that begins with tile `first` of the tiles [first, last).
constexpr int level_of_node(index first, index last) noexcept {
  const int of_all = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(last - first))) - 1;
  return std::min(of_all, std::countr_zero(static_cast<std::uint64_t>(first)));
}

/// The maximal aligned nodes of an interval of tiles, left to right: at most 2 log2(n) states. Pushing the next tile, or
/// every node of the adjacent forest, combines siblings and nothing else, so any grouping gives the same bits.
template <class State>
class forest {
 public:
  /// Adds the node that begins where this forest ends.
  template <class M>
  void push(const M& m, node<State> next) {
    while (!nodes_.empty() && is_sibling_of(nodes_.back(), next)) {
      combine_into(m, nodes_.back().state, std::move(next.state));
      next = {next.level + 1, next.position / 2, std::move(nodes_.back().state)};
      nodes_.pop_back();
    }
    nodes_.push_back(std::move(next));
  }
  /// The same where an operator that throws must leave the forest as it was: what a combine takes by value is copied.
  template <class M>
  void push_or_keep(const M& m, node<State> next) {
    std::size_t kept = nodes_.size();
    for (; kept > 0 && is_sibling_of(nodes_[kept - 1], next); --kept) {
      next = {next.level + 1, next.position / 2, m(std::as_const(nodes_[kept - 1].state), std::move(next.state))};
    }
    if (kept == nodes_.size()) return nodes_.push_back(std::move(next));
    nodes_[kept] = std::move(next);
    nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(kept + 1), nodes_.end());
  }
  template <class M>
  void append(const M& m, forest next) {
    for (node<State>& n : next.nodes_) push(m, std::move(n));
  }
  /// perfect() of the tiles present; nullopt if there are none.
  template <class M>
  [[nodiscard]] std::optional<State> value(const M& m) const& {
    return root(m, std::span(nodes_));
  }
  /// The same for a forest that is no longer needed: its states are moved.
  template <class M>
  [[nodiscard]] std::optional<State> value(const M& m) && {
    return root(m, std::span(nodes_));
  }
  [[nodiscard]] bool empty() const noexcept { return nodes_.empty(); }
  [[nodiscard]] const std::vector<node<State>>& nodes() const& noexcept { return nodes_; }
  [[nodiscard]] std::vector<node<State>> nodes() && noexcept { return std::move(nodes_); }

 private:
  static bool is_sibling_of(const node<State>& left, const node<State>& next) noexcept {
    return left.level == next.level && left.position + 1 == next.position && left.position % 2 == 0;
  }
  template <class M, class Node>
  static std::optional<State> root(const M& m, std::span<Node> all) {
    if (all.empty()) return std::nullopt;
    const index end = (all.back().position + 1) << all.back().level;
    const auto level = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(end - 1)));  // the root covers [0, 2^level)
    return evaluate(m, all, level, 0);
  }
  /// The node (level, position), of which `part` holds what is present.
  template <class M, class Node>
  static State evaluate(const M& m, std::span<Node> part, int level, index position) {
    if (part.size() == 1) return std::move(part.front().state);
    const index middle = (2 * position + 1) << (level - 1);  // the first tile of the right child
    std::size_t left = 0;
    while (left < part.size() && (part[left].position << part[left].level) < middle) ++left;
    if (left == 0) return evaluate(m, part, level - 1, 2 * position + 1);
    if (left == part.size()) return evaluate(m, part, level - 1, 2 * position);
    return m(evaluate(m, part.first(left), level - 1, 2 * position),
             evaluate(m, part.subspan(left), level - 1, 2 * position + 1));
  }

  std::vector<node<State>> nodes_;
};

enum class scan_kind { inclusive, exclusive };

namespace probe {  // the smallest arguments an executor is asked about
struct monoid {
  constexpr int identity() const { return 0; }
  constexpr int operator()(int a, int b) const { return a + b; }
};
struct sink {
  void operator()(index, int) const {}
  void operator()(index) const {}
};
}  // namespace probe

/// What the verbs require of an executor. Each call returns when all of its work is done and rethrows the first exception
/// that an operator threw.
///   fold(batch, m, sink)         calls sink(row, state) once for each row, with the state of the contract's tree, also in code
///                                that is dispatched; where a sink has it, sink.some(first, n, state_at) serves n rows
///   scan(batch, out, m, kind, answer)    out[row][i] = answer(state) of the prefix that ends at i (inclusive) or before i
///                                (exclusive); `out` may be the source itself
///   for_each(n, cost, body)      body(0), ..., body(n - 1), each once; `cost` is an estimate of one call, in ns
/// On a CPU derive from `host::threads<Self>` (host/threads.hpp) and provide `concurrency()` and `bulk(n, body)` only.
template <class E>
concept executor = requires(const E& e, single<strided<const int>> b, single<strided<int>> out, probe::monoid m,
                            probe::sink s) {
  e.fold(b, m, s);
  e.scan(b, out, m, scan_kind::inclusive, std::negate{});
  e.for_each(index{1}, 1.0, s);
};

/// The executor that does the work: `ex.worker()` if it has one, else `ex`. Executors with the same type of worker share the
/// compiled algorithm.
template <executor E>
decltype(auto) worker_of(const E& ex) {
  if constexpr (requires { ex.worker(); }) {
    return ex.worker();
  } else {
    return (ex);
  }
}

/// True if a call is collective: every participant must make it, even with no elements. Declared by `static constexpr bool
/// is_collective = true`.
template <class Executor>
inline constexpr bool is_collective = requires { requires Executor::is_collective; };

/// The number of threads an executor reports; one that reports none counts as having several: 2.
template <class Executor>
int concurrency_of(const Executor& ex) {
  if constexpr (requires { ex.concurrency(); }) {
    return ex.concurrency();
  } else {
    return 2;
  }
}

}  // namespace regroup

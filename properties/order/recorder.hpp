// SPDX-License-Identifier: Apache-2.0
// Recorders: operators whose state is a picture of the tree that combined it. Deliberately not associative, so equal
// results mean equal trees. `spelled` writes "(a b)" and is read by people; `hashed` mixes two 64-bit words and is for
// long inputs. The rule (contiguous pieces, striped lanes by a declared commutativity, a tile lift, a tile lift beside
// a declared commutativity) and the shape of the state (a number, an aggregate, an opaque class) are parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reference.hpp"
#include "regroup/monoid.hpp"

namespace order {

enum class rule { pieces, striped, tile, striped_tile };

constexpr bool declares_commutative(rule r) { return r == rule::striped || r == rule::striped_tile; }
constexpr bool lifts_tiles(rule r) { return r == rule::tile || r == rule::striped_tile; }

using word = std::uint64_t;

/// A hash of an ordered pair; never 0, which is kept for the identity.
constexpr word mix(word a, word b) {
  word h = a * 0x9e3779b97f4a7c15u;
  h = ((h << 29) | (h >> 35)) ^ (b * 0xc2b2ae3d27d4eb4fu + 0x165667b19e3779f9u);
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
  h ^= h >> 29;
  return h == 0 ? 1 : h;
}

constexpr word element(std::int64_t i) { return mix(0x7777, static_cast<word>(i)); }

constexpr word skip_or_mix(word a, word b) { return a == 0 ? b : b == 0 ? a : mix(a, b); }

/// A state that is a number.
constexpr word tree_of(word s) { return s; }

/// A state that a structured binding takes apart; it counts its elements beside.
struct aggregate {
  word tree;
  std::uint32_t count;
  bool operator==(const aggregate&) const = default;
};
constexpr word tree_of(const aggregate& s) { return s.tree; }

/// A state that nothing takes apart: not an aggregate, no default constructor, not trivially copyable.
class opaque {
 public:
  constexpr opaque(word tree, std::uint32_t) : tree_(tree) {}
  constexpr opaque(const opaque& other) : tree_(other.tree_) {}
  constexpr opaque& operator=(const opaque& other) {
    tree_ = other.tree_;
    return *this;
  }
  [[nodiscard]] constexpr word tree() const { return tree_; }

 private:
  word tree_;
};
constexpr word tree_of(const opaque& s) { return s.tree(); }

/// What the tile lift of `hashed` writes: a left fold in another mixing, so that it cannot be taken for a lane.
template <class Tile>
constexpr word hash_tile(const Tile& tile, std::int64_t size) {
  word h = 0xabcdef;
  for (std::int64_t i = 0; i < size; ++i) h = mix(static_cast<word>(tile[i]) ^ 0x5555, h);
  return h;
}

template <rule Rule, class State = word>
struct hashed {
  static constexpr bool is_commutative = declares_commutative(Rule);

  static constexpr State make(word tree, std::uint32_t count) {
    if constexpr (std::same_as<State, word>) {
      return tree;
    } else {
      return State{tree, count};
    }
  }
  constexpr State identity() const { return make(0, 0); }
  constexpr State lift(word x) const { return make(x, 1); }
  constexpr State operator()(State a, State b) const {
    const word tree = skip_or_mix(tree_of(a), tree_of(b));
    if constexpr (std::same_as<State, aggregate>) {
      return {tree, a.count + b.count};
    } else {
      return make(tree, 0);
    }
  }
  constexpr word lower(State s) const { return tree_of(s); }
  template <class Tile>
  requires(lifts_tiles(Rule)) constexpr State lift_tile(const Tile& tile) const {
    const auto size = static_cast<std::int64_t>(tile.size());
    return make(hash_tile(tile, size), static_cast<std::uint32_t>(size));
  }
};

template <rule Rule>
struct spelled {
  static constexpr bool is_commutative = declares_commutative(Rule);

  std::string identity() const { return {}; }
  std::string lift(std::int64_t i) const { return std::to_string(i); }
  std::string operator()(const std::string& a, const std::string& b) const {
    if (a.empty()) return b;
    if (b.empty()) return a;
    return "(" + a + " " + b + ")";
  }
  template <class Tile>
  requires(lifts_tiles(Rule)) std::string lift_tile(const Tile& tile)
  const { return "[" + std::to_string(tile[0]) + ".." + std::to_string(tile[tile.size() - 1]) + "]"; }
};

/// No recorder: what tells yes and no from numbers, as whoever keeps elements must.
struct tenfold {
  static constexpr bool is_commutative = true;
  int identity() const { return 0; }
  int lift(bool yes) const { return yes ? 10 : 1; }
  int lift(int x) const { return x; }
  int operator()(int a, int b) const { return a + b; }
};

/// n distinct elements to hash.
inline std::vector<word> elements(std::int64_t n, std::int64_t first = 0) {
  std::vector<word> xs;
  for (std::int64_t i = 0; i < n; ++i) xs.push_back(element(first + i));
  return xs;
}

/// The operands of `xs` from `first_position` on.
inline reference::operands<word> operands(const std::vector<word>& xs, std::int64_t first_position = 0) {
  reference::operands<word> all(static_cast<std::size_t>(first_position));
  all.insert(all.end(), xs.begin(), xs.end());
  return all;
}

/// What a reduction of `xs` with `hashed<Rule>` must answer, whatever its state's shape.
template <rule Rule>
word expected(const std::vector<word>& xs, std::int64_t first_position = 0, reference::order o = {}) {
  const hashed<Rule> m;
  if constexpr (lifts_tiles(Rule)) {
    const auto lift_tile = [](const std::vector<word>& tile) {
      word h = 0xabcdef;
      for (const word x : tile) h = mix(x ^ 0x5555, h);
      return h;
    };
    return reference::reduce_tiles(m, operands(xs, first_position), lift_tile, o).value_or(0);
  } else {
    return reference::reduce(m, operands(xs, first_position), o).value_or(0);
  }
}

inline std::vector<word> lowered(const reference::operands<word>& ys) {
  std::vector<word> values;
  for (const auto& y : ys) values.push_back(y.value_or(0));
  return values;
}

/// What the scans must write; a tile lift never enters them.
inline std::vector<word> expected_inclusive(const std::vector<word>& xs) {
  return lowered(reference::inclusive_scan(hashed<rule::pieces>{}, operands(xs)));
}
inline std::vector<word> expected_exclusive(const std::vector<word>& xs) {
  return lowered(reference::exclusive_scan(hashed<rule::pieces>{}, operands(xs)));
}

}  // namespace order

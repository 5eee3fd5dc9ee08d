// SPDX-License-Identifier: Apache-2.0
// Operators that are not in the library, made to be read: each is what a user would write. The recorders spell the tree
// they were folded in, so equal strings mean equal trees: that is how the order of combination is tested, and why they
// are deliberately not associative (their identity is exact). The others keep every law.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "regroup/math.hpp"
#include "regroup/monoid.hpp"

namespace examples {

/// Spells the tree: combine writes `(a b)` and skips the identity, the empty string. Elements are integers, such as
/// their own positions. Not associative.
struct recorder {
  std::string identity() const { return {}; }
  std::string lift(std::int64_t x) const { return std::to_string(x); }
  std::string operator()(const std::string& a, const std::string& b) const {
    if (a.empty()) return b;
    if (b.empty()) return a;
    return "(" + a + " " + b + ")";
  }
};

/// A recorder that says it commutes, to see the tree that commutative monoids get. (It does not.)
struct commutative_recorder : recorder {
  static constexpr bool is_commutative = true;
};

/// A recorder that lifts a whole tile, to `[first..last]`.
struct tile_recorder : recorder {
  template <class Tile>
  std::string lift_tile(const Tile& tile) const {
    return "[" + lift(tile[0]) + ".." + lift(tile[tile.size() - 1]) + "]";
  }
};

/// The free monoid: lists under concatenation, which keep everything and so prove that a fold keeps the order.
template <class X>
struct free_monoid {
  static constexpr bool is_exact = true;
  std::vector<X> identity() const { return {}; }
  std::vector<X> lift(const X& x) const { return {x}; }
  std::vector<X> operator()(std::vector<X> a, const std::vector<X>& b) const {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
};

/// The longest run of true elements, from pieces in any grouping: a run that crosses the seam is a suffix and a prefix.
struct longest_run {
  struct state {
    std::int64_t prefix, suffix, best, length;
  };
  static constexpr bool is_exact = true;
  constexpr state identity() const { return {}; }
  constexpr state lift(bool x) const {
    const std::int64_t run = x ? 1 : 0;
    return {run, run, run, 1};
  }
  constexpr state operator()(state a, state b) const {
    const std::int64_t across = a.suffix + b.prefix;
    const std::int64_t best = a.best < b.best ? b.best : a.best;
    return {a.prefix == a.length ? a.length + b.prefix : a.prefix,
            b.suffix == b.length ? b.length + a.suffix : b.suffix,  //
            best < across ? across : best, a.length + b.length};
  }
  constexpr std::int64_t lower(state s) const { return s.best; }
};

/// 2 x 2 matrices over (min, +): cheapest ways through two rails, one step a matrix (xy: from rail x to rail y). Costs
/// are finite or +inf, for no way. Not commutative. The identity costs -0, since -0 + c is c for every c.
struct min_plus {
  struct state {
    double aa, ab, ba, bb;
  };
  constexpr state identity() const {
    const double never = std::numeric_limits<double>::infinity();
    return {-0.0, never, never, -0.0};
  }
  constexpr state operator()(state x, state y) const {
    using regroup::math::min;
    return {min(x.aa + y.aa, x.ab + y.ba), min(x.aa + y.ab, x.ab + y.bb),  //
            min(x.ba + y.aa, x.bb + y.ba), min(x.ba + y.ab, x.bb + y.bb)};
  }
};

}  // namespace examples

// SPDX-License-Identifier: Apache-2.0
// Monoids chosen at run time, folded in one pass: `several` is fanout with a list of members instead of template arguments. A
// tile is widened once into a buffer that stays in cache, and every member makes its own leaf of it, so a member has the bits
// that it has alone. Law: a product of monoids is a monoid. Level: tile.
#pragma once

#include <any>
#include <memory>
#include <utility>
#include <vector>

#include "regroup/host/lanes.hpp"

namespace regroup::tool {

/// A monoid over elements X with its state type erased, and a place for its answers. Positions (argmin, top_k) count from the
/// left end of what a state covers; a combine shifts those of its right operand by the length of its left one.
template <class X>
class member {
 public:
  virtual ~member() = default;
  virtual std::any leaf(const X* xs, index n) const = 0;
  /// a := a b, where a covers `length` elements.
  virtual void combine(std::any& a, std::any b, index length) const = 0;
  /// Writes the answer of a row; a null state means no elements.
  virtual void answer(index row, const std::any* state) const = 0;
};

template <class X>
class several {
 public:
  struct state {
    index length = 0;
    std::vector<std::any> members;  // empty: the identity
  };

  void add(std::shared_ptr<const member<X>> m) { members_.push_back(std::move(m)); }
  [[nodiscard]] bool empty() const { return members_.empty(); }

  state identity() const { return {}; }
  template <class Element>
  state lift(const Element& element) const {
    const X x = static_cast<X>(element);
    return leaf(&x, 1);
  }
  state operator()(state a, state b) const {
    if (a.members.empty()) return b;
    if (b.members.empty()) return a;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      members_[i]->combine(a.members[i], std::move(b.members[i]), a.length);
    }
    a.length += b.length;
    return a;
  }
  template <class Tile>
  state lift_tile(const Tile& tile) const {
    X xs[tile_elements];
    for (index i = 0; i < tile.size(); ++i) xs[i] = static_cast<X>(tile[i]);
    return leaf(xs, tile.size());
  }
  void answer(index row, const state& s) const {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      members_[i]->answer(row, s.members.empty() ? nullptr : &s.members[i]);
    }
  }

 private:
  state leaf(const X* xs, index n) const {
    state s{n, {}};
    s.members.reserve(members_.size());
    for (const auto& m : members_) s.members.push_back(m->leaf(xs, n));
    return s;
  }

  std::vector<std::shared_ptr<const member<X>>> members_;
};

}  // namespace regroup::tool

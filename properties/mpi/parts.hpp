// SPDX-License-Identifier: Apache-2.0
// How the tests cut an array into ranks' parts, the same way on every rank: cuts fall on, beside and far from tiles' edges, and
// leave some ranks with nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../order/cases.hpp"
#include "regroup/mpi/ranks.hpp"

namespace ranks_test {

using regroup::index;
using regroup::shape;
using regroup::view;

inline const regroup::mpi::ranks<>& all() {
  static const regroup::mpi::ranks<> ranks(MPI_COMM_WORLD, regroup::par.with_threads(2));
  return ranks;
}

/// Where every rank's part of n elements begins, and n.
inline std::vector<index> cuts(index n, order::dice& random) {
  std::vector<index> at = {0, n};
  for (int r = 1; r < all().size(); ++r) {
    const index tile = random(0, n / regroup::tile_elements) * regroup::tile_elements;
    switch (random(0, 4)) {
      case 0: at.push_back(tile); break;
      case 1: at.push_back(std::clamp<index>(tile + random(-2, 2), 0, n)); break;
      case 2: at.push_back(at[at.size() / 2]); break;  // nothing for somebody
      default: at.push_back(random(0, n));
    }
  }
  std::ranges::sort(at);
  return at;
}

struct part {
  index first;
  index count;
};
inline part mine(const std::vector<index>& at) {
  const auto r = static_cast<std::size_t>(all().rank());
  return {at[r], at[r + 1] - at[r]};
}
template <class T>
std::span<const T> mine(const std::vector<T>& x, const std::vector<index>& at) {
  return std::span(x).subspan(static_cast<std::size_t>(mine(at).first), static_cast<std::size_t>(mine(at).count));
}

/// An array of these extents, and where it is cut.
struct cut_array {
  shape extents;
  int axis;
  std::vector<index> at;

  cut_array(const shape& e, int cut_axis, order::dice& random) : extents(e), axis(cut_axis), at(cuts(e[axis], random)) {}

  [[nodiscard]] index size() const { return view<float>(nullptr, extents).size(); }
  template <class T>
  [[nodiscard]] view<T> whole(T* x) const {
    return {x, extents};
  }
  /// This rank's part, where it is.
  template <class T>
  [[nodiscard]] view<T> part(T* x) const {
    const shape strides = row_major(extents);
    shape own = extents;
    own[axis] = mine(at).count;
    return {x + mine(at).first * strides[axis], own, strides};
  }
  /// What an array becomes when this rank writes its part of `whole` and nothing beside it.
  template <class T>
  [[nodiscard]] std::vector<T> with_part_of(const std::vector<T>& whole, std::vector<T> before) const {
    const auto from = part(whole.data());
    const auto to = part(before.data());
    for (index i = 0; i < from.size(); ++i) {
      const index offset = offset_of(i, from.extents(), from.strides());
      to.data()[offset] = from.data()[offset];
    }
    return before;
  }
  [[nodiscard]] std::string name() const {
    return to_string(extents) + " cut along axis " + std::to_string(axis) + ", from " + std::to_string(mine(at).first) + ", " +
           std::to_string(mine(at).count);
  }
};

}  // namespace ranks_test

// SPDX-License-Identifier: Apache-2.0
// How the tests cut an array into ranks' parts, the same way on every rank: cuts fall on, beside and far from tiles' edges, and
// leave some ranks with nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "../order/cases.hpp"
#include "regroup/mpi/ranks.hpp"

namespace ranks_test {

using regroup::index;

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

}  // namespace ranks_test

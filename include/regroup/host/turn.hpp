// SPDX-License-Identifier: Apache-2.0
// A tile turned: its pieces as columns, so that what a loop over lanes reads stands side by side, and back again. Moves
// bytes, computes nothing. Level: lane.
#pragma once

#include <algorithm>
#include <type_traits>

#include "regroup/host/tile.hpp"

namespace regroup::host {

/// Where an element of a tile stands: piece by piece, as in memory, or [place in its piece * L + piece].
enum class turning_to { lanes, pieces };

namespace turning {
/// Whole pieces of elements of 2, 4 and 8 bytes, by blocks in registers of the best instruction set.
void half_words(const void* from, void* to, index pieces, turning_to where);
void words(const void* from, void* to, index pieces, turning_to where);
void long_words(const void* from, void* to, index pieces, turning_to where);
}  // namespace turning

/// `n` elements of a tile, from the first of some piece on.
template <class X>
requires std::is_trivially_copyable_v<X>
void turn(const X* from, X* to, index n, turning_to where) {
  const index whole = n / piece_elements;
  const auto one_by_one = [&](index first, index last) {
    for (index k = first; k < last; ++k) {
      const index turned = k % piece_elements * lanes + k / piece_elements;
      to[where == turning_to::lanes ? turned : k] = from[where == turning_to::lanes ? k : turned];
    }
  };
  if constexpr (sizeof(X) == 2) {
    if (whole > 0) turning::half_words(from, to, whole, where);
  } else if constexpr (sizeof(X) == 4) {
    if (whole > 0) turning::words(from, to, whole, where);
  } else if constexpr (sizeof(X) == 8) {
    if (whole > 0) turning::long_words(from, to, whole, where);
  } else {
    one_by_one(0, whole * piece_elements);
  }
  one_by_one(whole * piece_elements, n);
}

}  // namespace regroup::host

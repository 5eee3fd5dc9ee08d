// SPDX-License-Identifier: Apache-2.0
// Rows of softmax that the blocks of a cluster hold in registers: one read and one write of memory, as map_held_rows has of
// shorter rows. Every block folds its strips to the node of its range and the cluster joins those (cluster.hpp), so every
// value is a node of the contract's tree. y may be exactly x: the map is told, last of all exchanges, after every block has
// read its strips. Level: cluster and device.
#pragma once

#include <concepts>

#include "regroup/cuda/cluster.hpp"
#include "regroup/cuda/row_kernel.hpp"

namespace regroup::cuda {

/// Strips that a block holds of a row at most: more of doubles would spill.
template <std::floating_point Real>
inline constexpr int most_strips = sizeof(Real) > 4 ? 8 : 16;

/// Rows of at most as many strips as a cluster's blocks hold, and never more than two sweeps take.
template <std::floating_point Real, class In, class Out, class Look>
struct map_clustered_rows {
  static constexpr int threads = most_strips<Real> * warp_threads;
  static constexpr int resident_blocks = strip_blocks<Real>(threads);
  In rows;
  Out out;
  scaled<Real> seen;
  Look look;

  template <cluster_block Block>
  constexpr void operator()(Block& b) const {
    clustered_strips<most_strips<Real>, Block> of(b);
    const int blocks = b.cluster_blocks();
    for (index row = b.block() / blocks; row < rows.size(); row += b.blocks() / blocks) {
      map_strips(of, rows, out, seen, look, row);
    }
  }
};

}  // namespace regroup::cuda

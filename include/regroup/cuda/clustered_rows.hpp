// SPDX-License-Identifier: Apache-2.0
// Rows of softmax that the blocks of a cluster hold in registers: one read and one write of memory, like shorter rows in
// map_held_rows. Every block folds its strips to the node of its range and the cluster joins the nodes (cluster.hpp), so
// every value is a node of the contract's tree. y may be exactly x: a block writes only where it alone has read, and a map
// that reads more of the row is broadcast after every block has read its strips. Level: cluster and device.
#pragma once

#include <concepts>

#include "regroup/cuda/cluster.hpp"
#include "regroup/cuda/row_kernel.hpp"

namespace regroup::cuda {

/// The most strips of a row that a block holds: 16 would take 64 registers of a thread, which then spills.
inline constexpr int most_strips = 8;

/// Rows of at most as many strips as a cluster's blocks hold: what two sweeps take.
template <std::floating_point Real, class In, class Out, class Look>
struct map_clustered_rows {
  static_assert(most_strips * most_cluster_blocks * strip_elements == longest_two_sweep_row);
  static constexpr int threads = most_strips * warp_threads;
  static constexpr int resident_blocks = strip_blocks<Real>(threads);
  In rows;
  Out out;
  scaled<Real> seen;
  Look look;

  template <cluster_block Block>
  constexpr void operator()(Block& b) const {
    clustered_strips<most_strips, Block> of(b);
    const auto blocks = static_cast<unsigned>(b.cluster_blocks());
    const index clusters = static_cast<unsigned>(b.blocks()) / blocks;  // 32 bits are enough, and sooner divided
    for (index row = static_cast<unsigned>(b.block()) / blocks; row < rows.size(); row += clusters) {
      map_strips(of, rows, out, seen, look, row);
    }
  }
};

}  // namespace regroup::cuda

// SPDX-License-Identifier: Apache-2.0
// Which kernels fold a batch, on how many blocks, with how much workspace: plain host code. Nothing here changes a bit of a
// result, since every choice evaluates nodes of the same tree. Short rows go to small teams in one launch; long rows go to
// blocks by ranges of tiles, whose nodes are then joined L at a time. Level: device.
#pragma once

#include <algorithm>
#include <cstddef>

#include "regroup/cuda/fold_kernel.hpp"

namespace regroup::cuda {

/// The most blocks that walk a list of nodes. Where the list has gaps many blocks may find no node, so it is several times
/// what a device runs at once; and a prime, so that periodic gaps do not all fall to the same blocks.
template <class Batch>
inline constexpr index most_node_blocks = Batch::has_gaps ? 8191 : most_blocks;
/// With fewer ranges than this to a multiprocessor, ranges are made smaller, so that the last wave of blocks is a small part.
inline constexpr index ranges_a_processor = 64;

/// The lengths of a batch, as far as the host knows them.
struct batch_lengths {
  index count;       ///< rows
  index total;       ///< elements of all rows
  index longest;     ///< no row is longer
  bool are_equal;    ///< every row is as long as the longest
};
template <class X, class P>
constexpr batch_lengths lengths_of(const row_batch<X, P>& b) {
  return {b.count, b.count * b.length, b.length, true};
}
template <class X, class O, class P>
constexpr batch_lengths lengths_of(const segment_batch<X, O, P>& b) {
  return {b.count, b.total, b.total, false};
}
template <class Source>
constexpr batch_lengths lengths_of(const one_source<Source>& b) {
  return {1, b.source.size(), b.source.size(), true};
}

/// The launches of one fold.
struct fold_plan {
  int short_team = 0;         ///< threads a short row, 4 or 32; 0 where no kernel takes short rows
  index shortest = -1;        ///< rows up to this are short
  index reach = 0;            ///< elements a range; 0 where every row is short
  int levels = 0;             ///< kernels that fold nodes after the ranges
};

/// The largest states, in bytes, of which each of four threads can hold 32 lanes.
inline constexpr std::size_t small_state_bytes = 8;

/// A team holds rows of up to 32 elements a thread; rows of more than 8 a thread are better off with a warp. If lengths
/// differ, short rows get their team whatever the lengths of the others.
constexpr fold_plan plan_fold(const batch_lengths& b, int processors, std::size_t state_bytes) {
  fold_plan plan;
  if (b.count == 0) return plan;
  const index typical = b.are_equal ? b.longest : b.total / b.count;
  if (typical <= piece_elements && state_bytes <= small_state_bytes) {
    plan.short_team = 4;
  } else if (typical <= warp_threads * piece_elements || !b.are_equal) {
    plan.short_team = warp_threads;
  }
  if (plan.short_team != 0) plan.shortest = plan.short_team * piece_elements;
  if (b.longest <= plan.shortest) return plan;
  plan.reach = tile_elements;
  const index enough = ranges_a_processor * std::max(processors, 1);
  while (plan.reach < most_tiles * tile_elements && b.total / (2 * plan.reach) >= enough) plan.reach *= 2;
  for (index reach = plan.reach; nodes_of(b.longest, reach) > 1; reach *= lanes) ++plan.levels;
  return plan;
}

/// The number of states of workspace that a fold needs: the nodes of every kernel except the last.
template <class Batch>
constexpr index workspace_states(const fold_plan& plan, const Batch& rows) {
  index states = 0;
  index reach = plan.reach;
  for (int level = 0; level < plan.levels; ++level, reach *= lanes) states += rows.slots(reach, reach);
  return states;
}

/// Calls launch(kernel, blocks), in order, for the kernels of the rows longer than `plan.shortest`; they call put(row, state)
/// on the device once for each row.
template <class Launch, class M, class Batch, class Put>
void launch_ranges(const Launch& launch, const fold_plan& plan, const M& m, const Batch& rows,
                   state_of<M>* workspace, const Put& put) {
  const auto on = [&launch](const auto& kernel, index blocks) {
    if (blocks > 0) launch(kernel, std::min(blocks, most_node_blocks<Batch>));
  };
  index reach = plan.reach;
  on(fold_ranges<M, Batch, Put>{m, rows, reach, plan.shortest, {workspace, put}}, rows.slots(reach, plan.shortest));
  for (int level = 0; level < plan.levels; ++level, reach *= lanes) {
    const state_of<M>* const children = workspace;
    workspace += rows.slots(reach, reach);
    on(fold_nodes<M, Batch, Put>{m, rows, reach, children, {workspace, put}}, rows.slots(reach * lanes, reach));
  }
}

/// The same for every kernel of a fold.
template <class Launch, class M, class Batch, class Put>
void launch_fold(const Launch& launch, const fold_plan& plan, const M& m, const Batch& rows,
                 state_of<M>* workspace, const Put& put) {
  const auto on = [&](const auto& kernel, int threads) {
    const index teams = block_threads / threads;
    const index blocks = (rows.size() + teams - 1) / teams;
    if (blocks > 0) launch(kernel, std::min(blocks, most_blocks));
  };
  if (plan.short_team == 4) {
    if constexpr (sizeof(state_of<M>) <= small_state_bytes) on(fold_short_rows<4, M, Batch, Put>{m, rows, put}, 4);
  } else if (plan.short_team == warp_threads) {
    on(fold_short_rows<warp_threads, M, Batch, Put>{m, rows, put}, warp_threads);
  }
  if (plan.reach != 0) launch_ranges(launch, plan, m, rows, workspace, put);
}

}  // namespace regroup::cuda

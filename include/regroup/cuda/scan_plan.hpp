// SPDX-License-Identifier: Apache-2.0
// Which kernels scan a batch, with how much workspace: plain host code. Nothing here changes a bit of a result.
// Level: device.
#pragma once

#include <cstddef>

#include "regroup/cuda/fold_plan.hpp"
#include "regroup/cuda/scan_chain.hpp"

namespace regroup::cuda {

/// The launches of one scan.
struct scan_plan {
  int short_team = 0;   ///< threads a short row, 4 or 32; 0 where no kernel takes short rows
  index shortest = -1;  ///< rows up to this are short
  bool has_long = false;
  int levels = 0;       ///< kernels that join the totals of tiles; 0 where a tile holds any row
};

constexpr scan_plan plan_scan(const batch_lengths& b) {
  const fold_plan fold = plan_fold(b, 1, 0);  // a scan's lanes are pieces: a state a thread
  scan_plan plan{fold.short_team, fold.shortest, fold.reach != 0, 0};
  if (!plan.has_long) return plan;
  const index totals = (b.longest - 1) / tile_elements;
  for (index stride = 1; totals >= stride; stride *= lanes) ++plan.levels;
  return plan;
}

/// The layout of a chain's workspace, in bytes: its tickets, what tiles hand on, and what precedes tiles.
template <class State>
struct chain_places {
  static constexpr index first = sizeof(handed<State>);
  index count, preceding;
  template <class Batch>
  constexpr explicit chain_places(const Batch& rows)
      : count(rows.slots(tile_elements, tile_elements) + rows.slots(group_elements, group_elements)),
        preceding(first + count * index{sizeof(handed<State>)}) {}
};

/// Bytes of workspace that a scan needs: for segments one state a tile, else one `handed` state a tile and tickets; for an
/// exclusive scan one more state a tile.
template <class State, class Batch>
constexpr std::size_t scan_workspace(const scan_plan& plan, const Batch& rows, scan_kind kind) {
  if (plan.levels == 0) return 0;
  const index states = rows.slots(tile_elements, tile_elements) * index{sizeof(State)};
  const index first = Batch::has_gaps ? states : chain_places<State>(rows).preceding;
  return static_cast<std::size_t>(first + (kind == scan_kind::exclusive ? states : 0));
}

/// Calls launch(kernel, blocks) for every kernel of a scan, in order. The rows of `answers` are as long as those of `rows`.
template <scan_kind Kind, class Launch, class M, class In, class Out>
void launch_scan(const Launch& launch, const scan_plan& plan, const M& m, const In& rows, const Out& answers,
                 void* workspace) {
  using state = state_of<M>;
  const auto on = [&launch](const auto& kernel, index blocks, index most = most_blocks) {
    if (blocks > 0) launch(kernel, smaller(blocks, most));
  };
  const auto groups = [](index n, index each) { return (n + each - 1) / each; };
  if (plan.short_team == 4) {
    on(scan_short_rows<4, Kind, M, In, Out>{m, rows, answers}, groups(rows.size(), block_threads / 4));
  } else if (plan.short_team == warp_threads) {
    on(scan_short_rows<warp_threads, Kind, M, In, Out>{m, rows, answers},
       groups(rows.size(), block_threads / warp_threads));
  }
  if (!plan.has_long) return;
  const index tiles = rows.slots(tile_elements, tile_elements);
  state* preceding = nullptr;
  if constexpr (In::has_gaps) {
    constexpr index most = most_node_blocks<In>;
    state* const nodes = static_cast<state*>(workspace);
    preceding = nodes + tiles;
    if (plan.levels > 0) on(scan_totals<M, In>{m, rows, nodes}, tiles, most);
    index stride = 1;
    for (int level = 0; level < plan.levels; ++level, stride *= lanes) {
      on(scan_nodes<M, In>{m, rows, stride, nodes},
         rows.slots(tile_elements * stride * lanes, tile_elements * stride), most);
    }
    on(scan_tiles<Kind, M, In, Out>{m, rows, answers, plan.shortest, nodes, preceding},
       rows.slots(tile_elements, plan.shortest), most);
  } else {
    tickets* taken = nullptr;
    handed<state>* places = nullptr;
    if (plan.levels > 0) {
      const chain_places<state> at(rows);
      std::byte* const bytes = static_cast<std::byte*>(workspace);
      taken = reinterpret_cast<tickets*>(bytes);
      places = reinterpret_cast<handed<state>*>(bytes + at.first);
      preceding = reinterpret_cast<state*>(bytes + at.preceding);
      on(scan_begin<state>{taken, places, at.count}, groups(at.count, block_threads));
    }
    on(scan_chain<Kind, M, In, Out>{m, rows, answers, taken, {places, places + tiles}, preceding}, tiles);
  }
  if (Kind == scan_kind::exclusive && plan.levels > 0) {
    on(scan_first_places<M, Out>{m, answers, preceding}, groups(tiles, block_threads));
  }
}

}  // namespace regroup::cuda

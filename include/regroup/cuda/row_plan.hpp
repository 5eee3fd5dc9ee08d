// SPDX-License-Identifier: Apache-2.0
// Which kernels take rows of softmax, and with how much workspace: plain host code. The choice depends only on the length of
// a row and on whether the device has clusters, so neither a result's bits nor a row's kernel depends on the batch. Level:
// device.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include "regroup/cuda/clustered_rows.hpp"
#include "regroup/cuda/fold_plan.hpp"

namespace regroup::cuda {

/// Who takes a row: so many warps of a block, which hold a strip each, or four threads, if 0; or so many in each of a
/// cluster's blocks; or a block, tile after tile; or blocks for ranges of `reach` elements, whose nodes `levels` further
/// kernels join.
struct row_plan {
  enum class by { four_threads, strips, cluster, block, ranges } taken = by::four_threads;
  int strips = 0;
  int cluster = 1;
  index reach = 0;
  int levels = 0;

  [[nodiscard]] constexpr bool is_held() const { return taken == by::four_threads || taken == by::strips; }
  [[nodiscard]] constexpr bool is_split() const { return taken == by::ranges; }
  [[nodiscard]] constexpr fold_plan as_fold() const { return {0, -1, reach, levels}; }
};

/// As many threads as hold the row, then clusters, of at most `clusters` blocks, a power of two. Else a block takes what
/// two_sweeps sweeps; longer rows are split so that one kernel joins their nodes, up to 2^24 elements.
template <std::floating_point Real>
constexpr row_plan plan_rows(index length, int clusters = 1) {
  constexpr index held_by_block = most_strips * strip_elements;
  const auto rounded = [](index n) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))); };
  if (length <= short_row_elements) return {};
  if (length <= held_by_block) return {row_plan::by::strips, rounded(nodes_of(length, strip_elements))};
  if (length <= longest_two_sweep_row) {
    const index blocks = nodes_of(length, held_by_block);
    if (blocks <= clusters) return {row_plan::by::cluster, most_strips, rounded(blocks)};
    return {row_plan::by::block};
  }
  row_plan plan{row_plan::by::ranges, 0, 1, tile_elements};
  while (plan.reach < most_tiles * tile_elements && nodes_of(length, plan.reach) > lanes) plan.reach *= 2;
  for (index reach = plan.reach; nodes_of(length, reach) > 1; reach *= lanes) ++plan.levels;
  return plan;
}

/// What the workspace of split rows holds: the states of their folds, then the rows' maps. The size is the same with and
/// without clusters, so that it depends only on the length.
struct row_workspace {
  std::size_t maps_at;
  std::size_t bytes;
};
template <std::floating_point Real, class Look, class In>
constexpr row_workspace workspace_of(const In& rows) {
  const row_plan plan = plan_rows<Real>(rows.length);
  if (!plan.is_split()) return {0, 0};
  using state = typename log_sum_exp<Real>::state;
  const std::size_t states = sizeof(state) * static_cast<std::size_t>(workspace_states(plan.as_fold(), rows));
  const std::size_t maps_at = (states + 15) / 16 * 16;
  return {maps_at, maps_at + sizeof(map_of<Look, Real>) * static_cast<std::size_t>(rows.size())};
}

/// Calls launch(kernel, blocks, blocks of a cluster, 1 to `clusters`) for every kernel, in order; they call look(row, state)
/// on the device once for each row. All rows have the same length, and so have those of `out`, unless it is null and nothing
/// is written.
template <class Launch, std::floating_point Real, class In, class Out, class Look>
void launch_rows(const Launch& launch, int clusters, const In& rows, const Out& out, scaled<Real> seen, const Look& look,
                 void* workspace) {
  const row_plan plan = plan_rows<Real>(rows.length, clusters);
  const auto on = [&launch](const auto& kernel, index blocks, int cluster = 1) {
    if (blocks > 0) launch(kernel, smaller(blocks, most_blocks), cluster);
  };
  const auto held = [&]<int Strips>(std::integral_constant<int, Strips>) {
    constexpr index teams = Strips == 1 ? block_threads / warp_threads : 1;
    on(map_held_rows<Strips, Real, In, Out, Look>{rows, out, seen, look}, (rows.size() + teams - 1) / teams);
  };
  switch (plan.taken) {
    case row_plan::by::four_threads: {
      constexpr index teams = block_threads / short_row_threads;
      return on(map_short_rows<Real, In, Out, Look>{rows, out, seen, look}, (rows.size() + teams - 1) / teams);
    }
    case row_plan::by::strips:
      if (plan.strips == 1) return held(std::integral_constant<int, 1>{});
      if (plan.strips == 2) return held(std::integral_constant<int, 2>{});
      if (plan.strips == 4) return held(std::integral_constant<int, 4>{});
      return held(std::integral_constant<int, most_strips>{});
    case row_plan::by::cluster:
      return on(map_clustered_rows<Real, In, Out, Look>{rows, out, seen, look}, rows.size() * plan.cluster, plan.cluster);
    case row_plan::by::block: return on(map_rows_of_tiles<Real, In, Out, Look>{rows, out, seen, look}, rows.size());
    case row_plan::by::ranges: break;
  }

  auto seen_rows = row_batch{rows.first, rows.count, rows.length, rows.row_stride, rows.stride, seen};
  auto* const states = static_cast<typename log_sum_exp<Real>::state*>(workspace);
  auto* const maps = reinterpret_cast<map_of<Look, Real>*>(static_cast<char*>(workspace) +
                                                           workspace_of<Real, Look>(rows).maps_at);
  launch_ranges(on, plan.as_fold(), log_sum_exp<Real>{}, seen_rows, states, put_map<Real, Look>{seen, look, maps});
  if (out.first != nullptr) on(map_split_rows<Real, In, Out, Look>{rows, out, maps}, rows.slots(tile_elements, 0));
}

}  // namespace regroup::cuda

// SPDX-License-Identifier: Apache-2.0
// Which kernels take a call of attention, on how many blocks, with how much workspace. Plain host code; no choice made here
// changes a bit, since a query's leaves and their tree depend only on its keys. Level: device.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>

#include "regroup/cuda/attention_merge.hpp"
#include "regroup/cuda/attention_tile.hpp"
#include "regroup/cuda/attention_work.hpp"

namespace regroup::cuda {

/// How a call is shared out: `blocks` of `rows` queries and `columns` take units' parts in turn, each the node of `reach`
/// leaves.
struct attention_plan {
  int rows = 0, columns = 0;  ///< of a block
  index units = 0, parts = 1, reach = 1, blocks = 0;
  int depth = 0;              ///< of the stack of nodes that wait in a block
  std::size_t stack_bytes = 0, tickets_at = 0, bytes = 0;  ///< of workspace

  /// The stack, the nodes of parts, and tickets.
  template <class Shape>
  void place_workspace() {
    constexpr std::size_t block = sizeof(float) * static_cast<std::size_t>(waiting_states<Shape>::of_block);
    stack_bytes = block * static_cast<std::size_t>(blocks * depth);
    tickets_at = stack_bytes + (parts > 1 ? block * static_cast<std::size_t>(units * parts) : 0);
    bytes = tickets_at + (has_turns() ? sizeof(tickets) : 0);
  }
  [[nodiscard]] bool has_turns() const { return units * parts > blocks; }  ///< a block may have several
  /// Key heads whose units of the same rows come one after the other: so many that each block has two units of theirs. Their
  /// keys and values are what all blocks read at a time (128 rows, d = 128, 16 bits, 264 blocks: 35 MB).
  [[nodiscard]] index heads_together(index heads) const {
    const index times = std::max<index>(units * parts / std::max<index>(2 * blocks, 1), 1);
    return std::max<index>((heads + times - 1) / times, 1);
  }
};

/// Leaves of a part at most: the numbers of its keys are ints.
inline constexpr index most_reach = index{1} << 20;

/// The arithmetic of the contract, and its shapes: few queries, or 32 to a block with up to 64 columns, or more.
struct plain_arithmetic {
  template <class T, class Rule, class Shape>
  using tile = plain_tile<T, Rule, Shape>;
  /// run(Shape{}) for the shape of a plan.
  template <class T, class Run>
  static void with_shape(const attention_plan& plan, const Run& run) {
    if (plan.rows == 8) return run(attention_shape<2, 4>{});
    if (plan.columns == 64) return run(attention_shape<8, 2>{});
    run(attention_shape<8, 4>{});
  }
  template <class T, class Shape>
  static constexpr index resident_blocks = tile<T, no_mask, Shape>::resident_blocks;
  template <class T, class Shape>
  static constexpr index shared_bytes = 0;  // less than any device's blocks have
  static constexpr int few_rows = 8, few_columns = 128;
  template <class T>
  static constexpr int many_rows(const attention_call<T>&) {
    return 32;
  }
};

/// Blocks of few rows where those of many would be too few for the device, too empty, or ask for more than the `block_bytes`
/// of shared memory that a block may have there. Where units are fewer than the blocks that a device holds at once, each one's
/// leaves are shared out, to about four times as many blocks.
template <class Arithmetic = plain_arithmetic, class T>
attention_plan plan_attention(const attention_call<T>& call, index leaves, int processors,
                              index block_bytes = std::numeric_limits<index>::max()) {
  attention_plan plan;
  bool fits = true;
  const auto choose = [&](int rows, int columns) {
    plan.rows = rows;
    plan.columns = columns;
    Arithmetic::template with_shape<T>(plan, [&]<class Shape>(Shape) {
      plan.units = units_of<Shape>(call);
      fits = Arithmetic::template shared_bytes<T, Shape> <= block_bytes;
    });
  };
  choose(Arithmetic::many_rows(call), call.dv <= 64 ? 64 : 128);
  if (Arithmetic::few_rows < plan.rows &&
      (!fits || call.most_rows() <= Arithmetic::few_rows || plan.units * leaves < processors)) {
    choose(Arithmetic::few_rows, call.dv <= 64 ? Arithmetic::few_columns : 128);
  }
  if (plan.units == 0) return plan;
  Arithmetic::template with_shape<T>(plan, [&]<class Shape>(Shape) {
    constexpr index most_parts = merge_nodes<T, Shape, int>::most_parts;
    const index held = index{processors} * Arithmetic::template resident_blocks<T, Shape>;
    const auto parts = [&] { return (leaves + plan.reach - 1) / plan.reach; };
    const auto is_too_much = [&] { return plan.units >= held || plan.units * parts() > 4 * held || parts() > most_parts; };
    while (parts() > 1 && plan.reach < most_reach && is_too_much()) plan.reach *= 2;
    plan.parts = parts();
    plan.blocks = std::min(plan.units * plan.parts, std::max<index>(held, 1));
    while (index{1} << plan.depth < std::min(plan.reach, leaves)) ++plan.depth;
    plan.place_workspace<Shape>();
  });
  return plan;
}

/// launch(kernel, blocks) for every kernel of a call, in order, with `plan.bytes` of workspace.
template <class Arithmetic = plain_arithmetic, class Launch, class T, class Rule, class Out>
void launch_attention(const Launch& launch, const attention_plan& plan, const attention_work<T, Rule, Out>& work,
                      void* workspace) {
  if (plan.units == 0) return;
  using put = put_attention<T, Out>;
  attention_call<T> call = work.call;
  tickets* taken = nullptr;
  const bool cost_the_same = std::same_as<Rule, no_mask> && call.queries.given == nullptr && call.keys.given == nullptr;
  constexpr index most_tickets = index{1} << 31;  // the rows that ragged queries may have are not the rows they have
  if (plan.has_turns() && !cost_the_same && plan.units * plan.parts < most_tickets) {
    call.together = plan.heads_together(call.batches * call.key_heads);
    taken = reinterpret_cast<tickets*>(static_cast<std::byte*>(workspace) + plan.tickets_at);
    launch(begin_tickets{taken}, 1);
  }
  Arithmetic::template with_shape<T>(plan, [&]<class Shape>(Shape) {
    using tile = typename Arithmetic::template tile<T, Rule, Shape>;
    const waiting_states<Shape> stack{static_cast<float*>(workspace)};
    const waiting_states<Shape> nodes{stack.first + plan.stack_bytes / sizeof(float)};
    launch(attend_nodes<T, Rule, tile, put>{call, work.rule, plan.parts, plan.reach, plan.depth, stack, nodes, taken, work.put},
           plan.blocks);
    if (plan.parts == 1) return;
    using merge = merge_nodes<T, Shape, put>;
    launch(merge{call, plan.parts, nodes, work.put},
           smaller(plan.units * merge::unit_threads / block_threads, most_blocks));
  });
}

}  // namespace regroup::cuda

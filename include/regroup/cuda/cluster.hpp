// SPDX-License-Identifier: Apache-2.0
// A cluster: neighbouring blocks that run at once and reach each other's shared memory, as far as they hold one row. Its
// exchanges are like a team's (team.hpp): two buffers take turns, so one barrier serves each; who writes buffer k again has
// passed the barrier that every reader of it reached after reading. A block alone is a cluster of one. Level: cluster.
#pragma once

#include <concepts>

#include "regroup/cuda/team.hpp"

namespace regroup::cuda {

/// Blocks of a cluster at most, on every device that has clusters.
inline constexpr int most_cluster_blocks = 8;

/// What a kernel asks besides block's operations:
///     cluster_rank(), cluster_blocks()   which block of its cluster, whose blocks are neighbours in the grid; of how many
///     cluster_barrier()      every thread of the cluster arrives; shared memory written before, of any block, is seen after
///     shared_of<T, N>(rank)  that block's array shared<T, N>(): after one barrier of the cluster, before a last one
template <class B>
concept cluster_block = block<B> && requires(B& b, int i) {
  { b.cluster_rank() } -> std::same_as<int>;
  { b.cluster_blocks() } -> std::same_as<int>;
  b.cluster_barrier();
  { b.template shared_of<float, 2>(i).get(i) } -> std::same_as<float>;
};

template <cluster_block Block>
class cluster {
 public:
  constexpr explicit cluster(team<block_threads, Block>& of) : team_(of), block_(of.block()) {}

  [[nodiscard]] constexpr int rank() const { return block_.cluster_rank() * block_threads + team_.rank(); }
  [[nodiscard]] constexpr team<block_threads, Block>& of() const { return team_; }

  /// The first thread's value, for all of the cluster.
  template <class T>
  constexpr T broadcast(const T& x) {
    hand_over(x);
    return handed_by<T>(0);
  }
  /// perfect() of what the first threads of the first `count` blocks have, in every thread of all.
  template <class M>
  constexpr state_of<M> join(const M& m, state_of<M> s, int count) {
    hand_over(s);
    if (team_.rank() < warp_threads) {
      if (team_.rank() < count) s = handed_by<state_of<M>>(team_.rank());
      s = team_.perfect_of_group(m, s, count);
    }
    return team_.broadcast(s);
  }
  /// Before a block leaves, whose memory others may still read.
  constexpr void finish() { block_.cluster_barrier(); }

 private:
  template <class T>
  struct handed {  // an array of its own, apart from a team's of T
    T value;
  };
  template <class T>
  constexpr void hand_over(const T& x) {
    turn_ = 1 - turn_;
    if (team_.rank() == 0) block_.template shared<handed<T>, 2>().set(turn_, {x});
    block_.cluster_barrier();
  }
  template <class T>
  constexpr T handed_by(int rank) {
    return block_.template shared_of<handed<T>, 2>(rank).get(turn_).value;
  }

  team<block_threads, Block>& team_;
  Block& block_;
  int turn_ = 0;
};

/// body(cluster, row): the rows of a batch over the grid, a cluster each.
template <cluster_block Block, class Batch, class Body>
constexpr void each_clustered_row(Block& b, const Batch& rows, const Body& body) {
  team<block_threads, Block> of(b);
  cluster<Block> all(of);
  const int blocks = b.cluster_blocks();
  for (index row = b.block() / blocks; row < rows.size(); row += b.blocks() / blocks) body(all, row);
  all.finish();
}

}  // namespace regroup::cuda

// SPDX-License-Identifier: Apache-2.0
// A cluster: neighbouring blocks that run at once and reach each other's shared memory, as far as they hold one row. Two
// buffers take turns at its exchanges, so one barrier serves each; who writes buffer k again has passed the barrier that
// every reader of it reached after reading. A block alone is a cluster of one. Level: cluster.
#pragma once

#include <concepts>

#include "regroup/cuda/strips.hpp"

namespace regroup::cuda {

/// Blocks of a cluster at most, on every device that has clusters.
inline constexpr int most_cluster_blocks = 8;

/// What a kernel asks besides block's operations:
///     cluster_rank(), cluster_blocks()   which block of its cluster, whose blocks are neighbours in the grid; of how many
///     cluster_barrier()      every thread of the cluster arrives; shared memory written before, of any block, is seen after
///     cluster_arrive(), cluster_wait()   the two halves of one: between them no shared memory of another block is touched
///     shared_of<T, N>(rank)  that block's array shared<T, N>(): after one barrier of the cluster, before a last one
template <class B>
concept cluster_block = block<B> && requires(B& b, int i) {
  { b.cluster_rank() } -> std::same_as<int>;
  { b.cluster_blocks() } -> std::same_as<int>;
  b.cluster_barrier();
  b.cluster_arrive();
  b.cluster_wait();
  { b.template shared_of<float, 2>(i).get(i) } -> std::same_as<float>;
};

/// The blocks of a cluster that hold a row, each so many strips; a power of two of them. What strip_team offers.
template <int Strips, cluster_block Block>
class clustered_strips {
 public:
  constexpr explicit clustered_strips(Block& b) : team_(b) {}

  [[nodiscard]] constexpr Block& block() const { return team_.block(); }
  [[nodiscard]] constexpr int thread() const { return team_.thread(); }
  [[nodiscard]] constexpr index first() const {
    return index{block().cluster_rank()} * Strips * strip_elements + team_.first();
  }
  template <class M>
  constexpr state_of<M> extreme(const M& m, state_of<M> s) {
    return join(m, team_.extreme(m, s));
  }
  template <class M, class Held, class Map>
  constexpr state_of<M> fold(const M& m, const Held& held, const Map& map) {
    return join(m, team_.fold(m, held, map));
  }
  template <class F>
  constexpr auto told_by_first(const F& f) {
    slot<std::invoke_result_t<const F&>> x;
    if (block().cluster_rank() == 0 && team_.rank() == 0) x.value = f();
    hand_over(x);
    return handed_by<slot<std::invoke_result_t<const F&>>>(0).value;
  }
  /// After the last exchange of a row: what is written then need not be there before the blocks meet.
  constexpr void arrive() { block().cluster_arrive(); }
  constexpr void wait() { block().cluster_wait(); }

 private:
  template <class T>
  struct handed {  // an array of its own
    T value;
  };
  template <class T>
  constexpr void hand_over(const T& x) {
    turn_ = 1 - turn_;
    if (team_.rank() == 0) block().template shared<handed<T>, 2>().set(turn_, {x});
    block().cluster_barrier();
  }
  template <class T>
  constexpr T handed_by(int rank) {
    return block().template shared_of<handed<T>, 2>(rank).get(turn_).value;
  }
  /// perfect() of what the blocks have, by a monoid that commutes bit for bit.
  template <class M>
  constexpr state_of<M> join(const M& m, const state_of<M>& s) {
    hand_over(s);
    const int blocks = block().cluster_blocks();
    return team_.template joined<warp_threads>(m, handed_by<state_of<M>>(thread() % blocks), blocks);
  }

  strip_team<Strips, Block> team_;
  int turn_ = 0;
};

}  // namespace regroup::cuda

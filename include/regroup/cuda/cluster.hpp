// SPDX-License-Identifier: Apache-2.0
// A cluster: neighbouring blocks that run at the same time and reach each other's shared memory; here, those that hold one
// row. A message is written to every block before a barrier and read there after it, so no block reads another's memory, and
// none exits too early. Two buffers alternate, so an exchange takes one barrier: a thread that writes a buffer again has
// passed the barrier that all its readers reached after reading. A single block is a cluster of one. Level: cluster.
#pragma once

#include <concepts>

#include "regroup/cuda/strips.hpp"

namespace regroup::cuda {

/// The most blocks in a cluster, on every device that has clusters.
inline constexpr int most_cluster_blocks = 8;

/// What a kernel needs besides the operations of `block`:
///     cluster_rank(), cluster_blocks()   which block of its cluster, whose blocks are neighbours in the grid; of how many
///     cluster_arrive(has_written)        a warp's half of a barrier, and whether it has written what others are to see
///     cluster_wait()         the other half: every thread of the cluster has arrived, and what they wrote before is seen
///     shared_of<T, N>(rank)  that block's array shared<T, N>(): after one barrier of the cluster, before a last one
template <class B>
concept cluster_block = block<B> && requires(B& b, int i) {
  { b.cluster_rank() } -> std::same_as<int>;
  { b.cluster_blocks() } -> std::same_as<int>;
  b.cluster_arrive(true);
  b.cluster_wait();
  { b.template shared_of<float, 2>(i).get(i) } -> std::same_as<float>;
};

/// The blocks of a cluster that hold a row, a power of two of them, with equally many strips each. Has the interface of
/// strip_team.
template <int Strips, cluster_block Block>
class clustered_strips {
 public:
  static constexpr int warps = warps_for<Strips>;
  constexpr explicit clustered_strips(Block& b) : team_(b) { b.cluster_arrive(false); }

  [[nodiscard]] constexpr Block& block() const { return team_.block(); }
  [[nodiscard]] constexpr int thread() const { return team_.thread(); }
  [[nodiscard]] constexpr index first() const {
    return index{block().cluster_rank()} * Strips * strip_elements + team_.first();
  }
  [[nodiscard]] constexpr bool leads() const { return is_first() && thread() == 0; }
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
    if (leads()) x.value = f();
    if (is_first()) x = block().template broadcast<warp_threads>(x);
    return exchanged(x, is_first(), 0).value;
  }

 private:
  template <class T>
  struct handed {  // an array of its own
    T value;
  };
  [[nodiscard]] constexpr bool is_first() const { return block().cluster_rank() == 0 && team_.strip() == 0; }
  /// Returns the x of block `from`. Every block whose first warp has `tells` sends its x, which is the same in all threads of
  /// that warp, to all blocks.
  template <class T>
  constexpr T exchanged(const T& x, bool tells, int from) {
    const int blocks = block().cluster_blocks();
    turn_ = 1 - turn_;
    if (!has_begun_) block().cluster_wait();  // the others have
    has_begun_ = true;
    if (tells && thread() < blocks) at(thread(), x).set(turn_ * most_cluster_blocks + block().cluster_rank(), {x});
    block().cluster_arrive(tells);
    block().cluster_wait();
    return block().template shared<handed<T>, 2 * most_cluster_blocks>().get(turn_ * most_cluster_blocks + from).value;
  }
  template <class T>
  constexpr auto at(int rank, const T&) {
    return block().template shared_of<handed<T>, 2 * most_cluster_blocks>(rank);
  }
  /// perfect() of the blocks' states, by a monoid that commutes bitwise.
  template <class M>
  constexpr state_of<M> join(const M& m, const state_of<M>& s) {
    const int blocks = block().cluster_blocks();
    const state_of<M> other = exchanged(s, team_.strip() == 0, thread() & (blocks - 1));
    return team_.template joined<warp_threads>(m, other, blocks);
  }

  strip_team<Strips, Block> team_;
  int turn_ = 0;
  bool has_begun_ = false;
};

}  // namespace regroup::cuda

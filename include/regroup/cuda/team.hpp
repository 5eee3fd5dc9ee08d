// SPDX-License-Identifier: Apache-2.0
// A team: the threads that fold one tile, and how they join their states. 128 threads (a block) take a whole tile, 32 (a
// warp) or 4 of them a short row. The two trees are the contract's (executor.hpp), whatever the team:
//   halve     lane[j] = lane[j] lane[j + h] for h = L/2, ..., 1       perfect   adjacent pairs, level by level
// Across warps states go through shared memory in two buffers that take turns, so one barrier serves a tree: who writes
// buffer k again has passed the barrier that every reader of it reached after reading. Level: warp and block.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>

#include "regroup/cuda/batch.hpp"
#include "regroup/cuda/block.hpp"

namespace regroup::cuda {

/// `Held`: the most elements that a thread holds.
template <int Threads, block Block, int Held = static_cast<int>(piece_elements)>
class team {
 public:
  static_assert(Threads == block_threads || (Threads <= warp_threads && std::has_single_bit(unsigned{Threads})));
  static constexpr int threads = Threads;
  /// Threads of one warp among them: how far shuffles reach.
  static constexpr int width = std::min(Threads, warp_threads);
  /// Elements of the contract's piece.
  static constexpr int steps = static_cast<int>(piece_elements);
  static constexpr int held = Held;
  /// Lanes of a tile in one thread: thread j has lanes j, j + Threads, ...
  static constexpr int own_lanes = std::min(held, block_threads / Threads);

  constexpr explicit team(Block& b) : block_(b) {}

  [[nodiscard]] constexpr int rank() const { return block_.thread() % Threads; }
  [[nodiscard]] constexpr Block& block() const { return block_; }

  /// Lane 0 after halving the first `count` of L lanes; valid in the first thread. Absent lanes may hold anything.
  template <class M>
  constexpr state_of<M> halve(const M& m, slots<state_of<M>, own_lanes>& lane, int count) {
    using state = state_of<M>;
    const int j = rank();
    unrolled<std::countr_zero(static_cast<unsigned>(own_lanes))>([&](int level) {
      const int apart = own_lanes >> (level + 1);  // h / Threads
      if (Threads * apart >= count) return;
      unrolled<own_lanes / 2>([&](int k) {
        if (k < apart && j + Threads * (k + apart) < count) lane[k].value = m(lane[k].value, lane[k + apart].value);
      });
    });
    state s = lane[0].value;
    if constexpr (Threads == block_threads) {
      auto others = turns<state>();
      if (j >= warp_threads && j < count) others.set(j, s);
      block_barrier();
      if (j < warp_threads) {
        if (j + 64 < count) s = m(s, others.get(j + 64));
        if (j + 32 < count) {
          state right = others.get(j + 32);
          if (j + 96 < count) right = m(right, others.get(j + 96));
          s = m(s, right);
        }
      }
      if (j >= warp_threads) return s;
    }
    for (int h = width / 2; h >= 1; h /= 2) {
      const state other = block_.template shuffle_down<width>(s, h);
      if (j + h < count) s = m(s, other);
    }
    return s;
  }

  /// perfect() of the states of the first `count` >= 1 threads; valid in the first thread.
  template <class M>
  constexpr state_of<M> perfect(const M& m, state_of<M> s, int count) {
    const int j = rank();
    s = perfect_of_group(m, s, count);
    if constexpr (Threads == block_threads) {
      auto warps = turns<state_of<M>>();
      if (j > 0 && j % warp_threads == 0 && j < count) warps.set(j, s);
      block_barrier();
      if (j == 0) {
        if (count > 32) s = m(s, warps.get(32));
        if (count > 64) {
          state_of<M> right = warps.get(64);
          if (count > 96) right = m(right, warps.get(96));
          s = m(s, right);
        }
      }
    }
    return s;
  }

  /// The same within each warp; valid in every warp's first thread. Only a whole warp, or a small team, need call it.
  template <class M>
  constexpr state_of<M> perfect_of_group(const M& m, state_of<M> s, int count) {
    const int j = rank();
    for (int d = 1; d < width && d < count; d *= 2) {
      const state_of<M> other = block_.template shuffle_down<width>(s, d);
      if (j % (2 * d) == 0 && j + d < count) s = m(s, other);
    }
    return s;
  }

  /// P[j - 1], the total of all lanes before this one, by Kogge and Stone's tree over the first `count` threads, each of
  /// whom holds a lane's total. P[-1] is the identity.
  template <class M>
  constexpr state_of<M> prefix_before(const M& m, state_of<M> s, int count) {
    const int j = rank();
    for (int d = 1; d < Threads && d < count; d *= 2) {
      const state_of<M> left = from_before(s, d);
      if (j >= d && j < count) s = m(left, s);
    }
    const state_of<M> before = from_before(s, 1);
    return j == 0 ? m.identity() : before;
  }
  /// x of the thread d places before; unspecified ahead of the first.
  template <class T>
  constexpr T from_before(const T& x, int d) {
    if constexpr (Threads == block_threads) {
      constexpr int copies = sizeof(T) <= 32 ? 2 : 1;  // a block has no room for two of larger ones
      auto all = block_.template shared<of_each<T>, copies * block_threads>();
      if constexpr (copies == 1) block_barrier();
      told_ = 1 - told_;
      const int first = (copies - 1) * told_ * block_threads;
      all.set(first + rank(), {x});
      block_barrier();
      return rank() >= d ? all.get(first + rank() - d).value : x;
    } else {
      return block_.template shuffle_up<width>(x, d);
    }
  }

  /// The nodes of a Fenwick tree that end with this thread's place: every thread whose place 1, 2, ... is a multiple of
  /// 2^k joins the 2^k places up to its own. All threads hold something; places past the end may hold anything.
  template <class M>
  constexpr state_of<M> join_places(const M& m, state_of<M> s) {
    static_assert(Threads == block_threads);
    const int place = rank() + 1;
    for (int d = 1; d < width; d *= 2) {
      const state_of<M> left = block_.template shuffle_up<width>(s, d);
      if (place % (2 * d) == 0) s = m(left, s);
    }
    auto warps = turns<state_of<M>>();
    const bool is_last = place % warp_threads == 0;
    if (is_last && place < block_threads) warps.set(place, s);
    block_barrier();
    if (is_last && place == 64) s = m(warps.get(32), s);
    if (is_last && place == 128) {
      s = m(warps.get(96), s);
      s = m(m(warps.get(32), warps.get(64)), s);
    }
    return s;
  }

  /// The first thread's value, in every thread of the team.
  template <class T>
  constexpr T broadcast(T x) {
    if constexpr (Threads == block_threads) {
      auto place = block_.template shared<T, 2>();
      told_ = 1 - told_;
      if (rank() == 0) place.set(told_, x);
      block_barrier();
      return place.get(told_);
    } else {
      return block_.template broadcast<width>(x);
    }
  }

  /// Elements of one's own piece that are staged at once: about 128 bytes a thread, and as many loads in flight.
  template <class X>
  static constexpr int chunk = static_cast<int>(std::clamp<std::size_t>(std::bit_floor(128 / sizeof(X)), 1, steps));

  /// The same of elements and of what becomes of them, where the two have 18 KiB in all, or one place where they are of a
  /// type; 32 spill, since addresses of both sides are live.
  template <class X, class Y>
  static constexpr int together = [] {
    constexpr std::size_t bytes = block_threads * (std::is_same_v<X, Y> ? sizeof(X) : sizeof(X) + sizeof(Y));
    int c = std::min({chunk<X>, chunk<Y>, 16});
    while (c > 1 && static_cast<std::size_t>(c + 1) * bytes > 18 << 10) c /= 2;
    return c;
  }();

  /// put(i, f(i, x)) for the elements x = at(i) of the tile, f called in order by the thread whose piece it is: read and
  /// written together by neighbours, so x and the result may be the same place.
  template <class X, class Y, class At, class F, class Put>
  constexpr void map_pieces(int count, const At& at, const F& f, const Put& put) {
    constexpr int c = together<X, Y>;
    auto in = block_.template shared<X, block_threads*(c + 1)>();
    auto out = block_.template shared<Y, block_threads*(c + 1)>();
    const int first = block_.thread() / width * width;
    const int group = rank() / width * width;
    const int j = rank() - group;
    if (group * steps >= count) return;
    const auto place = [&](int piece, int i) { return (first + piece) * (c + 1) + i; };
    const auto each = [&](int begin, const auto& body) {  // body(place, position) for what this thread moves
      unrolled<c>([&](int k) {
        const int e = j + width * k;
        const int position = (group + e / c) * steps + begin + e % c;
        if (position < count) body(place(e / c, e % c), position);
      });
    };
    for (int begin = 0; begin < steps; begin += c) {
      settle();
      each(begin, [&](int to, int position) { in.set(to, at(position)); });
      block_.template group_barrier<width>();
      const int own = smaller(c, count - rank() * steps - begin);
      for (int i = 0; i < own; ++i) out.set(place(j, i), f(begin + i, in.get(place(j, i))));
      block_.template group_barrier<width>();
      each(begin, [&](int from, int position) { put(position, out.get(from)); });
      is_unsettled_ = false;  // whoever reads a place here is the one to write it next
    }
  }

  /// take(i, x) for the elements x = at(i), in order, of this thread's piece [steps rank, steps (rank + 1)) of `count`
  /// elements. The team reads neighbours together and turns them in shared memory, padded against bank conflicts.
  template <class X, class At, class Take>
  constexpr void each_of_piece(int count, const At& at, const Take& take) {
    constexpr int c = chunk<X>;
    auto stage = block_.template shared<X, block_threads*(c + 1)>();
    const int first = block_.thread() / width * width;  // thread and piece where this group begins
    const int group = rank() / width * width;
    const int j = rank() - group;
    if (group * steps >= count) return;
    const auto place = [&](int piece, int i) { return (first + piece) * (c + 1) + i; };
    for (int begin = 0; begin < steps; begin += c) {
      slots<X, c> x;
      unrolled<c>([&](int k) {  // clamped rather than absent, so that nothing waits for a branch
        const int e = j + width * k;
        x[k].value = at(smaller((group + e / c) * steps + begin + e % c, count - 1));
      });
      settle();
      unrolled<c>([&](int k) {
        const int e = j + width * k;
        stage.set(place(e / c, e % c), x[k].value);
      });
      block_.template group_barrier<width>();
      const int own = smaller(c, count - rank() * steps - begin);
      for (int i = 0; i < own; ++i) take(begin + i, stage.get(place(j, i)));
      is_unsettled_ = true;
    }
  }

 private:
  template <class T>
  struct of_each {  // an array of its own, apart from elements of T that are staged
    T value;
  };
  constexpr void block_barrier() {
    block_.barrier();
    is_unsettled_ = false;
  }
  /// Before staged memory is written again: a barrier, where none has come since it was last read.
  constexpr void settle() {
    if (is_unsettled_) block_.template group_barrier<width>();
    is_unsettled_ = false;
  }
  /// The buffer of this turn: a state for every thread past the first warp.
  template <class State>
  struct turned {
    decltype(std::declval<Block&>().template shared<State, 2 * (block_threads - warp_threads)>()) places;
    int offset;
    constexpr State get(int j) const { return places.get(offset + j); }
    constexpr void set(int j, const State& s) { places.set(offset + j, s); }
  };
  template <class State>
  constexpr turned<State> turns() {
    constexpr int size = block_threads - warp_threads;
    turn_ = 1 - turn_;
    return {block_.template shared<State, 2 * size>(), turn_ * size - warp_threads};
  }

  Block& block_;
  int turn_ = 0;
  int told_ = 0;
  bool is_unsettled_ = false;
};

/// body(team, row): the rows of a batch over the grid, a team of `Threads` each, which hold so many elements a thread.
template <int Threads, int Held = static_cast<int>(piece_elements), block Block, class Batch, class Body>
constexpr void each_row(Block& b, const Batch& rows, const Body& body) {
  constexpr int teams = block_threads / Threads;
  team<Threads, Block, Held> of(b);
  for (index row = b.block() * teams + b.thread() / Threads; row < rows.size(); row += b.blocks() * teams) {
    body(of, row);
  }
}
/// body(team, row, position): the nodes of `reach` elements of a batch's rows longer than `above` over the grid, a block
/// each. Where the list has gaps every thread looks at a slot, so that a block passes 128 of them in the time of one.
template <block Block, class Batch, class Body>
constexpr void each_node(Block& b, const Batch& rows, index reach, index above, const Body& body) {
  team<block_threads, Block> of(b);
  const index slots = rows.slots(reach, above);
  if constexpr (!Batch::has_gaps) {
    for (index slot = b.block(); slot < slots; slot += b.blocks()) {
      const auto [row, position] = rows.locate(slot, reach, above);
      body(of, row, position);
    }
  } else {
    auto found = b.template shared<node_place, block_threads>();
    for (index slot = b.block(); slot < slots; slot += b.blocks() * block_threads) {
      const node_place own = rows.locate(slot + b.blocks() * b.thread(), reach, above);
      if (!b.any(own.row >= 0)) continue;
      found.set(b.thread(), own);
      b.barrier();
      for (int i = 0; i < block_threads && slot + b.blocks() * i < slots; ++i) {
        const auto [row, position] = found.get(i);
        if (row >= 0) body(of, row, position);
      }
    }
  }
}

}  // namespace regroup::cuda

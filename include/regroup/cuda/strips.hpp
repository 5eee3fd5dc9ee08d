// SPDX-License-Identifier: Apache-2.0
// A row in strips: 1024 neighbouring elements, a quarter of a tile, in the registers of a warp. Thread t has elements 4 t
// to 4 t + 3 of every 128, which stand side by side in memory, and lanes 4 t to 4 t + 3 of the contract's tree
// (executor.hpp): one load brings four elements, of any size, and nothing is exchanged before the tree ends. The strips of
// a tile take turns at its lanes, each going on where the one before stopped; tiles do so at once. Where elements are
// absent they stand as -inf, weigh +0, and change no maximum and no sum of weights, which are none of them -0.
// Level: warp to cluster.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "regroup/algorithms/softmax_row.hpp"
#include "regroup/cuda/batch.hpp"
#include "regroup/cuda/block.hpp"

namespace regroup::cuda {

/// How many neighbouring elements a thread has at a time, and how often in a strip.
inline constexpr int quad_elements = static_cast<int>(lanes) / warp_threads;
inline constexpr int strip_steps = 8;
inline constexpr int strip_elements = strip_steps * static_cast<int>(lanes);
inline constexpr int strips_of_tile = static_cast<int>(tile_elements) / strip_elements;

/// Loaded and stored by one instruction, or by two for doubles.
template <class X>
struct alignas(sizeof(X) < 4 ? 4 * sizeof(X) : 16) [[gnu::may_alias]] quad {
  X at[quad_elements];
};
/// The quads of a row, or nullptr if it does not consist of aligned quads.
template <class X>
constexpr auto quads_of(const strided<X>& x) {
  using quads = std::conditional_t<std::is_const_v<X>, const quad<std::remove_const_t<X>>, quad<X>>;
  X* const first = x.contiguous();
  const bool is_made_of_quads = first != nullptr && x.count % quad_elements == 0 &&
                                reinterpret_cast<std::uintptr_t>(first) % alignof(quads) == 0;
  return is_made_of_quads ? reinterpret_cast<quads*>(first) : nullptr;
}

/// A strip of a row of `left` elements from the strip's first on, each as a Real: element(k, c) is the c-th of the k-th quad. A
/// block has so many warps.
template <int Warps, std::floating_point Real>
class held_strip {
 public:
  static constexpr Real absent = -std::numeric_limits<Real>::infinity();

  /// x seen, from `first` on; for all of a warp.
  template <block Block, class X>
  constexpr held_strip(Block& b, const strided<X>& x, index first, const softmax_parts::scaled<Real>& seen)
      : thread_(b.thread() % warp_threads),
        left_(static_cast<int>(first < x.size() ? smaller(x.size() - first, strip_elements) : 0)) {
    if (const auto* const quads = quads_of(x); quads != nullptr) {
      slots<quad<std::remove_const_t<X>>, strip_steps> read;
      const auto* const own = quads + (first / quad_elements + thread_);
      each_quad([&](int k) { read[k].value = own[k * warp_threads]; }, [](int) {});
      each_quad([&](int k) { each_of([&](int c) { element(k, c) = seen(read[k].value.at[c]); }); },
                [&](int k) { each_of([&](int c) { element(k, c) = absent; }); });
    } else {
      const auto* own = x.first + (first + thread_) * x.stride;  // one address after the other, so that few are live
      each([&](int k, int c) {
        element(k, c) = absent;
        if (neighbour(k, c) < left_) element(k, c) = seen(*own);
        own += warp_threads * x.stride;
      });
      each_step([&](int k) { transpose<true>(b, &element(k, 0)); });
    }
  }

  [[nodiscard]] constexpr const Real& element(int k, int c) const { return element_[k * quad_elements + c].value; }
  [[nodiscard]] constexpr Real& element(int k, int c) { return element_[k * quad_elements + c].value; }
  /// Calls body(k, c) for every element, including absent ones if other threads of the warp have theirs.
  template <class Body>
  constexpr void each(const Body& body) const {
    each_step([&](int k) { each_of([&](int c) { body(k, c); }); });
  }

  /// y[first + i] = f(element i), for elements that are present.
  template <class Block, class Y, class F>
  constexpr void write(Block& b, const strided<Y>& y, index first, const F& f) const {
    if (auto* const quads = quads_of(y); quads != nullptr) {
      auto* const own = quads + (first / quad_elements + thread_);
      each_quad([&](int k) {
        const Real mapped[] = {f(element(k, 0)), f(element(k, 1)), f(element(k, 2)), f(element(k, 3))};
        quad<Y>& place_of_quad = own[k * warp_threads];
        if constexpr (sizeof(Y) == 2) {  // two by one instruction
          const word_pair words{{b.template narrowed<Y>(mapped[0], mapped[1]), b.template narrowed<Y>(mapped[2], mapped[3])}};
          place_of_quad = std::bit_cast<quad<Y>>(words);
        } else {
          place_of_quad = {{static_cast<Y>(mapped[0]), static_cast<Y>(mapped[1]), static_cast<Y>(mapped[2]),
                            static_cast<Y>(mapped[3])}};
        }
      }, [](int) {});
    } else {
      auto* own = y.first + (first + thread_) * y.stride;
      each_step([&](int k) {
        Real mapped[] = {f(element(k, 0)), f(element(k, 1)), f(element(k, 2)), f(element(k, 3))};
        transpose<false>(b, mapped);
        each_of([&](int c) {
          if (neighbour(k, c) < left_) *own = static_cast<Y>(mapped[c]);
          own += warp_threads * y.stride;
        });
      });
    }
  }
  /// Whether write() has assigned place i of the strip to this thread.
  template <class Y>
  [[nodiscard]] constexpr bool has_written(const strided<Y>& y, index i) const {
    if (i < 0 || i >= left_) return false;
    const int at = static_cast<int>(i);
    return (quads_of(y) != nullptr ? at / quad_elements : at) % warp_threads == thread_;
  }

 private:
  [[nodiscard]] constexpr int place(int k) const { return k * static_cast<int>(lanes) + thread_ * quad_elements; }
  /// The c-th place of step k as the warp reads and writes neighbours, where they are not quads.
  [[nodiscard]] constexpr int neighbour(int k, int c) const {
    return k * static_cast<int>(lanes) + c * warp_threads + thread_;
  }
  /// From the places that a thread reads of a step to those that it holds, or back, by shared memory without bank conflicts.
  template <bool IsRead, block Block>
  constexpr void transpose(Block& b, Real* x) const {
    constexpr int padded = static_cast<int>(lanes) + quad_elements;
    auto stage = b.template shared<staged, Warps * padded>();
    const int own = b.thread() / warp_threads * padded;
    const auto is_at = [own](int i) { return own + i + i / warp_threads; };
    const auto read = [&](int c) { return is_at(c * warp_threads + thread_); };
    const auto held = [&](int c) { return is_at(thread_ * quad_elements + c); };
    each_of([&](int c) { stage.set(IsRead ? read(c) : held(c), {x[c]}); });
    b.template group_barrier<warp_threads>();
    each_of([&](int c) { x[c] = stage.get(IsRead ? held(c) : read(c)).value; });
    b.template group_barrier<warp_threads>();
  }
  /// body(k) for every step of which some of the warp has something.
  template <class Body>
  constexpr void each_step(const Body& body) const {
    if (left_ == strip_elements) {
      unrolled<strip_steps>(body);
    } else {
      unrolled<strip_steps>([&](int k) {
        if (k * static_cast<int>(lanes) < left_) body(k);
      });
    }
  }
  template <class Body>
  static constexpr void each_of(const Body& body) {
    unrolled<quad_elements>(body);
  }
  /// there(k) for quads that are there, without a question in a whole strip; or absent(k).
  template <class There, class Absent>
  constexpr void each_quad(const There& there, const Absent& absent) const {
    if (left_ == strip_elements) {
      unrolled<strip_steps>(there);
    } else {
      unrolled<strip_steps>([&](int k) {
        if (place(k) < left_) {
          there(k);
        } else {
          absent(k);
        }
      });
    }
  }

  struct staged {
    Real value;
  };
  struct alignas(8) word_pair {
    std::uint32_t words[2];
  };
  int thread_;
  int left_;
  slots<Real, strip_steps * quad_elements> element_;
};

/// Warps of a block whose rows have so many strips.
template <int Strips>
inline constexpr int warps_for = Strips == 1 ? block_threads / warp_threads : Strips;

/// The warps of a block that hold a row, a strip each: a power of two of them. One alone is apart from its block's others.
template <int Strips, block Block>
class strip_team {
 public:
  static constexpr int warps = warps_for<Strips>;
  static constexpr int tiles = (Strips + strips_of_tile - 1) / strips_of_tile;
  constexpr explicit strip_team(Block& b) : block_(b) {}

  [[nodiscard]] constexpr Block& block() const { return block_; }
  [[nodiscard]] constexpr int thread() const { return block_.thread() % warp_threads; }
  [[nodiscard]] constexpr int strip() const { return block_.thread() / warp_threads % Strips; }
  [[nodiscard]] constexpr int rank() const { return strip() * warp_threads + thread(); }
  /// Whether this thread broadcasts to the others.
  [[nodiscard]] constexpr bool leads() const { return rank() == 0; }
  /// Where this thread's strip begins in its row.
  [[nodiscard]] constexpr index first() const { return index{strip()} * strip_elements; }

  /// The fold of all threads' s by a monoid that gives the same bits in any order; in every thread.
  template <class M>
  constexpr state_of<M> extreme(const M& m, state_of<M> s) {
    s = joined<warp_threads>(m, s);
    if constexpr (Strips > 1) {
      auto strips = block_.template shared<of_strip<state_of<M>>, 2 * Strips>();
      turn_ = 1 - turn_;
      if (thread() == 0) strips.set(turn_ * Strips + strip(), {s});
      block_.barrier();
      s = joined<Strips>(m, strips.get(turn_ * Strips + thread() % Strips).state);
    }
    return s;
  }

  /// The fold of map(element) over the row, by a monoid that commutes bit for bit, in every thread.
  template <class M, class Held, class Map>
  constexpr state_of<M> fold(const M& m, const Held& held, const Map& map) {
    own_lanes<state_of<M>> lane{{m.identity(), m.identity(), m.identity(), m.identity()}};
    const auto go_on = [&] {
      held.each([&](int k, int c) { lane.at[c] = m(lane.at[c], regroup::lift(m, map(held.element(k, c)))); });
    };
    if constexpr (Strips == 1) {
      go_on();
      return halve(m, lane);
    } else {
      constexpr int turns = smaller(Strips, strips_of_tile);
      const int tile = strip() / strips_of_tile;
      const int own = strip() % strips_of_tile;
      auto passed = block_.template shared<own_lanes<state_of<M>>, tiles * warp_threads>();
      auto totals = block_.template shared<of_tile<state_of<M>>, tiles>();
      for (int turn = 0; turn < turns; ++turn) {
        if (turn == own) {
          if (turn > 0) lane = passed.get(tile * warp_threads + thread());
          go_on();
          if (turn + 1 < turns) {
            passed.set(tile * warp_threads + thread(), lane);
          } else {
            const state_of<M> s = halve(m, lane);
            if (thread() == 0) totals.set(tile, {s});
          }
        }
        block_.barrier();
      }
      return joined<tiles>(m, totals.get(thread() % tiles).state);
    }
  }

  /// f() of the first thread, in every thread of the team.
  template <class F>
  constexpr auto told_by_first(const F& f) {
    using told = std::invoke_result_t<const F&>;
    slot<told> x;
    if (leads()) x.value = f();
    if constexpr (Strips == 1) {
      return block_.template broadcast<warp_threads>(x).value;
    } else {
      auto place = block_.template shared<slot<told>, 1>();
      if (leads()) place.set(0, x);
      block_.barrier();
      return place.get(0).value;
    }
  }

  /// perfect() of what the threads 0 to Width - 1 of every group of so many have; in every thread.
  template <int Width, class M>
  constexpr state_of<M> joined(const M& m, state_of<M> s, int width = Width) {
    for (int d = 1; d < width; d *= 2) s = m(s, block_.template shuffle_xor<warp_threads>(s, d));
    return s;
  }

 private:
  template <class State>
  struct of_strip {  // arrays of their own
    State state;
  };
  template <class State>
  struct of_tile {
    State state;
  };
  template <class State>
  struct alignas(4 * sizeof(State) <= 16 ? 4 * sizeof(State) : 16) own_lanes {
    State at[quad_elements];
  };
  /// lane[j] = lane[j] lane[j + h] for h = L/2, ..., 1, in every thread. After the first steps a thread goes on with two
  /// lanes of its four, then with one.
  template <class M>
  constexpr state_of<M> halve(const M& m, const own_lanes<state_of<M>>& lane) {
    const auto other = [&](state_of<M> s, int d) { return block_.template shuffle_xor<warp_threads>(s, d); };
    const bool upper = (thread() & 16) != 0, odd = (thread() & 8) != 0;
    const auto at_64 = [&](int c) {  // of lanes c and c + 2
      return m(upper ? lane.at[c + 2] : lane.at[c], other(upper ? lane.at[c] : lane.at[c + 2], 16));
    };
    const state_of<M> even_lane = at_64(0), odd_lane = at_64(1);
    state_of<M> s = m(odd ? odd_lane : even_lane, other(odd ? even_lane : odd_lane, 8));
    unrolled<5>([&](int i) { s = m(s, other(s, 1 << (7 - i) % 5)); });  // h = 16, 8, 4, and then 2 and 1
    return s;
  }

  Block& block_;
  int turn_ = 0;
};

}  // namespace regroup::cuda

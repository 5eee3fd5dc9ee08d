// SPDX-License-Identifier: Apache-2.0
// One tile of elements, and the ways of reading it: in place, widened, mapped, or with its pieces transposed. What a load
// does in `meanwhile`, while a loop computes, only prefetches and never changes a result. Level: lane.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "regroup/executor.hpp"
#include "regroup/host/scalars.hpp"
#include "regroup/memory.hpp"

namespace regroup::host {

/// One tile of elements in position order; what `lift_tile` receives.
template <class Load>
class tile {
 public:
  constexpr tile(Load load, index size) : load_(std::move(load)), size_(size) {}
  [[nodiscard]] constexpr index size() const noexcept { return size_; }
  constexpr decltype(auto) operator[](index i) const { return load_(i); }
  /// Element `i` of piece `j`.
  constexpr decltype(auto) at(index i, index j) const {
    if constexpr (requires { load_.at(i, j); }) {
      return load_.at(i, j);
    } else {
      return load_(j * piece_elements + i);
    }
  }
  [[nodiscard]] constexpr const Load& load() const noexcept { return load_; }

  /// The leaf of another monoid over map(element): the same lanes, the same order.
  template <class M, class Map = std::identity>
  constexpr state_of<M> fold(const M& m, const Map& map = {}) const;

 private:
  Load load_;
  index size_;
};

/// Prefetches what comes next while M combines the `lanes` elements at `now`. Exact monoids mostly compare and select, as
/// fast as memory reads: for them lines are prefetched into the second-level cache so near ahead that the hardware continues
/// from there. Others take longer: their lines are prefetched twice, the second time into the first-level cache, so that no
/// combine waits. What is quick leaves this to the hardware. On a Zen 5 each line that is combined as fast as it is read, by
/// quick and exact monoids alike, is prefetched once, into the first-level cache.
template <class M, class X>
[[gnu::always_inline]] inline void ask_ahead(const X* now) {
  constexpr index near = 2048 / index{sizeof(X)};
  constexpr std::size_t bytes = lanes * sizeof(X);
  constexpr bool is_fast = is_quick<M> || is_exact<M>;
  if (is_fast && regroup::asks_first_cache()) return regroup::fetch_lines(now + 4 * near, bytes);
  regroup::fetch_lines<1>(now + (is_exact<M> ? near : tile_elements), bytes);
  if constexpr (!is_exact<M>) regroup::fetch_lines<1, 1>(now + near, bytes);
}

/// Reads contiguous elements; 16-bit floats are widened.
template <class X>
struct load_from {
  const X* first;
  constexpr decltype(auto) operator()(index i) const { return regroup::widen(first[i]); }
  template <class M>
  [[gnu::always_inline]] void meanwhile(index i) const {
    if constexpr (!is_quick<M>) {
      ask_ahead<M>(first + i);
    } else if constexpr (sizeof(X) >= 4) {  // (of smaller elements g++ makes no packs with a branch beside)
      if (regroup::asks_first_cache()) ask_ahead<M>(first + i);
    }
  }
};

/// Reads elements that have been widened; `first` is where they came from, for prefetching.
template <class X>
struct load_widened {
  const widened<X>* values;
  const X* first;
  constexpr widened<X> operator()(index i) const { return values[i]; }
};

/// Reads a source in place: states may refer to its elements, so they are not copied.
template <class Source>
struct load_of {
  const Source* source;
  index first;
  constexpr decltype(auto) operator()(index i) const { return (*source)[first + i]; }
};

/// Reads contiguous elements with their ascending positions, as `enumerate` numbers them.
template <class Numbering>
struct load_numbered {
  Numbering numbered;
  decltype(Numbering::values) first;
  explicit constexpr load_numbered(const Numbering& n) : numbered(n), first(n.values) {}
  constexpr auto operator()(index i) const { return numbered(i); }
  template <class M>
  [[gnu::always_inline]] void meanwhile(index i) const {
    ask_ahead<M>(first + i);
  }
};

/// The distance between words of the lanes of large elements: no power of two, which would put their lines into few cache sets.
inline constexpr index transposed_pitch = lanes + 8;

/// The lanes of element `i` of a tile whose pieces have been transposed word by word: word w of that element of piece j is at
/// [(i * Words + w) * Pitch + j].
template <class X, index Words, index Pitch = lanes>
class transposed_lanes {
  using element = std::remove_const_t<X>;
  using word = std::conditional_t<std::is_const_v<X>, const word_of<element, Words>, word_of<element, Words>>;

 public:
  transposed_lanes(X* transposed, index i) : first_(reinterpret_cast<word*>(transposed) + i * Words * Pitch) {}
  [[nodiscard]] element get(index j) const {
    if constexpr (Words == 1) {
      return first_[j];
    } else {
      return from_words<element>([&](index w) { return first_[w * Pitch + j]; });
    }
  }
  void set(index j, const element& x) const {
    if constexpr (Words == 1) {
      first_[j] = x;
    } else {
      to_words<word>(x, [&](index w, word value) { first_[w * Pitch + j] = value; });
    }
  }

 private:
  word* first_;
};

/// Reads such a tile.
template <class X, index Words, index Pitch = lanes>
struct load_transposed {
  const X* transposed;
  constexpr decltype(auto) at(index i, index j) const {
    if constexpr (Words == 1) {
      return regroup::widen(transposed[i * Pitch + j]);
    } else {
      return transposed_lanes<const X, Words, Pitch>(transposed, i).get(j);
    }
  }
};

template <class Load, class Map>
struct mapped {
  Load load;
  Map map;
  constexpr auto operator()(index i) const { return map(load(i)); }
  /// If the combine is quick, the map takes most of the time and memory can work ahead: by a whole tile, so that it also does
  /// so while something quicker sweeps the next tile first, which then finds it in the first-level cache if two tiles fit.
  template <class M>
  [[gnu::always_inline]] void meanwhile(index i) const {
    if constexpr (requires { *load.first; }) {
      if constexpr (is_quick<M>) {
        constexpr std::size_t bytes = lanes * sizeof(*load.first);
        regroup::fetch_lines<1>(load.first + 2 * tile_elements + i, bytes);
        if constexpr (sizeof(*load.first) <= 4) regroup::fetch_lines<1, 1>(load.first + tile_elements + i, bytes);
      } else {
        ask_ahead<M>(load.first + i);
      }
    }
  }
};

}  // namespace regroup::host

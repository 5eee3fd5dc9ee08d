// SPDX-License-Identifier: Apache-2.0
// Many rows across a vector: row k of a group in lane k of a pack, so that a short row costs little more than its elements,
// and the columns of a matrix are read as its memory lies. Every row keeps the contract's tree, hence its bits.
//   pack        the states of a group, member by member
//   leaf        one tile of every row at once, the loops of host/lanes.hpp with a pack for a state, or some packs: columns
//               that stand side by side are read a few lines at a time, which is what memory is good at
// Level: lane. Law: as host/lanes.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "regroup/executor.hpp"
#include "regroup/host/lanes.hpp"
#include "regroup/memory.hpp"

namespace regroup::host {

/// Rows in a group: floats in the widest register.
inline constexpr index abreast = 16;
template <class State>
using pack = columns<State, abreast>;

/// Groups of columns that are folded together: as many as 64 KiB hold the lanes of.
template <class State>
inline constexpr index groups_of_columns =
    std::clamp<index>((index{1} << 16) / (lanes * abreast * index{sizeof(State)}), 1, 8);

/// How many elements behind what is read next memory is asked for columns: their lines stand in as many pages.
inline constexpr index columns_ahead = 8;

/// A batch whose rows stand at one distance, at least some of them.
template <class Batch>
concept gridded = batch<Batch> && requires(const Batch& b) { b.grid_at(index{}, index{}); };

/// Whether lanes of a monoid's states are packs, those of each member of it too.
template <class M>
constexpr bool has_packs() {
  if constexpr (has_members<M>) {
    return []<class... Member>(std::type_identity<std::tuple<Member...>>) {
      return (has_packs<Member>() && ...);
    }(std::type_identity<std::remove_cvref_t<decltype(std::declval<const M&>().members())>>{});
  } else {
    return std::is_arithmetic_v<state_of<M>> || is_split<state_of<M>>();
  }
}
/// Whether rows of a batch may go abreast: elements are small and moved, lanes are packs, and those of a tile of a group fit
/// where a function has its arrays.
template <class M, batch Batch>
constexpr bool goes_abreast() {
  using element = element_of<std::remove_cvref_t<decltype(std::declval<const Batch&>()[0])>>;
  return gridded<Batch> && is_plain<state_of<M>, element> && is_movable<element> && sizeof(element) <= 32 &&
         sizeof(state_of<M>) <= 32 && has_packs<M>();
}
/// Rows that are swept at once, of inputs and outputs alike: `abreast`; or 1 where too few stand at one distance, or each
/// has its elements side by side and more of them than `longest`.
template <gridded In, gridded Out>
index group_rows(const In& in, const Out& out, index longest) {
  if (in.size() == 0) return 1;
  const auto x = in.grid_at(0, abreast);
  const auto y = out.grid_at(0, abreast);
  const bool lie_apart = x.stride != 1 || y.stride != 1;
  return std::min(x.rows, y.rows) >= abreast / 2 && x.length > 0 && (lie_apart || x.length <= longest) ? abreast : 1;
}
/// Whether rows of `length` elements are enough for an executor's threads when they go in groups, which are several times
/// quicker; short ones always are.
template <class Executor>
bool are_enough(const Executor& ex, index rows, index length) {
  return length <= lanes || 4 * rows >= abreast * concurrency_of(ex);
}

/// Whether a monoid folds element by element, each member of it too; a `lift_tile` wants the elements of one row.
template <class M, class X>
constexpr bool folds_elements() {
  if constexpr (has_members<M>) {
    return []<class... Member>(std::type_identity<std::tuple<Member...>>) {
      return (folds_elements<Member, X>() && ...);
    }(std::type_identity<std::remove_cvref_t<decltype(std::declval<const M&>().members())>>{});
  } else {
    return !has_lift_tile<M, tile<load_from<X>>>;
  }
}

// As in host/lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// The states of a tile of n >= 1 elements of every row of some groups: element i of row k is at(i, k). `meanwhile(i)`, as
/// they are read.
template <class M, class At, std::size_t Groups, class Meanwhile>
constexpr void leaf_abreast(const M& m, index n, const At& at, std::array<pack<state_of<M>>, Groups>& out,
                            const Meanwhile& meanwhile) {
  if constexpr (has_members<M>) {  // each member by its own rule
    with_members(m, [&](const auto&... member) {
      std::tuple<std::array<pack<state_of<std::remove_cvref_t<decltype(member)>>>, Groups>...> parts;
      [&]<std::size_t... K>(std::index_sequence<K...>) {
        (leaf_abreast(member, n, at, std::get<K>(parts), meanwhile), ...);
        for (std::size_t g = 0; g < Groups; ++g) {
          for (index k = 0; k < abreast; ++k) out[g].set(k, m.from_parts(std::get<K>(parts)[g].get(k)...));
        }
      }
      (std::index_sequence_for<decltype(member)...>{});
    });
  } else {
    std::array<std::array<pack<state_of<M>>, Groups>, lanes> lane;
    const auto each = [](const auto& body) {  // (group, row of it, row)
      for (std::size_t g = 0; g < Groups; ++g) {
        for (index k = 0; k < abreast; ++k) body(g, k, static_cast<index>(g) * abreast + k);
      }
    };
    const auto lift = [&](index j, index i) {
      auto& s = lane[static_cast<std::size_t>(j)];
      meanwhile(i);
      each([&](std::size_t g, index k, index row) { s[g].set(k, regroup::lift(m, at(i, row))); });
    };
    const auto add = [&](index j, index i, index folded) {
      auto& s = lane[static_cast<std::size_t>(j)];
      meanwhile(i);
      each([&](std::size_t g, index k, index row) { s[g].set(k, regroup::append(m, folded, s[g].get(k), at(i, row))); });
    };
    const auto combine = [&](index j, index left, index right) {
      const auto& a = lane[static_cast<std::size_t>(left)];
      const auto& b = lane[static_cast<std::size_t>(right)];
      auto& s = lane[static_cast<std::size_t>(j)];
      each([&](std::size_t g, index k, index) { s[g].set(k, m(a[g].get(k), b[g].get(k))); });
    };
    if constexpr (is_commutative<M>) {
      index count = std::min(n, lanes);
      for (index j = 0; j < count; ++j) lift(j, j);
      for (index i = count; i < n; i += lanes) {
        for (index j = 0; j < std::min(lanes, n - i); ++j) add(j, i + j, i / lanes);
      }
      while (count > 1) {
        const index half = static_cast<index>(std::bit_ceil(static_cast<std::uint64_t>(count))) / 2;
        for (index j = 0; j + half < count; ++j) combine(j, j, j + half);
        count = half;
      }
    } else {
      for (index j = 0; j < pieces_of(n); ++j) {
        lift(j, j * piece_elements);
        const index first = j * piece_elements;
        for (index i = 1; i < std::min(n - first, piece_elements); ++i) add(j, first + i, i);
      }
      for (index count = pieces_of(n); count > 1; count = (count + 1) / 2) {  // perfect(lanes)
        for (index j = 0; j < count / 2; ++j) combine(j, 2 * j, 2 * j + 1);
        if (count % 2 == 1) lane[static_cast<std::size_t>(count / 2)] = lane[static_cast<std::size_t>(count - 1)];
      }
    }
    out = lane[0];
  }
}

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

/// to[i * abreast + k] = element i of row k, for `abreast` rows: the last one several times where there are fewer.
template <class X>
void pack_rows(const grid<const X>& g, X* to) {
  if (g.pitch == 1 && g.rows == abreast) {
    for (index i = 0; i < g.length; ++i) std::copy_n(g.first + i * g.stride, abreast, to + i * abreast);
    return;
  }
  if (g.stride == 1) {
    turn(g.first, g.pitch, to, abreast, g.rows, g.length);
  } else {
    for (index i = 0; i < g.length; ++i) {
      for (index k = 0; k < g.rows; ++k) to[i * abreast + k] = g(i, k);
    }
  }
  if (g.rows == abreast) return;
  for (index i = 0; i < g.length; ++i) {
    X* const at = to + i * abreast;
    std::fill(at + g.rows, at + abreast, at[g.rows - 1]);
  }
}
/// And back.
template <class X>
void unpack_rows(const X* from, const grid<X>& g) {
  if (g.pitch == 1 && g.rows == abreast) {
    for (index i = 0; i < g.length; ++i) std::copy_n(from + i * abreast, abreast, g.first + i * g.stride);
  } else if (g.stride == 1) {
    turn(from, abreast, g.first, g.pitch, g.length, g.rows);
  } else {
    for (index i = 0; i < g.length; ++i) {
      for (index k = 0; k < g.rows; ++k) g(i, k) = from[i * abreast + k];
    }
  }
}

/// Memory that grows, of elements that nobody has set.
template <class X>
class scratch {
 public:
  X* of(index n) {
    if (n > size_) {
      values_ = std::make_unique_for_overwrite<X[]>(static_cast<std::size_t>(n));
      size_ = n;
    }
    return values_.get();
  }

 private:
  std::unique_ptr<X[]> values_;
  index size_ = 0;
};

/// The rows of a group side by side: where they are, if they are so, or copied.
template <class X>
grid<const X> beside(const grid<const X>& g, scratch<X>& room) {
  if (g.pitch == 1 && g.rows == abreast) return g;
  X* const copy = room.of(g.length * abreast);
  pack_rows(g, copy);
  return {copy, abreast, g.length, abreast, 1};
}

/// How far apart rows of their own begin, in elements: an odd number of lines, so none of 64 begins where another does in its
/// page of memory.
template <class X>
constexpr index step_apart(index length) {
  const index lines = (length * index{sizeof(X)} + index{cache_line} - 1) / index{cache_line};
  return (lines | 1) * index{cache_line} / index{sizeof(X)};
}
/// body(i, k) for the elements of a grid, those that are near in memory one after another.
template <class X, class Body>
void each_element(const grid<X>& g, const Body& body) {
  if (std::abs(g.stride) > std::abs(g.pitch)) {
    for (index i = 0; i < g.length; ++i) {
      for (index k = 0; k < g.rows; ++k) body(i, k);
    }
  } else {
    for (index k = 0; k < g.rows; ++k) {
      for (index i = 0; i < g.length; ++i) body(i, k);
    }
  }
}
/// to[k * step + i] = element i of row k.
template <class X>
void set_apart(const grid<const X>& g, X* to, index step) {
  if (g.pitch == 1) return turn(g.first, g.stride, to, step, g.length, g.rows);
  each_element(g, [&](index i, index k) { to[k * step + i] = g(i, k); });
}
/// And back.
template <class X>
void put_back(const X* from, index step, const grid<X>& g) {
  if (g.pitch != 1) return each_element(g, [&](index i, index k) { g(i, k) = from[k * step + i]; });
  constexpr index some = 16;  // elements of all rows, so that the lines they share are written one after another
  for (index i = 0; i < g.length; i += some) {
    turn(from + i, step, g.first + i * g.stride, g.stride, g.rows, std::min(some, g.length - i));
  }
}

/// Folds rows by groups.
template <class M, class X>
class group_fold {
  using state = state_of<M>;
  static constexpr bool by_elements = folds_elements<M, X>();
  static constexpr index most_groups = by_elements && !has_members<M> ? groups_of_columns<state> : 1;

 public:
  /// The longest row worth turning when its elements stand side by side: none where each is folded alone after all.
  static constexpr index longest = by_elements ? lanes : 0;
  /// Columns that are folded together.
  static constexpr index columns_together = most_groups * abreast;

  explicit group_fold(const M& m) : m_(m) {}

  /// sink(row, state) for the rows [first, last): in whole groups, and in others where a row alone is dear.
  template <gridded Batch, class Sink>
  void operator()(const Batch& b, index first, index last, const Sink& sink) {
    while (first < last) {
      grid<const X> g = b.grid_at(first, std::min(last - first, columns_together));
      const auto to = [&](index k, const state& s) { sink(first + k, s); };
      if (most_groups > 1 && g.rows == columns_together && g.pitch == 1) {
        fold<most_groups>(g, to);
      } else {
        g.rows = std::min(g.rows, abreast);
        if (g.rows == abreast || (g.stride != 1 && g.rows >= abreast / 2)) {
          fold<1>(g, to);
        } else {
          fold_rows(b, first, first + g.rows, m_, sink);
        }
      }
      first += g.rows;
    }
  }

 private:
  template <index Groups>
  using packs = std::array<pack<state>, static_cast<std::size_t>(Groups)>;

  /// sink(k, state) for every row k of a grid of some groups, or part of one, of at least one element.
  template <index Groups, class Sink>
  void fold(const grid<const X>& g, const Sink& sink) {
    packs<Groups> leaves;
    const auto leaf_of_row = [&](index k) { return leaves[static_cast<std::size_t>(k / abreast)].get(k % abreast); };
    if (g.length <= tile_elements) {
      fold_tile(g, leaves);
      for (index k = 0; k < g.rows; ++k) sink(k, leaf_of_row(k));
      return;
    }
    std::array<forest<state>, static_cast<std::size_t>(Groups * abreast)> nodes;
    for (index t = 0; t < tiles_of(g.length); ++t) {
      fold_tile(g.part(t * tile_elements, std::min(tile_elements, g.length - t * tile_elements)), leaves);
      for (index k = 0; k < g.rows; ++k) nodes[static_cast<std::size_t>(k)].push(m_, {0, t, leaf_of_row(k)});
    }
    for (index k = 0; k < g.rows; ++k) sink(k, *nodes[static_cast<std::size_t>(k)].value(m_));
  }
  template <std::size_t Groups>
  void fold_tile(const grid<const X>& g, std::array<pack<state>, Groups>& leaves) {
    if constexpr (by_elements) {
      const auto at = [from = Groups > 1 ? g : beside(g, copy_)](index i, index k) -> decltype(auto) {
        return widen(from.first[i * from.stride + k]);
      };
      const auto fetch = [&](index i) {
        if constexpr (Groups > 1) prefetch<1>(g.first + (i + columns_ahead) * g.stride, columns_together);
      };
      dispatch([&] { leaf_abreast(m_, g.length, at, leaves, fetch); });
    } else {
      const index step = step_apart<X>(g.length);
      X* const copy = copy_.of(abreast * step);
      set_apart(g, copy, step);
      for (index k = 0; k < g.rows; ++k) leaves[0].set(k, leaf_of(m_, copy + k * step, g.length));
    }
  }

  const M& m_;
  scratch<X> copy_;
};

}  // namespace regroup::host

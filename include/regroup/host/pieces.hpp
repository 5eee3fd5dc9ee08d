// SPDX-License-Identifier: Apache-2.0
// A tile's contiguous pieces, each of which is a lane, for monoids that do not commute: folded by squares on the way from
// memory, or after the tile is transposed in memory. host/lanes.hpp defines the lanes of a tile. Level: lane.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <type_traits>
#include <utility>

#include "regroup/executor.hpp"
#include "regroup/host/columns.hpp"
#include "regroup/host/squares.hpp"
#include "regroup/host/tile.hpp"
#include "regroup/host/transpose.hpp"
#include "regroup/memory.hpp"

namespace regroup::host {

// As in host/lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// The pieces that `n` elements touch; all but the last are whole.
constexpr index pieces_of(index n) noexcept { return (n + piece_elements - 1) / piece_elements; }

/// Calls body(count, rest) with the number of pieces of a tile and of elements of the last piece; constants for a whole tile.
template <class Body>
constexpr void with_pieces(index n, const Body& body) {
  if (n == tile_elements) {
    body(std::integral_constant<index, lanes>{}, std::integral_constant<index, piece_elements>{});
  } else {
    const index count = pieces_of(n);
    body(count, n - (count - 1) * piece_elements);
  }
}

/// Calls body(i, present) for the elements i of pieces from `first` on; the pieces below `present` have an element i.
template <class Count, class Body>
constexpr void for_steps(index first, const Count& count, index rest, const Body& body) {
  index i = first;
  for (; i < rest; ++i) body(i, count);
  for (; i < piece_elements && count > 1; ++i) body(i, count - 1);
}

/// lane[j] = left fold of piece j of a tile. Calls seen(i, present, lane) when the lanes below `present` hold the fold of
/// elements 0 to i.
template <class M, class Tile, class Seen>
constexpr void fold_pieces(const M& m, const Tile& t, columns<state_of<M>>& lane, const Seen& seen) {
  with_pieces(t.size(), [&](const auto count, const auto rest) {
    for (index j = 0; j < count; ++j) lane.set(j, regroup::lift(m, t.at(0, j)));
    seen(index{0}, count, lane);
    for_steps(1, count, rest, [&](index i, const auto present) {
      for (index j = 0; j < present; ++j) lane.set(j, regroup::append(m, i, lane.take(j), t.at(i, j)));
      seen(i, present, lane);
    });
  });
}

/// Whether elements can be copied as bytes into an array that is not initialised, or costs nothing but zeros.
template <class X>
inline constexpr bool is_movable =
    std::is_trivially_copyable_v<X> && std::is_copy_assignable_v<X> &&
    (std::is_trivially_default_constructible_v<X> || is_complex<X>());

/// The number of words of an element that is a state and can be taken apart; 1 for any other.
template <class X, class State>
inline constexpr index words_of_state = [] {
  if constexpr (std::is_same_v<X, State>) return words_of<X>();
  return index{1};
}();

/// The number of words of an element from which squares are made; 0 if squares are not worth it, or lanes of states are no
/// packs. The eight combines of a square's lanes depend on one another, so a long combine is better off with all lanes; quick
/// and exact combines are short, and elements of several words are as much work to transpose. (clang vectorises a square's
/// loops only if the combine is quick; others stay loops of one step each, with states in memory in between.)
template <class M, class X>
inline constexpr index words_in_squares = [] {
  using state = state_of<M>;
  constexpr index words = words_of_state<X, state>;
#if defined(__clang__)
  constexpr bool is_worth_it = is_quick<M> && words == 1;
#else
  constexpr bool is_worth_it = is_quick<M> || is_exact<M> || words > 1;
#endif
  if constexpr (is_worth_it && is_movable<X> && sizeof(X) <= 32 && has_squares<word_of<X, words>> && has_scalars<state>) {
    return words;
  }
  return index{0};
}();

template <class M, class X>
using word_in_squares = word_of<X, words_in_squares<M, X>>;

/// A few elements of as many pieces as a square has rows, in registers: by word, then by piece.
template <class Square, class X, index Words>
struct block {
  using word = word_of<X, Words>;
  static constexpr index side = Square::side, squares = Words / std::gcd(Words, side);
  static constexpr index elements = side * squares / Words;
  alignas(32) typename Square::rows x[static_cast<std::size_t>(squares)];

  /// Reads from the first of these elements of the first piece on.
  void load(const X* from) {
    for (index q = 0; q < squares; ++q)
      Square::load(reinterpret_cast<const word*>(from) + q * side, piece_elements * Words, x[q]);
  }
  void store(X* to) const {
    for (index q = 0; q < squares; ++q)
      Square::store(x[q], reinterpret_cast<word*>(to) + q * side, piece_elements * Words);
  }
  /// Element e of the pieces.
  [[nodiscard]] auto row(index e) { return transposed_lanes<X, Words, side>(reinterpret_cast<X*>(x), e); }

  /// Calls body(e, k) for element e of piece k. g++ unrolls so short a loop and then vectorises it only if the body is quick;
  /// otherwise it must stay a loop until it is vectorised.
  template <bool IsQuick, class Body>
  static constexpr void each(const Body& body) {
    const auto lanes_of = [&](const auto e) {
      if constexpr (IsQuick) {
        for (index k = 0; k < side; ++k) body(e, k);
      } else {
#if !defined(__clang__) && !defined(__CUDACC__)  // which has no squares, and would warn
#pragma GCC ivdep
#pragma GCC unroll 1
#endif
        for (index k = 0; k < side; ++k) body(e, k);
      }
    };
    [&]<index... E>(std::integer_sequence<index, E...>) { (lanes_of(std::integral_constant<index, E>{}), ...); }
    (std::make_integer_sequence<index, elements>{});
  }
};

/// lane[j] = left fold of piece j of n contiguous elements. Whole pieces go by squares, with meanwhile() after each; some are
/// folded twice to fill the last square; the rest goes element by element. The fold of a piece up to each element is written
/// to `within` unless that is null.
template <class Square, class M, class X, class Within, class Meanwhile>
constexpr void fold_squares(const M& m, const X* from, index n, columns<state_of<M>>& lane, const Within& within,
                            const Meanwhile& meanwhile) {
  constexpr bool keeps = !std::is_null_pointer_v<Within>;
  using elements = block<Square, X, words_in_squares<M, X>>;
  constexpr index side = elements::side;
  const index whole = n / piece_elements, in_squares = whole < side ? 0 : whole;
  for (index j = 0; j < in_squares; j += side) {
    const index piece = std::min(j, whole - side), first = piece * piece_elements;
    columns<state_of<M>, Square::side> folded;
    const auto fold = [&](index i, const auto begins) {
      elements x;
      x.load(from + first + i);
      elements::template each<is_quick<M>>([&](const auto e, index k) {
        const X next = x.row(e).get(k);
        const auto s = begins && e == 0 ? regroup::lift(m, next) : regroup::append(m, i + e, folded.get(k), next);
        folded.set(k, s);
        if constexpr (keeps) x.row(e).set(k, s);
      });
      if constexpr (keeps) x.store(within + first + i);
      for (index q = 0; q < elements::squares; ++q) meanwhile();
    };
    fold(0, std::true_type{});
    for (index i = elements::elements; i < piece_elements; i += elements::elements) fold(i, std::false_type{});
    for (index k = 0; k < side; ++k) lane.set(piece + k, folded.get(k));
  }
  for (index first = in_squares * piece_elements; first < n; first += piece_elements) {
    state_of<M> s = regroup::lift(m, from[first]);
    if constexpr (keeps) within[first] = s;
    for (index i = 1; i < std::min(piece_elements, n - first); ++i) {
      s = regroup::append(m, i, s, from[first + i]);
      if constexpr (keeps) within[first + i] = s;
    }
    lane.set(first / piece_elements, s);
  }
}

/// The number of 8-byte words of an element of 24 or 32 bytes; 1 for any other.
template <class X>
inline constexpr index long_words_of = [] {
  if constexpr (is_movable<X> && (sizeof(X) == 24 || sizeof(X) == 32)) {
    if (word_size<X, words_of<X>()> == 8) return words_of<X>();
  }
  return index{1};
}();

/// Calls body with the same tile, its pieces transposed if its elements can be copied as bytes and are small, or have members
/// of 8 bytes. Meanwhile the next tile is prefetched, because hardware does not foresee pieces.
template <class State, class X, class Body>
void with_transposed(const tile<load_from<X>>& t, traffic& memory, const Body& body) {
  constexpr bool is_small = sizeof(X) <= 16;
  constexpr index words = is_small ? words_of_state<X, State> : long_words_of<X>;
  if constexpr (is_movable<X> && (is_small || words > 1)) {
    constexpr index pitch = is_small ? lanes : transposed_pitch;
    alignas(64) std::array<X, static_cast<std::size_t>(pitch * piece_elements)> transposed;
    memory.fetch(t.load().first + t.size(), static_cast<std::size_t>(t.size()) * sizeof(X));
    transpose<words, pitch>(t.load().first, transposed.data(), t.size(), transposed_to::lanes, &memory);
    body(tile<load_transposed<X, words, pitch>>{{transposed.data()}, t.size()});
  } else {
    body(t);
  }
}
template <class State, class Tile, class Body>
void with_transposed(const Tile& t, traffic&, const Body& body) {
  body(t);
}

/// lane[j] = left fold of piece j of a tile.
template <class M, class Tile>
void fold_transposed(const M& m, const Tile& t, columns<state_of<M>>& lane) {
  traffic memory;
  with_transposed<state_of<M>>(t, memory, [&](const auto& transposed) {
    constexpr std::size_t lines = lanes * sizeof(t[0]) / cache_line / 2 + 1;  // transposing had the others, at most
    fold_pieces(m, transposed, lane, [&](auto&&...) { memory.step<lines>([](auto&&...) {}); });
  });
}
template <class M, class Tile>
void fold_lanes(const M& m, const Tile& t, columns<state_of<M>>& lane) {
  fold_transposed(m, t, lane);
}
template <class M, class X>
requires(words_in_squares<M, X> > 0)
void fold_lanes(const M& m, const tile<load_from<X>>& t, columns<state_of<M>>& lane) {
  using word = word_in_squares<M, X>;
  constexpr index few = 3 * piece_elements, square = 32 / index{sizeof(word)} * piece_elements;
  if (t.size() > few && t.size() < square) return fold_transposed(m, t, lane);  // pieces enough for a vector, not for a square
  dispatch_squares<word>([&]<class Square>(Square) {
    const auto* next = reinterpret_cast<const std::byte*>(t.load().first + t.size());
    fold_squares<Square>(m, t.load().first, t.size(), lane, nullptr, [&] {
      regroup::fetch_lines(next, sizeof(typename Square::rows));
      next += sizeof(typename Square::rows);
    });
  });
}

/// The state of one tile: its pieces, then perfect(lanes).
template <class M, class Tile>
constexpr state_of<M> pieces_leaf(const M& m, const Tile& t) {
  columns<state_of<M>> from;
  fold_lanes(m, t, from);
  for (index count = pieces_of(t.size()); count > 1; count = (count + 1) / 2) {
    columns<state_of<M>> to;
    for (index k = 0; k < count / 2; ++k) to.set(k, m(from.take(2 * k), from.take(2 * k + 1)));
    if (count % 2 == 1) to.set(count / 2, from.take(count - 1));
    from = std::move(to);
  }
  return from.take(0);
}

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

}  // namespace regroup::host

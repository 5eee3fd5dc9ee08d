// SPDX-License-Identifier: Apache-2.0
// The scan of one source, tile by tile, in the order of host/prefixes.hpp: the prefixes within pieces are computed, and then
// joined with what precedes the piece, by lanes or by squares, on the way from memory and back. Level: lane.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/host/carries.hpp"
#include "regroup/host/prefixes.hpp"
#include "regroup/host/squares.hpp"
#include "regroup/memory.hpp"

namespace regroup::host {

// As in lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// Calls put(j, value(j)) for the lanes, or elements, [0, count). They share no memory, which the compiler cannot see by
/// itself. State is a type that can be taken apart.
template <class State, class Count, class Value, class Put>
constexpr void for_lanes(const Count& count, const Value& value, const Put& put) {
  const index end = count;
#if defined(__clang__)  // its pragma for this also demands vectorisation, and warns where that is impossible
  using taken = std::remove_cvref_t<decltype(value(index{}))>;
  index j = 0;
  if constexpr (std::is_arithmetic_v<taken> || (std::is_same_v<taken, State> && is_split<State>())) {
    constexpr index some = lanes / 4;
    for (; j + some <= end; j += some) {
      columns<taken, some> apart;
      for (index k = 0; k < some; ++k) apart.set(k, value(j + k));
      for (index k = 0; k < some; ++k) put(j + k, apart.get(k));
    }
  }
  for (; j < end; ++j) put(j, value(j));
#else
#pragma GCC ivdep
  for (index j = 0; j < end; ++j) put(j, value(j));
#endif
}

/// fold_pieces that keeps the lanes of elements 0 to i in kept_at(i), which may be the memory of element i of the pieces.
template <class M, class Tile, class Kept, class Seen>
constexpr void keep_pieces(const M& m, const Tile& t, columns<state_of<M>>& lane, const Kept& kept_at,
                           const Seen& seen) {
  with_pieces(t.size(), [&](const auto count, const auto rest) {
    auto&& first = kept_at(0);
    for (index j = 0; j < count; ++j) first.set(j, regroup::lift(m, t.at(0, j)));
    seen();
    for_steps(1, count, rest, [&](index i, const auto present) {
      auto&& before = kept_at(i - 1);
      auto&& kept = kept_at(i);
      for_lanes<state_of<M>>(
          present, [&](index j) { return regroup::append(m, i, before.get(j), t.at(i, j)); },
          [&](index j, const auto& s) { kept.set(j, s); });
      seen();
    });
    auto&& whole = kept_at(piece_elements - 1);
    for (index j = 0; j < count - 1; ++j) lane.set(j, whole.get(j));
    lane.set(count - 1, kept_at(rest - 1).get(count - 1));
  });
}

/// to[k] = answer(before[j] within[k]) for the elements of every piece j; `to` may be `within`.
template <class M, class X, class Answer, class Meanwhile>
constexpr void join_pieces(const M& m, const columns<X>& before, const X* within, index n, X* to, const Answer& answer,
                           const Meanwhile& meanwhile) {
  for (index j = 0; j < pieces_of(n); ++j) {
    const index first = j * piece_elements, size = std::min(piece_elements, n - first);
    const X left = before.get(j);
    const auto join = [&](const auto count) {
      if constexpr (std::is_scalar_v<X>) {
        for_lanes<X>(
            count, [&](index i) { return answer(m(left, within[first + i])); }, [&](index i, X y) { to[first + i] = y; });
      } else {  // apart: of products of complex numbers as they lie, g++ 12 contracts the sums, whatever it is told
        columns<X, static_cast<std::size_t>(piece_elements)> joined;
        for_lanes<X>(
            count, [&](index i) { return answer(m(left, within[first + i])); }, [&](index i, const X& y) { joined.set(i, y); });
        for (index i = 0; i < count; ++i) to[first + i] = joined.get(i);
      }
    };
    if (size == piece_elements) {
      join(std::integral_constant<index, piece_elements>{});
    } else {
      join(size);
    }
    meanwhile();
  }
}

/// Whether elements, prefixes and answers are of one type that squares can hold: they then stay in registers while they are
/// transposed.
template <class M, class X, class Place>
inline constexpr bool scans_by_squares = words_in_squares<M, X> > 0 && std::is_same_v<X, state_of<M>> &&
                                         std::is_same_v<Place, state_of<M>>;

/// Scans tiles of sources one at a time, in two steps, `fold` and `put`, between which the carry arrives. All of a tile's
/// elements are read before any of its answers is written, so the answers may overwrite the source. Non-temporal stores write
/// a tile's answers while the next tile is computed; all are written after `finish`. `BySquares` is part of the type since it
/// decides what the class holds, and the files of one program may differ in it: a CUDA compiler's have no squares.
template <class M, class X, class Place, class Answer, bool BySquares = scans_by_squares<M, X, Place>>
class tile_scanner {
  using state = state_of<M>;
  static constexpr bool moves = is_plain<state, X> && is_movable<X> && is_movable<Place>;
  /// Whether the prefixes within pieces are kept from `fold` to `put`: if they are small, or can replace the elements.
  static constexpr bool keeps = moves && (sizeof(state) <= 8 || std::is_same_v<X, state>);
  static constexpr index words = words_of_state<X, state>;

 public:
  tile_scanner(const M& m, scan_kind kind, const Answer& answer, bool past_caches)
      : m_(m), shift_(kind == scan_kind::exclusive ? 1 : 0), answer_(answer), past_caches_(moves && past_caches) {
    if constexpr (moves) buffers_ = std::make_unique_for_overwrite<buffers>();
  }
  tile_scanner(const tile_scanner&) = delete;
  tile_scanner& operator=(const tile_scanner&) = delete;
  ~tile_scanner() {
    if (past_caches_) finish_past_caches();
  }

  /// What tile `number` passes to the tiles after it. Meanwhile the tile `ahead` tiles later is prefetched, or, if
  /// that is 0, what was asked of memory().
  template <source Source>
  tile_summary<state> fold(const Source& s, index number, index ahead) {
    first_ = number * tile_elements;
    step_ = static_cast<std::size_t>(std::max<index>(ahead, 1) * tile_elements);
    count_ = std::min(tile_elements, s.size() - first_);
    std::optional<tile_summary<state>> summary;
    if constexpr (moves) {
      const X* data = contiguous_from(s, first_);
      if (data != nullptr) {
        const std::size_t bytes = static_cast<std::size_t>(count_) * sizeof(X);
        if (ahead > 0) {
          memory_.fetch(data + ahead * tile_elements, bytes);
          regroup::find_pages_ahead(data, bytes, step_ * sizeof(X));
        }
      } else {
        if (copy_ == nullptr) copy_ = std::make_unique_for_overwrite<X[]>(static_cast<std::size_t>(tile_elements));
        host::copy_elements(s, first_, count_, copy_.get());
        data = copy_.get();
      }
      if constexpr (BySquares) {
        dispatch_squares<word_in_squares<M, X>>([&]<class Square>(Square) {
          // Not all lines of the memory traffic: joining has time for a fourth of them.
          constexpr std::size_t lines = std::max<std::size_t>(sizeof(typename Square::rows) / cache_line * 3 / 4, 1);
          traffic memory = memory_;  // in registers
          fold_squares<Square>(m_, data, count_, total_, answers(), [&] { memory.step<lines>(Square::copy_lines); });
          memory_ = memory;
          summary.emplace(prefix_pieces(m_, total_, pieces_of(count_)));
        });
      } else {
        dispatch([&] {
          transpose<words>(data, buffers_->elements.data(), count_, transposed_to::lanes, &memory_);
          const tile<load_transposed<X, words>> elements{{buffers_->elements.data()}, count_};
          const auto seen = [&](auto&&...) { step(); };
          if constexpr (keeps) {
            keep_pieces(
                m_, elements, total_, [&](index i) -> decltype(auto) { return kept_at(i); }, seen);
          } else {
            fold_pieces(m_, elements, total_, seen);
          }
          summary.emplace(prefix_pieces(m_, total_, pieces_of(count_)));
        });
      }
    } else {
      host::with_tile(s, first_, count_, [&](const auto& elements) { fold_pieces(m_, elements, total_, [](auto&&...) {}); });
      summary.emplace(prefix_pieces(m_, total_, pieces_of(count_)));
    }
    return *std::move(summary);
  }

  /// Writes the answers of that tile to their places in `out`.
  template <source Source, class Out>
  void put(const Source& s, const tile_carry<state>& in, const Out& out) {
    if constexpr (moves) {
      put_moved(in, out);
    } else {
      const auto before = before_pieces(m_, in.carry, total_, pieces_of(count_));
      std::vector<std::optional<Place>> answers(static_cast<std::size_t>(count_ + 1));
      if (shift_ == 1) answers[0] = preceding(in);
      host::with_tile(s, first_, count_, [&](const auto& elements) {
        columns<state> within;
        fold_pieces(m_, elements, within, [&](index i, index present, const columns<state>& lane) {
          for (index j = 0; j < present; ++j) {
            answers[static_cast<std::size_t>(j * piece_elements + i + shift_)].emplace(
                answer_(m_(before.get(j), lane.get(j))));
          }
        });
      });
      for (index k = 0; k < count_; ++k) out[first_ + k] = *std::move(answers[static_cast<std::size_t>(k)]);
    }
  }

  /// Both, where the carry is known.
  template <source Source, class Out>
  tile_summary<state> scan(const Source& s, index number, const tile_carry<state>& in, const Out& out) {
    auto summary = fold(s, number, 1);
    put(s, in, out);
    return summary;
  }

  void finish() {
    if (!past_caches_) return;
    memory_.finish();
    finish_past_caches();
  }
  /// The traffic beside the computation, for a caller that copies tiles here and has its own to fetch and write.
  traffic& memory() { return memory_; }

 private:
  /// Whether answers, lane by lane, and prefixes overwrite elements that are no longer needed: a first-level cache is small.
  static constexpr bool shares = keeps && std::is_same_v<X, Place>;
  static constexpr bool keeps_in_place = keeps && std::is_same_v<X, state>;
  struct buffers {
    alignas(64) std::array<X, BySquares ? 0 : tile_elements> elements;              // transposed
    std::array<columns<state>, keeps && !keeps_in_place ? piece_elements : 0> kept;  // the prefixes within pieces
    alignas(64) std::array<Place, shares ? 0 : tile_elements> transposed;                // the answers, lane by lane
    alignas(64) std::array<Place, tile_elements + cache_line> answers[2];  // of this tile, and of the one before
  };
  /// The prefixes that end with element i of the pieces; they may be in the memory of that element.
  [[nodiscard]] decltype(auto) kept_at(index i) {
    if constexpr (keeps_in_place) {
      return transposed_lanes<state, words>(buffers_->elements.data(), i);
    } else {
      return (buffers_->kept[static_cast<std::size_t>(i)]);
    }
  }
  [[nodiscard]] Place* answers_by_lanes() {
    if constexpr (shares) {
      return buffers_->elements.data();
    } else {
      return buffers_->transposed.data();
    }
  }
  /// Of this tile, where none is being written; there is room before them for `preceding`.
  [[nodiscard]] Place* answers() { return buffers_->answers[1 - written_].data() + cache_line; }
  [[nodiscard]] Place preceding(const tile_carry<state>& in) const {
    return answer_(in.preceding ? *in.preceding : m_.identity());
  }
  /// The memory traffic while all lanes combine or are transposed: prefetches the next tile and writes the one before.
  void step() {
    for (int line = 0; line < (is_quick<M> ? 1 : 2); ++line) memory_.step(copy_lines_past_caches);
  }

  template <class Out>
  void put_moved(const tile_carry<state>& in, const Out& out) {
    Place* const answers = this->answers();
    Place* const place = contiguous_from(out, first_);
    Place* const to = place != nullptr && shift_ == 0 && !past_caches_ ? place : answers;
    if (shift_ == 1) answers[-1] = preceding(in);
    if constexpr (BySquares) {
      dispatch_squares<word_in_squares<M, X>>([&]<class Square>(Square) {
        const auto before = before_pieces(m_, in.carry, total_, pieces_of(count_));
        traffic memory = memory_;
        join_pieces(m_, before, answers, count_, to, answer_,
                    [&] { memory.step<sizeof(X) / 4>(Square::copy_lines); });  // the lines that are left
        memory_ = memory;
      });
    } else {
      put_transposed(in, to);
    }
    const Place* const from = answers - shift_;
    const auto bytes = static_cast<std::size_t>(count_) * sizeof(Place);
    if (place == nullptr) {
      for (index k = 0; k < count_; ++k) out[first_ + k] = from[k];
    } else if (past_caches_) {
      memory_.write(from, place, bytes);
      find_written_pages_ahead(place, bytes, step_ * sizeof(Place));
      written_ = 1 - written_;
    } else if (to != place) {
      std::memcpy(place, from, bytes);
    }
  }

  /// The answers by lanes, then transposed.
  void put_transposed(const tile_carry<state>& in, Place* to) {
    dispatch([&] {
      const auto before = before_pieces(m_, in.carry, total_, pieces_of(count_));
      Place* const transposed = answers_by_lanes();
      const auto answer_lanes = [&](index i, index present, const auto& lane) {
        const transposed_lanes<Place, words_of_state<Place, state>> row(transposed, i);
        if constexpr (!is_quick<M> && has_lower<M>) {  // two short chains of instructions, not one long
          columns<state> joined;
          for (index j = 0; j < present; ++j) joined.set(j, m_(before.get(j), lane.get(j)));
          for (index j = 0; j < present; ++j) row.set(j, answer_(joined.get(j)));
        } else {
          for_lanes<state>(
              present, [&](index j) { return answer_(m_(before.get(j), lane.get(j))); },
              [&](index j, const auto& y) { row.set(j, y); });
        }
        step();
      };
      if constexpr (keeps) {
        with_pieces(count_, [&](const auto count, const auto rest) {
          for_steps(0, count, rest, [&](index i, const auto present) { answer_lanes(i, present, kept_at(i)); });
        });
      } else {
        columns<state> within;
        fold_pieces(m_, tile<load_transposed<X, words>>{{buffers_->elements.data()}, count_}, within, answer_lanes);
      }
      transpose<words_of_state<Place, state>>(transposed, to, count_, transposed_to::pieces, &memory_);
    });
  }

  const M& m_;
  index shift_;
  const Answer& answer_;
  bool past_caches_;
  index first_ = 0;
  index count_ = 0;
  std::size_t step_ = 1;  // to this thread's next tile
  columns<state> total_;  // P of the tile
  std::unique_ptr<buffers> buffers_;
  std::unique_ptr<X[]> copy_;  // of a tile that is not contiguous
  traffic memory_;
  int written_ = 0;  // which of the answers
};

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

/// All prefixes of one source after the tiles in `chain`, on one thread. The last tile is added to `chain` if the scan goes on
/// from there.
template <class Scanner, class M, class Source, class Out>
void scan_source(Scanner& scan, carry_chain<M>& chain, const Source& s, const Out& out, bool goes_on) {
  const index tiles = tiles_of(s.size());
  for (index t = 0; t < tiles; ++t) {
    auto summary = scan.scan(s, t, chain.next(), out);
    if (t + 1 < tiles || goes_on) chain.push(std::move(summary));
  }
}
template <class Scanner, class M, class Source, class Out>
void scan_source(Scanner& scan, const M& m, const Source& s, const Out& out) {
  carry_chain<M> chain(m);
  scan_source(scan, chain, s, out, false);
}

}  // namespace regroup::host

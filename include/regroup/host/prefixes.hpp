// SPDX-License-Identifier: Apache-2.0
// The prefixes of one tile, given the carry into it. Lanes are contiguous pieces for every monoid:
//   P = lane totals, then P[j] = P[j - d] P[j] for d = 1, 2, ..., L/2 (Kogge and Stone 1973)
//   y = (carry P[j - 1]) (prefix within the piece);  carry of tile t = perfect(totals of the tiles before it)
// so the first k results are the scan of the first k elements, bitwise. Level: lane.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "regroup/host/carries.hpp"
#include "regroup/host/lanes.hpp"
#include "regroup/memory.hpp"

namespace regroup::host {

// As in lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// Lane j of `lane` becomes P[j].
template <class M>
constexpr void prefix_lanes(const M& m, columns<state_of<M>>& lane, index count) {
  [&]<index... Level>(std::integer_sequence<index, Level...>) {
    const auto step = [&](const auto d) {
      if (d >= count) return;
      columns<state_of<M>> next;
      for (index j = 0; j < d; ++j) next.set(j, lane.get(j));
      for (index j = d; j < count; ++j) next.set(j, m(lane.get(j - d), lane.get(j)));
      lane = std::move(next);
    };
    (step(std::integral_constant<index, index{1} << Level>{}), ...);
  }(std::make_integer_sequence<index, std::countr_zero(static_cast<std::uint64_t>(lanes))>{});
}

/// fold_pieces, whose lanes of elements 0 to i stay in kept_at(i), which may be where element i of the pieces was.
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
      for (index j = 0; j < present; ++j) kept.set(j, regroup::append(m, i, before.get(j), t.at(i, j)));
      seen();
    });
    auto&& whole = kept_at(piece_elements - 1);
    for (index j = 0; j < count - 1; ++j) lane.set(j, whole.get(j));
    lane.set(count - 1, kept_at(rest - 1).get(count - 1));
  });
}

/// lane[j], the fold of piece j, becomes P[j]; what later tiles ask for.
template <class M>
constexpr tile_summary<state_of<M>> prefix_pieces(const M& m, columns<state_of<M>>& lane, index count) {
  const state_of<M> last = lane.get(count - 1);
  prefix_lanes(m, lane, count);
  if (count == 1) return {lane.get(0), std::nullopt, last};
  return {lane.get(count - 1), lane.get(count - 2), last};
}

/// before[j] = carry P[j - 1]: what precedes piece j. Lane 0 has the carry alone.
template <class M>
constexpr columns<state_of<M>> before_pieces(const M& m, const std::optional<state_of<M>>& carry,
                                             const columns<state_of<M>>& total, index count) {
  columns<state_of<M>> before;
  if (carry) {
    const state_of<M> first = *carry;
    before.set(0, first);
    for (index j = 1; j < count; ++j) before.set(j, m(first, total.get(j - 1)));
  } else {
    before.set(0, m.identity());
    for (index j = 1; j < count; ++j) before.set(j, total.get(j - 1));
  }
  return before;
}

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

/// States of the lanes side by side in memory, which it does not own.
template <class State>
struct lanes_of {
  State* first;
  [[nodiscard]] State get(index j) const noexcept { return first[j]; }
  void set(index j, State s) const noexcept { first[j] = s; }
};

/// Scans tiles of sources one at a time, in two steps between which the carry arrives: `fold`, then `put`. All of a tile's
/// elements are read before any of its answers is put, so the answers may go over the source. Answers that go past the
/// caches are written while the next tile is computed, and are all there after `finish`.
template <class M, class X, class Place, class Answer>
class tile_scanner {
  using state = state_of<M>;
  static constexpr bool moves = is_plain<state, X> && is_movable<X> && is_movable<Place>;
  /// Whether the prefixes within pieces are kept from `fold` to `put`: where they are small.
  static constexpr bool keeps = moves && sizeof(state) <= 8;

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

  /// What tile `number` tells the tiles after it. Memory brings the tile `ahead` of it meanwhile.
  template <source Source>
  tile_summary<state> fold(const Source& s, index number, index ahead) {
    first_ = number * tile_elements;
    count_ = std::min(tile_elements, s.size() - first_);
    std::optional<tile_summary<state>> summary;
    if constexpr (moves) {
      buffers& b = *buffers_;
      const X* const data = contiguous_elements(s);
      if (data != nullptr) memory_.fetch(data + ahead * tile_elements, static_cast<std::size_t>(count_) * sizeof(X));
      if (data == nullptr) {
        for (index k = 0; k < count_; ++k) {
          b.elements[static_cast<std::size_t>(k % piece_elements * lanes + k / piece_elements)] = s[first_ + k];
        }
      }
      dispatch([&] {
        if (data != nullptr) turn(data, b.elements.data(), count_, turning_to::lanes, &memory_);
        const tile<load_turned<X>> elements{{b.elements.data()}, count_};
        const auto seen = [&](auto&&...) { step(); };
        if constexpr (keeps) {
          keep_pieces(m_, elements, total_, [&](index i) -> decltype(auto) { return kept_at(i); }, seen);
        } else {
          fold_pieces(m_, elements, total_, seen);
        }
        summary.emplace(prefix_pieces(m_, total_, pieces_of(count_)));
      });
    } else {
      with_tile(s, first_, count_, [&](const auto& elements) { fold_pieces(m_, elements, total_, [](auto&&...) {}); });
      summary.emplace(prefix_pieces(m_, total_, pieces_of(count_)));
    }
    return *std::move(summary);
  }

  /// The answers of that tile, to their places in `out`.
  template <source Source, class Out>
  void put(const Source& s, const tile_carry<state>& in, const Out& out) {
    if constexpr (moves) {
      put_moved(in, out);
    } else {
      const auto before = before_pieces(m_, in.carry, total_, pieces_of(count_));
      std::vector<std::optional<Place>> answers(static_cast<std::size_t>(count_ + 1));
      if (shift_ == 1) answers[0] = preceding(in);
      with_tile(s, first_, count_, [&](const auto& elements) {
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

  void finish() {
    if (!past_caches_) return;
    memory_.finish();
    finish_past_caches();
  }

 private:
  /// Whether answers, lane by lane, and prefixes take the place of elements that nobody needs any more: a first cache is
  /// small.
  static constexpr bool shares = keeps && std::is_same_v<X, Place>;
  static constexpr bool keeps_in_place = keeps && std::is_same_v<X, state>;
  struct buffers {
    alignas(64) std::array<X, tile_elements> elements;                     // turned
    std::array<columns<state>, keeps && !keeps_in_place ? piece_elements : 0> kept;  // the prefixes within pieces
    alignas(64) std::array<Place, shares ? 0 : tile_elements> turned;      // the answers, lane by lane
    alignas(64) std::array<Place, tile_elements + cache_line> answers[2];  // of this tile, and of the one before
  };
  /// The prefixes that end with element i of the pieces, which may stand where that element did.
  [[nodiscard]] decltype(auto) kept_at(index i) {
    if constexpr (keeps_in_place) {
      return lanes_of<state>{buffers_->elements.data() + i * lanes};
    } else {
      return (buffers_->kept[static_cast<std::size_t>(i)]);
    }
  }
  [[nodiscard]] Place* answers_by_lanes() {
    if constexpr (shares) {
      return buffers_->elements.data();
    } else {
      return buffers_->turned.data();
    }
  }
  [[nodiscard]] Place preceding(const tile_carry<state>& in) const {
    return answer_(in.preceding ? *in.preceding : m_.identity());
  }
  template <source Source>
  [[nodiscard]] auto contiguous_elements(const Source& s) const {
    if constexpr (requires { s.contiguous(); }) {
      const auto data = s.contiguous();
      return data == nullptr ? data : data + first_;
    } else {
      return nullptr;
    }
  }
  /// What memory does while all lanes combine, as while they are turned: it brings the next tile and writes the one before.
  void step() {
    for (int line = 0; line < (takes_time<M> ? 2 : 1); ++line) memory_.step(copy_lines_past_caches);
  }

  template <class Out>
  void put_moved(const tile_carry<state>& in, const Out& out) {
    buffers& b = *buffers_;
    Place* const answers = b.answers[1 - written_].data() + cache_line;  // there is room before it for `preceding`
    Place* const place = contiguous_elements(out);
    Place* const to = place != nullptr && shift_ == 0 && !past_caches_ ? place : answers;
    if (shift_ == 1) answers[-1] = preceding(in);
    dispatch([&] {
      const auto before = before_pieces(m_, in.carry, total_, pieces_of(count_));
      Place* const turned = answers_by_lanes();
      const auto answer_lanes = [&](index i, index present, const auto& lane) {
        Place* const row = turned + i * lanes;
        for (index j = 0; j < present; ++j) row[j] = answer_(m_(before.get(j), lane.get(j)));
        step();
      };
      if constexpr (keeps) {
        with_pieces(count_, [&](const auto count, const auto rest) {
          for_steps(0, count, rest, [&](index i, const auto present) {
            answer_lanes(i, present, kept_at(i));
          });
        });
      } else {
        columns<state> within;
        fold_pieces(m_, tile<load_turned<X>>{{b.elements.data()}, count_}, within, answer_lanes);
      }
      turn(turned, to, count_, turning_to::pieces, &memory_);
    });
    const Place* const from = answers - shift_;
    const auto bytes = static_cast<std::size_t>(count_) * sizeof(Place);
    if (place == nullptr) {
      for (index k = 0; k < count_; ++k) out[first_ + k] = from[k];
    } else if (past_caches_) {
      memory_.write(from, place, bytes);
      written_ = 1 - written_;
    } else if (to != place) {
      std::memcpy(place, from, bytes);
    }
  }

  const M& m_;
  index shift_;
  const Answer& answer_;
  bool past_caches_;
  index first_ = 0;
  index count_ = 0;
  columns<state> total_;  // P of the tile
  std::unique_ptr<buffers> buffers_;
  traffic memory_;
  int written_ = 0;  // which of the answers
};

/// All prefixes of one source, on one thread.
template <class Scanner, class M, source Source, class Out>
void scan_source(Scanner& scan, const M& m, const Source& s, const Out& out) {
  carry_chain<M> chain(m);
  const index tiles = tiles_of(s.size());
  for (index t = 0; t < tiles; ++t) {
    auto summary = scan.fold(s, t, 1);
    scan.put(s, chain.next(), out);
    if (t + 1 < tiles) chain.push(std::move(summary));
  }
}

}  // namespace regroup::host

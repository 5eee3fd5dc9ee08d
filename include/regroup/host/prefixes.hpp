// SPDX-License-Identifier: Apache-2.0
// The prefixes of one tile, and the carry from tile to tile. Lanes are contiguous pieces for every monoid:
//   P = lane totals, then P[j] = P[j - d] P[j] for d = 1, 2, ..., L/2 (Kogge and Stone 1973)
//   y = (carry P[j - 1]) (prefix within the piece);  carry of tile t = perfect(totals of the tiles before it)
// so the first k results are the scan of the first k elements, bitwise. Level: lane.
#pragma once

#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "regroup/host/lanes.hpp"

namespace regroup::host {

/// What a full tile tells the tiles after it: its total, and its last prefix in the two parts that a carry joins.
template <class State>
struct tile_summary {
  State total;                  // P[L - 1]
  std::optional<State> before;  // P[L - 2]
  State last;                   // the fold of the last piece
};

/// What a tile needs of the tiles before it. Absent for the first.
template <class State>
struct tile_carry {
  std::optional<State> carry;      // perfect(totals)
  std::optional<State> preceding;  // the inclusive result just before the tile
};

template <class M>
state_of<M> joined(const M& m, const std::optional<state_of<M>>& left, const state_of<M>& right) {
  return left ? m(*left, right) : right;
}

// An empty optional is copied here, whose value g++ believes to be read.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// Walks the tiles of a source in order; the totals so far are a binary counter.
template <class M>
class carry_chain {
 public:
  explicit carry_chain(const M& m) : m_(&m) {}
  /// The carry into the next tile.
  [[nodiscard]] const tile_carry<state_of<M>>& next() const noexcept { return next_; }
  /// Counts that tile in.
  void push(tile_summary<state_of<M>> summary) {
    std::optional<state_of<M>> base = next_.carry;
    if (summary.before) base = joined(*m_, base, *summary.before);
    next_.preceding = joined(*m_, base, summary.last);
    totals_.push(*m_, {0, tiles_++, std::move(summary.total)});
    next_.carry = totals_.value(*m_);
  }

 private:
  const M* m_;
  forest<state_of<M>> totals_;
  tile_carry<state_of<M>> next_;
  index tiles_ = 0;
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

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

/// lane[j] = P[j]; what later tiles ask for.
template <class M, class Tile>
constexpr tile_summary<state_of<M>> prefix_pieces(const M& m, const Tile& t, columns<state_of<M>>& lane) {
  const index count = pieces_of(t.size());
  fold_pieces(m, t, lane);
  const state_of<M> last = lane.get(count - 1);
  prefix_lanes(m, lane, count);
  if (count == 1) return {lane.get(0), std::nullopt, last};
  return {lane.get(count - 1), lane.get(count - 2), last};
}

/// put(i, j, state) for every element i of every piece j: the state of all positions up to and with it.
template <class M, class Tile, class Put>
constexpr tile_summary<state_of<M>> prefixes(const M& m, const Tile& t, const std::optional<state_of<M>>& carry,
                                             const Put& put) {
  columns<state_of<M>> total;
  auto summary = prefix_pieces(m, t, total);
  with_pieces(t.size(), [&](const auto count, const auto rest) {
    columns<state_of<M>> before;  // carry P[j - 1] for lane j >= 1; lane 0 has the carry alone
    before.set(0, carry ? *carry : m.identity());
    for (index j = 1; j < count; ++j) before.set(j, carry ? m(*carry, total.get(j - 1)) : total.get(j - 1));
    columns<state_of<M>> within;
    for (index j = 0; j < count; ++j) within.set(j, regroup::lift(m, t.at(0, j)));
    for (index i = 0; i < piece_elements; ++i) {
      if constexpr (requires { t.load().meanwhile(i); }) t.load().meanwhile(i);
      const index present = i < rest ? index{count} : count - 1;
      for (index j = 0; i > 0 && j < present; ++j) within.set(j, m(within.get(j), regroup::lift(m, t.at(i, j))));
      for (index j = 0; j < present; ++j) put(i, j, m(before.get(j), within.get(j)));
    }
  });
  return summary;
}

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

/// Scans tiles of a source one at a time: put(position, answers) with answer(state) of every prefix, in order. All of a
/// tile's elements are read before any answer is put, so the answers may go over the source.
template <class M, class X, class Answer>
class tile_scanner {
  using state = state_of<M>;
  using result = std::remove_cvref_t<std::invoke_result_t<const Answer&, const state&>>;
  static constexpr bool moves = is_plain<state, X> && is_movable<X> && is_movable<result>;

 public:
  tile_scanner(const M& m, scan_kind kind, const Answer& answer) : m_(m), kind_(kind), answer_(answer) {
    if constexpr (moves) buffers_ = std::make_unique_for_overwrite<buffers>();
  }

  template <source Source, class Put>
  tile_summary<state> operator()(const Source& s, index number, const tile_carry<state>& in, const Put& put) {
    const index first = number * tile_elements;
    const index n = std::min(tile_elements, s.size() - first);
    const index shift = kind_ == scan_kind::exclusive ? 1 : 0;
    const auto preceding = [&] { return answer_(in.preceding ? *in.preceding : m_.identity()); };
    std::optional<tile_summary<state>> summary;
    if constexpr (moves) {
      buffers& b = *buffers_;
      if (shift == 1) b.answers[0] = preceding();
      const X* data = nullptr;
      if constexpr (requires { s.contiguous(); }) {
        if (s.contiguous() != nullptr) data = s.contiguous() + first;
      }
      if (data == nullptr) {
        for (index k = 0; k < n; ++k) {
          b.elements[static_cast<std::size_t>(k % piece_elements * lanes + k / piece_elements)] = s[first + k];
        }
      }
      dispatch([&] {
        if (data != nullptr) turn_pieces(data, b.elements.data(), n, turning_to::lanes);
        summary.emplace(prefixes(m_, tile<load_turned<X>>{{b.elements.data(), data}, n}, in.carry,
                                 [&](index i, index j, const state& prefix) {
                                   b.turned[static_cast<std::size_t>(i * lanes + j)] = answer_(prefix);
                                 }));
        turn_pieces(b.turned.data(), b.answers.data() + shift, n, turning_to::pieces);
      });
      put(first, std::span<const result>(b.answers.data(), static_cast<std::size_t>(n)));
    } else {
      std::vector<std::optional<result>> answers(static_cast<std::size_t>(n + 1));
      if (shift == 1) answers[0] = preceding();
      with_tile(s, first, n, [&](const auto& elements) {
        summary.emplace(prefixes(m_, elements, in.carry, [&](index i, index j, const state& prefix) {
          answers[static_cast<std::size_t>(j * piece_elements + i + shift)].emplace(answer_(prefix));
        }));
      });
      for (index k = 0; k < n; ++k) put(first + k, std::span<const result>(&*answers[static_cast<std::size_t>(k)], 1));
    }
    return *std::move(summary);
  }

 private:
  struct buffers {
    alignas(64) std::array<X, tile_elements> elements;     // turned
    alignas(64) std::array<result, tile_elements> turned;  // the answers, lane by lane
    alignas(64) std::array<result, tile_elements + 1> answers;
  };
  const M& m_;
  scan_kind kind_;
  const Answer& answer_;
  std::unique_ptr<buffers> buffers_;
};

/// The summaries of the tiles [first, last) of a source.
template <class M, source Source>
auto summarise_tiles(const M& m, const Source& s, index first, index last) {
  using element = element_of<Source>;
  std::vector<tile_summary<state_of<M>>> summaries;
  for (index t = first; t < last; ++t) {
    const index n = std::min(tile_elements, s.size() - t * tile_elements);
    with_tile(s, t * tile_elements, n, [&](const auto& elements) {
      std::optional<tile_summary<state_of<M>>> summary;
      run<is_plain<state_of<M>, element>>([&] {
        with_turned(elements, [&](const auto& turned) {
          columns<state_of<M>> lane;
          summary.emplace(prefix_pieces(m, turned, lane));
        });
      });
      summaries.push_back(*std::move(summary));
    });
  }
  return summaries;
}

/// All prefixes of one source, on one thread.
template <class Scanner, class M, source Source, class Put>
void scan_source(Scanner& scan, const M& m, const Source& s, const Put& put) {
  carry_chain<M> chain(m);
  for (index t = 0; t < tiles_of(s.size()); ++t) chain.push(scan(s, t, chain.next(), put));
}

}  // namespace regroup::host

// SPDX-License-Identifier: Apache-2.0
// Scans of few elements, one after another: to set a tile apart in lanes would cost more than all its combines. The same
// operations as tile_scanner.hpp's, and so the same bits. Level: element.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "regroup/executor.hpp"
#include "regroup/host/dispatch.hpp"

namespace regroup::host {

// As in lanes.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::always_inline]], apply_to = function)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// Of how many elements at most: three pieces, of which no monoid that was tried, quick or slow, is faster in lanes.
inline constexpr index few_to_scan = 3 * piece_elements;

/// out[k] = answer(state) of the first k + 1 of n elements, or of the first k: exclusive. No element is read after its own
/// answer is written. n is at most `few_to_scan`: prefixes of so few pieces are those of a chain.
template <class M, source Source, class Out, class Answer>
constexpr void scan_few(const M& m, const Source& s, const Out& out, scan_kind kind, const Answer& answer) {
  using state = state_of<M>;
  const index n = s.size();
  if (n == 0) return;
  std::optional<place_of<Out>> held;
  if (kind == scan_kind::exclusive) held.emplace(answer(m.identity()));
  state before = m.identity();
  for (index first = 0; first < n; first += piece_elements) {
    const index size = std::min(piece_elements, n - first);
    std::optional<state> piece;
    for (index i = 0; i < size; ++i) {
      const index k = first + i;
      if (i == 0) {
        piece.emplace(regroup::lift(m, regroup::widen(s[k])));
      } else {
        piece.emplace(regroup::append(m, i, *std::move(piece), regroup::widen(s[k])));
      }
      if (kind == scan_kind::exclusive) {
        place_of<Out> now = *std::move(held);
        held.emplace(answer(m(before, *piece)));
        out[k] = std::move(now);
      } else {
        out[k] = answer(m(before, *piece));
      }
    }
    if (first + piece_elements < n) before = first == 0 ? *std::move(piece) : m(before, *piece);
  }
}

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#endif

}  // namespace regroup::host

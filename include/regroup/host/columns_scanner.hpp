// SPDX-License-Identifier: Apache-2.0
// The scan down the columns of a narrow matrix, tile by tile: a tile of every column is set apart, scanned like a tile of a
// range (host/tile_scanner.hpp), and put back, so that memory is read once and in its own order. Level: lane.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/host/abreast.hpp"
#include "regroup/host/beside.hpp"
#include "regroup/host/tile_scanner.hpp"

namespace regroup::host {

/// The matrices of a batch whose rows are their columns, so many in each.
template <class Batch>
struct matrices {
  const Batch& batch;
  index columns;

  using grid_type = decltype(std::declval<const Batch&>().grid_at(index{}, index{}));
  struct matrix : grid_type {
    [[nodiscard]] index size() const noexcept { return this->length; }
  };
  [[nodiscard]] index size() const { return batch.size() / columns; }
  matrix operator[](index i) const { return {batch.grid_at(i * columns, columns)}; }
};
template <class Batch>
matrices(const Batch&, index) -> matrices<Batch>;

/// A monoid whose states are rows of states, one for each column; each is combined with its own column's.
template <class M>
struct row_of {
  const M& m;
  index columns;

  using state = std::vector<state_of<M>>;
  [[nodiscard]] state identity() const { return state(static_cast<std::size_t>(columns), m.identity()); }
  state operator()(const state& a, const state& b) const {
    state both;
    both.reserve(a.size());
    for (std::size_t k = 0; k < a.size(); ++k) both.push_back(m(a[k], b[k]));
    return both;
  }
};

/// Whether the columns of matrices can be set apart: elements and answers can be copied as bytes.
template <class Batch, class Out>
inline constexpr bool scans_columns = false;
template <gridded Batch, gridded Out>
inline constexpr bool scans_columns<Batch, Out> = is_movable<element_in<Batch>> && is_movable<place_of<source_in<Out>>>;

/// The columns of the matrices that both batches have, if a tile of each is worth setting apart; else 0. They are fewer than a
/// group, or groups of them fewer than workers, who can share out tiles instead; a tile of them all fits the second-level
/// cache; and a column is long enough (Zen 4): where combines are long, eight columns and more are faster abreast up to 512
/// elements.
template <class M, gridded Batch, gridded Out>
index columns_to_set_apart(const Batch& b, const Out& out, index workers) {
  if (b.size() == 0) return 0;
  const auto x = b.grid_at(0, b.size());
  const auto y = out.grid_at(0, b.size());
  constexpr index most_bytes = 128, most = most_bytes / static_cast<index>(std::max(sizeof(*x.first), sizeof(*y.first)));
  const index columns = x.rows, length = x.length;
  const bool are_columns = x.pitch == 1 && y.pitch == 1 && x.stride != 1 && y.stride != 1 && y.rows == columns;
  if (!are_columns || columns <= 1 || columns > most) return 0;
  const index shortest = is_quick<M> || columns < abreast / 2 ? lanes : 4 * lanes;
  if (columns < abreast) return length >= shortest ? columns : 0;
  const index fewest = is_quick<M> ? 3 : 2;  // of quick combines one thread does as many side by side as two of columns apart
  return workers >= fewest && b.size() < abreast * workers && tiles_of(length) >= workers ? columns : 0;
}

/// A tile_scanner for all columns of a matrix.
template <class M, class X, class Place, class Answer>
class columns_scanner {
  using row = std::vector<state_of<M>>;

 public:
  columns_scanner(const row_of<M>& m, scan_kind kind, const Answer& answer, bool past_caches)
      : m_(m.m), kind_(kind), answer_(answer), past_caches_(past_caches) {}
  columns_scanner(const columns_scanner&) = delete;
  columns_scanner& operator=(const columns_scanner&) = delete;
  ~columns_scanner() {
    if (past_caches_) finish_past_caches();
  }

  tile_summary<row> fold(const grid<const X>& g, index number, index ahead) {
    begin(g, number, ahead);
    tile_summary<row> all;
    for (index k = 0; k < tile_.rows; ++k) fold_column(scanner(k), k, all);
    return all;
  }
  void put(const grid<const X>&, const tile_carry<row>& in, const grid<Place>& out) {
    for (index k = 0; k < tile_.rows; ++k) put_column(scanner(k), k, in);
    end(out);
  }
  tile_summary<row> scan(const grid<const X>& g, index number, const tile_carry<row>& in, const grid<Place>& out) {
    begin(g, number, 1);
    tile_summary<row> all;
    for (index k = 0; k < tile_.rows; ++k) {
      fold_column(scanner(0), k, all);
      put_column(scanner(0), k, in);
    }
    end(out);
    return all;
  }
  void finish() {
    if (!past_caches_) return;
    for (index k = 0; written_.length > 0; ++k) write(scanner(0).memory(), k);
    for (auto& one : columns_) one.memory().finish();
    finish_past_caches();
  }

 private:
  using one_column = tile_scanner<M, X, Place, Answer>;
  static constexpr bool in_place = std::is_same_v<X, Place>;

  one_column& scanner(index k) {
    while (std::ssize(columns_) <= k) columns_.emplace_back(m_, kind_, answer_, false);
    return columns_[static_cast<std::size_t>(k)];
  }
  [[nodiscard]] strided<X> elements(index k) {
    return {elements_.of(0) + k * step_apart<X>(tile_.length), tile_.length, 1};
  }
  [[nodiscard]] strided<Place> answers(index k) {
    if constexpr (in_place) {
      return elements(k);
    } else {
      return {answers_.of(0) + k * step_apart<Place>(tile_.length), tile_.length, 1};
    }
  }

  void begin(const grid<const X>& g, index number, index ahead) {
    first_ = number * tile_elements;
    tile_ = g.part(first_, std::min(tile_elements, g.length - first_));
    ahead_ = std::max(ahead * tile_elements * g.stride, index{0});
    const index step = step_apart<X>(tile_.length);
    host::set_apart(tile_, elements_.of(g.rows * step), step);
    if constexpr (!in_place) answers_.of(g.rows * step_apart<Place>(tile_.length));
    if (g.stride > 0) regroup::find_pages_ahead(tile_.first, share(g.rows) * sizeof(X));
  }
  /// Of the tile's elements, as they lie in memory, those of the first k columns when each has equally many.
  [[nodiscard]] std::size_t share(index k) const {
    return static_cast<std::size_t>(tile_.length * tile_.stride * k / tile_.rows);
  }
  void fold_column(one_column& one, index k, tile_summary<row>& all) {
    if (written_.length > 0) write(one.memory(), k);
    if (ahead_ > 0) one.memory().fetch(tile_.first + ahead_ + share(k), (share(k + 1) - share(k)) * sizeof(X));
    auto own = one.fold(elements(k), 0, 0);
    all.total.push_back(std::move(own.total));
    if (own.before) (all.before ? *all.before : all.before.emplace()).push_back(*std::move(own.before));
    all.last.push_back(std::move(own.last));
  }
  void put_column(one_column& one, index k, const tile_carry<row>& in) {
    using state = state_of<M>;
    const auto own = [k](const std::optional<row>& all) -> std::optional<state> {
      if (!all) return std::nullopt;
      return std::optional<state>(std::in_place, (*all)[static_cast<std::size_t>(k)]);
    };
    one.put(elements(k), tile_carry<state>{own(in.carry), own(in.preceding)}, answers(k));
  }
  void end(const grid<Place>& out) {
    const grid<Place> to = out.part(first_, tile_.length);
    Place* const from = answers(0).first;
    const index step = step_apart<Place>(tile_.length);
    if (!past_caches_ || to.stride != to.rows) return host::put_back(from, step, to);
    for (auto& one : columns_) one.memory().finish();
    constexpr index line = index{cache_line} / index{sizeof(Place)};
    Place* const room = together_.of(to.rows * tile_elements + line);
    in_order_ = {room + bytes_to_line(room) / sizeof(Place), to.rows, to.length, to.stride, 1};
    host::put_back(from, step, in_order_);
    written_ = to;
  }
  /// Begins to write the k-th share of the last answers.
  void write(traffic& memory, index k) {
    const index first = written_.length * k, last = first + written_.length;
    memory.write(in_order_.first + first, written_.first + first, static_cast<std::size_t>(last - first) * sizeof(Place));
    if (k + 1 == written_.rows) written_.length = 0;
  }

  const M& m_;
  scan_kind kind_;
  const Answer& answer_;
  bool past_caches_;
  std::deque<one_column> columns_;  // one, or one each
  index first_ = 0, ahead_ = 0;
  grid<const X> tile_;
  scratch<X> elements_;      // apart
  scratch<Place> answers_;   // apart, where they are of another type
  scratch<Place> together_;  // the last answers, in the order of memory
  grid<Place> in_order_;     // there
  grid<Place> written_;      // and where they go; of length 0 when they are written
};

}  // namespace regroup::host

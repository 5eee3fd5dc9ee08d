// SPDX-License-Identifier: Apache-2.0
// The tiles of a source, one after another, to a forest or a state; and short sources, many at a time. Level: tile.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "regroup/executor.hpp"
#include "regroup/host/lanes.hpp"
#include "regroup/host/ragged.hpp"
#include "regroup/host/short_leaf.hpp"
#include "regroup/memory.hpp"

namespace regroup::host {

/// Calls body(tile) with tile t of a source, or of a whole of which the source is what follows position `begin`.
template <source Source, class Body>
void with_tile_of(const Source& s, index t, index begin, const Body& body) {
  const index at = t * tile_elements - begin;
  host::with_tile(s, at, std::min(tile_elements, s.size() - at), body);
}

/// Whether tiles are folded together, by `lift_tiles`.
template <class M, class X>
inline constexpr bool lifts_tiles = [] {
  using some = tile<load_from<X>>;
  static_assert(has_lift_tiles<M, some> || !requires(M& any, const probe::tiles<some>& each) { any.lift_tiles(each); },
                "regroup: `lift_tiles` is const, stands beside a `lift_tile`, and belongs to a monoid that declares itself "
                "exact; nothing would call this one");
  return has_lift_tiles<M, some>;
}();

/// The state of the tiles [first, last), at least one, folded together.
template <class M, source Source>
state_of<M> fold_together(const M& m, const Source& s, index first, index last, index begin) {
  return m.lift_tiles([&](const auto& body) {
    for (index t = first; t < last; ++t) {
      host::with_tile_of(s, t, begin, [&](const auto& elements) {
        run<std::is_trivially_copyable_v<element_of<Source>>>([&] { host::with_widened(elements, body); });
      });
    }
  });
}

/// The forest of the tiles [first, last) of a source, or of a whole of which the source is what follows position `begin`.
template <class M, source Source>
forest<state_of<M>> fold_tiles(const M& m, const Source& s, index first, index last, index begin = 0) {
  forest<state_of<M>> nodes;
  for (index t = first; t < last;) {
    const int level = lifts_tiles<M, element_of<Source>> ? level_of_node(t, last) : 0;
    const index next = t + (index{1} << level);
    if constexpr (lifts_tiles<M, element_of<Source>>) {
      nodes.push(m, {level, t >> level, host::fold_together(m, s, t, next, begin)});
    } else {
      host::with_tile_of(s, t, begin, [&](const auto& elements) { nodes.push(m, {level, t, host::leaf_of(m, elements)}); });
    }
    t = next;
  }
  return nodes;
}

/// The state of a whole source: reduce.
template <class M, source Source>
state_of<M> fold_source(const M& m, const Source& s) {
  const index n = s.size();
  if (n == 0) return m.identity();
  if constexpr (lifts_tiles<M, element_of<Source>>) {
    return host::fold_together(m, s, 0, tiles_of(n), 0);
  } else {
    if (n > tile_elements) return *host::fold_tiles(m, s, 0, tiles_of(n)).value(m);
    std::optional<state_of<M>> state;
    host::with_tile(s, 0, n, [&](const auto& elements) { state.emplace(host::leaf_of(m, elements)); });
    return *std::move(state);
  }
}

/// Whether the sources of a batch may have different lengths, as segments have.
template <class Batch>
inline constexpr bool is_ragged = requires(const Batch& b) { b.before(index{}); };

/// Whether the elements of some sources of a batch are a source too, one after another, as segments' are: unless each of them
/// numbers its own.
template <class Batch, class Row>
inline constexpr bool follow_each_other = [] {
  if constexpr (requires { Row::is_numbered; }) return !Row::is_numbered && is_ragged<Batch>;
  return is_ragged<Batch>;
}();

/// Some rows of a batch, up to `lanes` of at most a tile each, as stretches of elements: where they lie, or copied.
template <class X>
class short_rows {
 public:
  [[nodiscard]] const stretch<X>* data() const noexcept { return rows_.data(); }
  /// Takes rows from `first` on, at most `most`; element i of a row is that of row elements(row). Returns how many: none if the
  /// first is too long, or must not be copied.
  template <class Batch, class Elements>
  index take(const Batch& b, index first, index most, const Elements& elements) {
    using source = std::remove_cvref_t<decltype(elements(b[first]))>;
    index n = 0, copied = 0;
    for (; n < most; ++n) {
      const auto row = elements(b[first + n]);
      const index size = row.size();
      const X* data = regroup::contiguous(row);
      if (size > tile_elements) break;
      if (data != nullptr || size == 0) {
        regroup::find_pages_ahead(data, static_cast<std::size_t>(size) * sizeof(X));
      } else if constexpr (is_movable<X>) {
        if (copied + size > tile_elements) break;
        data = room() + copied;
        copied += size;
      } else {
        break;
      }
      set(n, data, size);
    }
    if (copied == 0) return n;
    X* to = room();
    run<makes_elements<source>>([&] {
      for (index k = 0; k < n; ++k) {
        if (rows_[static_cast<std::size_t>(k)].first != to || rows_[static_cast<std::size_t>(k)].size == 0) continue;
        const auto row = elements(b[first + k]);
        host::copy_here(row, 0, row.size(), to);
        to += row.size();
      }
    });
    return n;
  }
  /// The same of rows whose elements follow each other.
  template <class Batch, class Elements>
  index take_joined(const Batch& b, index first, index most, const Elements& elements) {
    const index begin = b.before(first);
    const X* const here = regroup::contiguous(elements(b.joined(first, first + most)));
    const X* const data = here != nullptr ? here : room();
    index n = 0, end = begin;
    for (; n < most; ++n) {
      const index next = b.before(first + n + 1), size = next - end;
      if (size > tile_elements || (here == nullptr && next - begin > tile_elements)) break;
      set(n, data + (end - begin), size);
      end = next;
    }
    if (here != nullptr) {
      regroup::find_pages_ahead(here, static_cast<std::size_t>(end - begin) * sizeof(X));
    } else if (end > begin) {
      host::copy_elements(elements(b.joined(first, first + n)), 0, end - begin, room());
    }
    return n;
  }

 private:
  void set(index k, const X* first, index size) { rows_[static_cast<std::size_t>(k)] = {first, size}; }
  X* room() {
    if (copies_ == nullptr) copies_ = std::make_unique_for_overwrite<X[]>(static_cast<std::size_t>(tile_elements));
    return copies_.get();
  }
  std::array<stretch<X>, lanes> rows_;
  std::unique_ptr<X[]> copies_;
};

/// fold_rows, where element i of a row is that of row elements(row), as load(its address) reads it.
template <class Batch, class M, class Sink, class Elements, class Load>
void fold_short_rows(const Batch& b, index first, index last, const M& m, const Sink& sink, const Elements& elements,
                     const Load& load) {
  using source = std::remove_cvref_t<decltype(elements(b[first]))>;
  using element = element_of<source>;
  constexpr bool are_joined = follow_each_other<Batch, source> && is_movable<element>;
  constexpr bool as_they_lie_here = std::is_same_v<Load, as_they_lie>;
  short_rows<element> rows;
  columns<state_of<M>> states;
  while (first < last) {
    index n = std::min(last - first, lanes);
    if constexpr (are_joined) {
      n = rows.take_joined(b, first, n, elements);
    } else {
      n = rows.take(b, first, n, elements);
    }
    if (n > 0) {
      if constexpr (as_they_lie_here && goes_short<M, element>()) {
        host::fold_short(m, rows.data(), n, are_joined || host::are_adjacent(rows.data(), n), states);
      } else if constexpr (as_they_lie_here && is_ragged<Batch> && goes_ragged<M, element>()) {
        host::fold_ragged(m, rows.data(), n, states);
      } else {
        host::fold_leaves(m, rows.data(), n, states, load);
      }
      host::sink_some(sink, first, n, [&](index k) { return states.get(k); });
    } else {
      sink(first, host::fold_source(m, b[first]));
      n = 1;
    }
    first += n;
  }
}

/// Calls sink(row, state) for the sources [first, last) of a batch. Short sources of plain states that own no memory share
/// dispatched calls, also of the sink; those that are not contiguous are copied first.
template <batch Batch, class M, class Sink>
void fold_rows(const Batch& b, index first, index last, const M& m, const Sink& sink) {
  using source = source_in<Batch>;
  if (first >= last) return;
  if constexpr (is_plain<state_of<M>, element_of<source>> && std::is_trivially_copyable_v<source>) {
    if constexpr (can_be_numbered<source>) {
      const auto as_numbered = [some = b[first]](const auto* x) { return load_numbered(some.projection.of(x, 0)); };
      fold_short_rows(b, first, last, m, sink, [](const source& s) { return s.source; }, as_numbered);
    } else {
      fold_short_rows(b, first, last, m, sink, std::identity{}, as_they_lie{});
    }
  } else {
    for (index row = first; row < last; ++row) sink(row, host::fold_source(m, b[row]));
  }
}

}  // namespace regroup::host

// SPDX-License-Identifier: Apache-2.0
// Everything a CPU executor does, on threads of any kind: a class that derives from `threads<Self>` and provides
//     int concurrency() const;                     how many calls may run at once
//     void bulk(index n, const auto& f) const;     f(0), ..., f(n - 1), each once, on any threads; returns when all are done
// folds and scans in the contract's order. Workers fold aligned intervals of tiles and hand up forests, or scan tiles and
// hand on carries, in the caller's floating-point environment, so any threads give the same bits. Small inputs stay on the
// calling thread. All such executors work through `pool`, so a verb is compiled once for all of them. Level: thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <exception>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "regroup/executor.hpp"
#include "regroup/host/abreast.hpp"
#include "regroup/host/float_environment.hpp"
#include "regroup/host/lanes.hpp"
#include "regroup/host/prefixes_abreast.hpp"
#include "regroup/host/through.hpp"
#include "regroup/host/tile_scanner.hpp"

namespace regroup::host {

/// Less work than this stays on the calling thread: several times the cost of waking a worker.
inline constexpr index grain_tiles = 4;
inline constexpr double grain_nanoseconds = 10000.0;
/// Parts of fewer than 2^small_level tiles are small: handing one out takes a third of a microsecond, as folding a tile of sums
/// may. There are no more than `few_parts` of them for each worker.
inline constexpr int small_level = 4;
inline constexpr index few_parts = 4;
/// What a fold by M leaves to the calling thread, in tiles, and the least that it hands out.
template <class M>
inline constexpr index grain_of = is_quick<M> ? index{1} << small_level : grain_tiles;
/// How often a worker polls for a carry before it takes another tile.
inline constexpr int most_asked = 2000;
/// Among several sources, only those of more than 2^turns_level tiles are scanned by all threads together.
inline constexpr int turns_level = 4;

/// A pause for a thread that polls.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// What `bulk` calls: a reference to a function of an index.
class task {
 public:
  template <class Body>
  task(const Body& body) noexcept  // NOLINT: implicit on purpose
      : body_(&body), call_([](const void* f, index i) { (*static_cast<const Body*>(f))(i); }) {}
  void operator()(index i) const { call_(body_, i); }

 private:
  const void* body_;
  void (*call_)(const void*, index);
};

/// An executor on the threads of another, which it does not own.
class pool {
 public:
  template <class Owner>
  explicit pool(const Owner& owner)
      : owner_(&owner),
        bulk_([](const void* who, index n, const task& f) { static_cast<const Owner*>(who)->bulk(n, f); }),
        concurrency_(owner.concurrency()) {}

  [[nodiscard]] int concurrency() const noexcept { return concurrency_; }

  /// Calls sink(row, state) with the state of every source of a batch.
  template <batch Batch, class M, class Sink>
  void fold(const Batch& b, const M& m, const Sink& sink) const {
    using groups = group_fold<M, element_of<std::remove_cvref_t<decltype(b[0])>>>;
    index group = 1, narrow = 0;
    if constexpr (goes_abreast<M, Batch>()) {
      narrow = groups::narrow_columns(b);
      if (narrow > 0 && b.size() / narrow * tiles_of(b[0].size()) < concurrency_) narrow = 0;  // too few to share out
      group = narrow > 0 ? narrow : group_of(b, b, groups::longest);
      if (group > 1 && narrow == 0) group = rows_of_chunk(b, groups::columns_together, concurrency_);
    }
    const auto fold_whole = [&](index first, index last) {
      if constexpr (goes_abreast<M, Batch>()) {
        if (group > 1) return groups(m)(b, first, last, sink);
      }
      fold_rows(b, first, last, m, sink);
    };
    if (concurrency_ <= 1) return fold_whole(0, b.size());
    const int level = level_of(tiles_of(elements_of(b)), b.size() == 1 ? 64 : 16, grain_of<M>);
    const auto chunks = narrow > 0 ? chunks_of_columns(b, level, grain_of<M>, narrow) : chunks_of(b, level, grain_of<M>, group);
    if (chunks.size() <= 1) return fold_whole(0, b.size());
    std::vector<std::vector<forest<state_of<M>>>> parts(chunks.size());  // of every row of a chunk
    each(static_cast<index>(chunks.size()), [&](index i) {
      const chunk& c = chunks[static_cast<std::size_t>(i)];
      auto& part = parts[static_cast<std::size_t>(i)];
      if (!c.is_part) return fold_whole(c.first, c.last);
      if constexpr (goes_abreast<M, Batch>()) {
        if (narrow > 0) {
          part = groups(m).fold_tiles(b.grid_at(c.row, narrow), c.first, c.last);
          return;
        }
      }
      part.push_back(fold_tiles(m, b[c.row], c.first, c.last));
    });
    for (std::size_t i = 0; i < chunks.size();) {
      if (!chunks[i].is_part) {
        ++i;
        continue;
      }
      const index row = chunks[i].row;
      auto whole = std::move(parts[i]);
      for (++i; i < chunks.size() && chunks[i].is_part && chunks[i].row == row; ++i) {
        for (std::size_t k = 0; k < whole.size(); ++k) whole[k].append(m, std::move(parts[i][k]));
      }
      for (std::size_t k = 0; k < whole.size(); ++k) sink(row + static_cast<index>(k), *std::move(whole[k]).value(m));
    }
  }

  /// The same of columns that stand side by side, of which element i is projection(x, i).
  template <gridded Batch, class M, class Projection, class Sink>
  void fold_columns(const Batch& b, const M& m, const Projection& projection, const Sink& sink) const {
    using groups = group_fold<M, element_in<Batch>, Projection>;
    const auto fold_some = [&](index first, index last) { groups(m, projection)(b, first, last, sink); };
    const int level = level_of(tiles_of(elements_of(b)), 16, grain_of<M>);
    const auto chunks = chunks_of(b, level, grain_of<M>, rows_of_chunk(b, groups::columns_together, concurrency_));
    if (chunks.size() <= 1) return fold_some(0, b.size());
    each(static_cast<index>(chunks.size()), [&](index i) {
      fold_some(chunks[static_cast<std::size_t>(i)].first, chunks[static_cast<std::size_t>(i)].last);
    });
  }

  /// out[row][i] = answer(state) of the first i + 1 elements of every source of a batch, or of the first i: exclusive.
  template <batch Batch, batch Out, class M, class Answer>
  void scan(const Batch& b, const Out& out, const M& m, scan_kind kind, const Answer& answer) const {
    using place = place_of<std::remove_cvref_t<decltype(out[0])>>;
    using element = element_of<std::remove_cvref_t<decltype(b[0])>>;
    using scanner = tile_scanner<M, element, place, Answer>;
    const index elements = elements_of(b);
    const bool past_caches = static_cast<std::size_t>(elements) > cached_output_bytes / sizeof(place);
    using groups = group_scan<M, element, place, Answer>;
    index group = 1;
    if constexpr (scans_abreast<M, Batch, Out>()) {
      group = group_of(b, out, groups::longest);
      if (group > 1) group = rows_of_chunk(b, groups::columns_together, concurrency_);
    }
    const auto scan_rows = [&](index first, index last) {
      if constexpr (scans_abreast<M, Batch, Out>()) {
        if (group > 1) return groups(m, kind, answer, past_caches)(b, out, first, last);
      }
      scanner scan(m, kind, answer, past_caches);
      for (index row = first; row < last; ++row) scan_source(scan, m, b[row], out[row]);
      scan.finish();
    };
    const int level = std::max(level_of(tiles_of(elements), 8), b.size() > 1 ? turns_level : 0);
    const std::vector<chunk> chunks = chunks_of(b, level, index{1} << level, group);
    if (chunks.size() <= 1) return scan_rows(0, b.size());
    std::vector<chunk> whole;
    std::ranges::copy_if(chunks, std::back_inserter(whole), [](const chunk& c) { return !c.is_part; });
    if (!whole.empty()) {
      each(static_cast<index>(whole.size()), [&](index i) {
        scan_rows(whole[static_cast<std::size_t>(i)].first, whole[static_cast<std::size_t>(i)].last);
      });
    }
    for (const chunk& c : chunks) {
      if (!c.is_part || c.first != 0) continue;
      carry_chain<M> chain(m);
      scan_by_turns<scanner>(chain, b[c.row], out[c.row], m, kind, answer, past_caches);
    }
  }

  /// The same for one source that begins at a tile boundary, after the tiles in `chain`, to which it adds its own.
  template <source Source, source Out, class M, class Answer>
  void scan_on(carry_chain<M>& chain, const Source& s, const Out& out, const M& m, scan_kind kind, const Answer& answer) const {
    using place = place_of<Out>;
    using scanner = tile_scanner<M, element_of<Source>, place, Answer>;
    const bool past_caches = static_cast<std::size_t>(s.size()) > cached_output_bytes / sizeof(place);
    if (concurrency_ > 1 && tiles_of(s.size()) > grain_tiles) {
      return scan_by_turns<scanner>(chain, s, out, m, kind, answer, past_caches);
    }
    scanner scan(m, kind, answer, past_caches);
    scan_source(scan, chain, s, out, true);
    scan.finish();
  }

  /// body(0), ..., body(n - 1), each once; `cost` is an estimate of one call in nanoseconds.
  template <class Body>
  void for_each(index n, double cost, const Body& body) const {
    const double workers = static_cast<double>(concurrency_);
    const double total = static_cast<double>(n) * cost;
    const auto groups = static_cast<index>(
        std::min({static_cast<double>(n), total / grain_nanoseconds, workers <= 1 ? 1.0 : 16 * workers}));
    if (groups <= 1) {
      for (index i = 0; i < n; ++i) body(i);
      return;
    }
    each(groups, [&](index g) {
      for (index i = n * g / groups; i < n * (g + 1) / groups; ++i) body(i);
    });
  }

 private:
  /// The tiles [first, last) of a long source, or the whole rows [first, last) if `is_part` is false.
  struct chunk {
    index row;
    index first;
    index last;
    bool is_part;
  };

  static index elements_of(const auto& batch) {
    index elements = 0;
    for (index row = 0; row < batch.size(); ++row) elements += batch[row].size();
    return elements;
  }

  /// The number of rows that a thread sweeps at once.
  template <batch In, batch Out>
  [[nodiscard]] index group_of(const In& in, const Out& out, index longest) const {
    const index group = group_rows(in, out, longest);
    return group > 1 && are_enough(*this, in.size(), in[0].size()) ? group : 1;
  }

  /// The level of parts: 2^level tiles, aligned, at least `grain`; where there are many tiles, about `a_worker` parts for each
  /// worker, and fewer as long as they are small. It affects speed only: any level gives the same bits.
  [[nodiscard]] int level_of(index tiles, index a_worker, index grain = grain_tiles) const {
    const index workers = std::max<index>(concurrency_, 1);
    int level = std::countr_zero(static_cast<std::uint64_t>(grain));
    const auto parts_exceed = [&](index each) { return (tiles >> level) > each * workers; };
    while (parts_exceed(a_worker) || (level < small_level && parts_exceed(few_parts))) ++level;
    return level;
  }
  /// Parts of 2^level tiles of the rows that are longer, and of the others as many together as have `grain` tiles.
  template <batch Batch>
  [[nodiscard]] std::vector<chunk> chunks_of(const Batch& b, int level, index grain, index group) const {
    std::vector<chunk> chunks;
    if (concurrency_ <= 1) return chunks;
    const index whole = index{1} << level;
    const index enough = grain * tile_elements;
    index first = 0, elements = 0;
    const auto close = [&](index row) {
      if (first < row) chunks.push_back({0, first, row, false});
      elements = 0;
    };
    for (index row = 0; row < b.size(); ++row) {
      const index n = b[row].size();
      if (n > whole * tile_elements && group == 1) {
        close(row);
        for (index t = 0; t < tiles_of(n); t += whole) {
          chunks.push_back({row, t, std::min(t + whole, tiles_of(n)), true});
        }
        first = row + 1;
      } else if ((elements += n + 16) >= enough && (row + 1 - first) % group == 0) {
        close(row + 1);
        first = row + 1;
      }
    }
    close(b.size());
    return chunks;
  }
  /// The same of matrices that have `columns` each: parts of about 2^level tiles, or as many whole ones together.
  template <batch Batch>
  [[nodiscard]] std::vector<chunk> chunks_of_columns(const Batch& b, int level, index grain, index columns) const {
    const index tiles = tiles_of(b[0].size()), some = std::max<index>((index{1} << level) / columns, 1);
    if (tiles <= some) return chunks_of(b, level, grain, columns);
    std::vector<chunk> chunks;
    const auto whole = static_cast<index>(std::bit_floor(static_cast<std::uint64_t>(some)));
    for (index row = 0; row < b.size(); row += columns) {
      for (index t = 0; t < tiles; t += whole) chunks.push_back({row, t, std::min(t + whole, tiles), true});
    }
    return chunks;
  }

  /// Scans one long source. Workers take tiles in order. Each folds its tile, gets its carry as soon as the tiles before are
  /// folded, and puts its answers. A worker waits only briefly, because the tile it waits for may be suspended further up its
  /// own call stack (nested work); tiles left behind in this way are folded again at the end.
  template <class Scanner, source Source, class Out, class M, class Answer>
  void scan_by_turns(carry_chain<M>& chain, const Source& s, const Out& out, const M& m, scan_kind kind, const Answer& answer,
                     bool past_caches) const {
    const index tiles = tiles_of(s.size());
    const index workers = std::min<index>(concurrency_, tiles);
    carries<M> passed(chain);
    alignas(cache_line) std::atomic<index> taken = 0;
    std::atomic<bool> failed = false;
    each(workers, [&](index) {
      index t = taken++;
      if (t >= tiles) return;
      Scanner scan(m, kind, answer, past_caches);
      try {
        for (; t < tiles && !failed.load(std::memory_order_relaxed); t = taken++) {
          auto carry = passed.fold(t, scan.fold(s, t, workers));
          if (!carry) {
            for (int asked = 0; !passed.has(t) && asked < most_asked; ++asked) relax();
            carry = passed.take(t);
          }
          if (carry) scan.put(s, *carry, out);
        }
      } catch (...) {
        failed = true;
        throw;
      }
      scan.finish();
    });
    chain = passed.chain();
    const auto left = passed.take_all();
    if (left.empty()) return;
    each(static_cast<index>(left.size()), [&](index i) {
      const auto& [t, carry] = left[static_cast<std::size_t>(i)];
      Scanner scan(m, kind, answer, past_caches);
      scan.fold(s, t, 0);
      scan.put(s, carry, out);
      scan.finish();
    });
  }

  /// bulk() in the caller's floating-point environment. Rethrows the first exception there and begins no work after it.
  template <class Body>
  void each(index n, const Body& body) const {
    std::atomic<bool> failed = false;
    std::exception_ptr first;
    std::mutex one_at_a_time;
    const float_environment callers;
    const auto unless_failed = [&](index i) {
      if (failed.load(std::memory_order_relaxed)) return;
      callers.with([&] {
        try {
          body(i);
        } catch (...) {
          const std::lock_guard lock(one_at_a_time);
          if (!failed.exchange(true)) first = std::current_exception();
        }
      });
    };
    bulk_(owner_, n, unless_failed);
    if (first) std::rethrow_exception(first);
  }

  const void* owner_;
  void (*bulk_)(const void*, index, const task&);
  int concurrency_;
};

template <class Self>
class threads {
 public:
  /// The executor that does the work.
  [[nodiscard]] pool worker() const { return pool(static_cast<const Self&>(*this)); }

  template <batch Batch, class M, class Sink>
  void fold(const Batch& b, const M& m, const Sink& sink) const {
    if constexpr (numbers_columns<M, Batch>) {
      if (are_columns(b.batch)) return worker().fold_columns(b.batch, m, b.projection, sink);
    }
    with_joined(b, m, [&](const auto& batch, const auto& joined) { worker().fold(batch, joined, sink); });
  }
  template <batch Batch, batch Out, class M, class Answer>
  void scan(const Batch& b, const Out& out, const M& m, scan_kind kind, const Answer& answer) const {
    with_joined(b, m, [&](const auto& batch, const auto& joined) { worker().scan(batch, out, joined, kind, answer); });
  }
  template <class Body>
  void for_each(index n, double cost, const Body& body) const {
    worker().for_each(n, cost, body);
  }
};

}  // namespace regroup::host

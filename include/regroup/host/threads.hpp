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
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "regroup/executor.hpp"
#include "regroup/host/abreast.hpp"
#include "regroup/host/chunks.hpp"
#include "regroup/host/columns_scanner.hpp"
#include "regroup/host/float_environment.hpp"
#include "regroup/host/folds.hpp"
#include "regroup/host/interleaved.hpp"
#include "regroup/host/prefixes_abreast.hpp"
#include "regroup/host/short_scans.hpp"
#include "regroup/host/through.hpp"
#include "regroup/host/tile_scanner.hpp"

namespace regroup::host {

/// Less work than this stays on the calling thread.
inline constexpr double grain_nanoseconds = 10000.0;
/// How often a worker polls for a carry before it takes another tile.
inline constexpr int most_asked = 2000;
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
        cut_(owner.concurrency()) {}

  [[nodiscard]] int concurrency() const noexcept { return cut_.workers(); }

  /// Calls sink(row, state) with the state of every source of a batch.
  template <batch Batch, class M, class Sink>
  void fold(const Batch& b, const M& m, const Sink& sink) const {
    if constexpr (goes_abreast<M, Batch>()) {
      if (fold_abreast(b, m, as_it_is{}, sink)) return;
    }
    const auto whole = [&](index first, index last) { fold_sources(b, first, last, m, sink); };
    const auto part = [&](const chunk& c) {
      std::vector<forest<state_of<M>>> only;
      only.push_back(host::fold_tiles(m, b[c.row], c.first, c.last));
      return only;
    };
    if (concurrency() <= 1) return whole(0, b.size());
    constexpr bool go_together = goes_in_order_of_memory<M, source_in<Batch>>;
    const index group = go_together && b.size() >= 16 * concurrency() ? 16 : 1;  // or else tiles are shared out
    // Where tiles are folded together, each part has its price.
    const index a_worker = lifts_tiles<M, element_in<Batch>> ? 4 : b.size() == 1 ? 64 : 16;
    fold_chunks(cut_.for_fold(b, grain_of<M>, a_worker, group), b.size(), m, sink, whole, part);
  }
  /// The same of rows that go in groups, of which element i is seen(x, i). Returns false where rows had better go alone.
  template <gridded Batch, class M, class Seen, class Sink>
  bool fold_abreast(const Batch& b, const M& m, const Seen& seen, const Sink& sink) const {
    using groups = group_fold<M, element_in<Batch>, Seen>;
    const index columns = groups::columns_to_cut(b, concurrency());
    const index group = columns > 0 ? columns : cut_.group_of(b, b, groups::longest(b));
    if (group <= 1) return false;
    const auto whole = [&](index first, index last) { groups(m, seen)(b, first, last, sink); };
    const auto part = [&](const chunk& c) { return groups(m, seen).fold_tiles(b.grid_at(c.row, columns), c.first, c.last); };
    if (concurrency() <= 1) {
      whole(0, b.size());
    } else if (columns > 0) {
      fold_chunks(cut_.for_fold_of_columns(b, grain_of<M>, columns), b.size(), m, sink, whole, part);
    } else {
      const index rows = host::rows_of_chunk(b, groups::columns_together, concurrency());
      fold_chunks(cut_.for_fold(b, grain_of<M>, 16, rows), b.size(), m, sink, whole, part);
    }
    return true;
  }

  /// out[row][i] = answer(state) of the first i + 1 elements of every source of a batch, or of the first i: exclusive.
  template <batch Batch, batch Out, class M, class Answer>
  void scan(const Batch& b, const Out& out, const M& m, scan_kind kind, const Answer& answer) const {
    using place = place_of<source_in<Out>>;
    using element = element_in<Batch>;
    const bool past_caches = static_cast<std::size_t>(elements_of(b)) > cached_output_bytes / sizeof(place);
    if constexpr (scans_columns<Batch, Out>) {
      if (const index columns = columns_to_set_apart<M>(b, out, concurrency()); columns > 0) {
        using scanner = columns_scanner<M, element, place, Answer>;
        const row_of<M> of_row{m, columns};
        return scan_sources<scanner>(matrices{b, columns}, matrices{out, columns}, of_row, kind, answer, past_caches, columns);
      }
    }
    if constexpr (scans_abreast<M, Batch, Out>()) {
      using groups = group_scan<M, element, place, Answer>;
      if (cut_.group_of(b, out, groups::longest) > 1) {
        const index workers = b.size() < 2 * abreast ? 1 : concurrency();  // part of a group is dear
        const index rows = host::rows_of_chunk(b, groups::columns_together, workers);
        return each_whole(cut_.for_scan(b, 1, rows), b.size(), [&](index first, index last) {
          groups(m, kind, answer, past_caches)(b, out, first, last);
        });
      }
    }
    scan_sources<tile_scanner<M, element, place, Answer>>(b, out, m, kind, answer, past_caches, 1);
  }

  /// The same for one source that begins at a tile boundary, after the tiles in `chain`, to which it adds its own.
  template <source Source, source Out, class M, class Answer>
  void scan_on(carry_chain<M>& chain, const Source& s, const Out& out, const M& m, scan_kind kind, const Answer& answer) const {
    using place = place_of<Out>;
    using scanner = tile_scanner<M, element_of<Source>, place, Answer>;
    const bool past_caches = static_cast<std::size_t>(s.size()) > cached_output_bytes / sizeof(place);
    if (concurrency() > 1 && tiles_of(s.size()) > grain_tiles) {
      return scan_by_turns<scanner>(chain, s, out, m, kind, answer, past_caches);
    }
    scanner scan(m, kind, answer, past_caches);
    scan_source(scan, chain, s, out, true);
    scan.finish();
  }

  /// body(0), ..., body(n - 1), each once; `cost` is an estimate of one call in nanoseconds.
  template <class Body>
  void for_each(index n, double cost, const Body& body) const {
    const double workers = static_cast<double>(concurrency());
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
  /// Folds chunks of `rows`: whole(first, last) does whole rows, and part(chunk) hands up a forest for each row of a part.
  template <class M, class Sink, class Whole, class Part>
  void fold_chunks(const std::vector<chunk>& chunks, index rows, const M& m, const Sink& sink, const Whole& whole,
                   const Part& part) const {
    if (chunks.size() <= 1) return whole(0, rows);
    std::vector<std::vector<forest<state_of<M>>>> parts(chunks.size());
    each(static_cast<index>(chunks.size()), [&](index i) {
      const chunk& c = chunks[static_cast<std::size_t>(i)];
      if (!c.is_part) return whole(c.first, c.last);
      parts[static_cast<std::size_t>(i)] = part(c);
    });
    for (std::size_t i = 0; i < chunks.size();) {
      if (!chunks[i].is_part) {
        ++i;
        continue;
      }
      const index row = chunks[i].row;
      auto all = std::move(parts[i]);
      for (++i; i < chunks.size() && chunks[i].is_part && chunks[i].row == row; ++i) {
        for (std::size_t k = 0; k < all.size(); ++k) all[k].append(m, std::move(parts[i][k]));
      }
      for (std::size_t k = 0; k < all.size(); ++k) sink(row + static_cast<index>(k), *std::move(all[k]).value(m));
    }
  }

  /// body(first, last) for the chunks of whole rows, or for all `rows` where one chunk has everything.
  template <class Body>
  void each_whole(std::vector<chunk> chunks, index rows, const Body& body) const {
    if (chunks.size() <= 1) return body(0, rows);
    std::erase_if(chunks, [](const chunk& c) { return c.is_part; });
    if (chunks.empty()) return;
    each(static_cast<index>(chunks.size()), [&](index i) {
      body(chunks[static_cast<std::size_t>(i)].first, chunks[static_cast<std::size_t>(i)].last);
    });
  }

  /// Scans every source by itself, long ones by all threads together. A source may be `columns` that go together.
  template <class Scanner, class Batch, class Out, class M, class Answer>
  void scan_sources(const Batch& b, const Out& out, const M& m, scan_kind kind, const Answer& answer, bool past_caches,
                    index columns) const {
    const std::vector<chunk> chunks = cut_.for_scan(b, columns, 1);
    each_whole(chunks, b.size(), [&](index first, index last) {
      std::optional<Scanner> scan;
      for (index row = first; row < last; ++row) {
        const auto s = b[row];
        if constexpr (source<std::remove_const_t<decltype(s)>>) {
          if (s.size() <= few_to_scan) {
            dispatch([&] { scan_few(m, s, out[row], kind, answer); });
            continue;
          }
        }
        if (!scan) scan.emplace(m, kind, answer, past_caches);
        scan_source(*scan, m, s, out[row]);
      }
      if (scan) scan->finish();
    });
    if (chunks.size() <= 1) return;
    for (const chunk& c : chunks) {
      if (!c.is_part || c.first != 0) continue;
      carry_chain<M> chain(m);
      scan_by_turns<Scanner>(chain, b[c.row], out[c.row], m, kind, answer, past_caches);
    }
  }

  /// Scans one long source. Workers take tiles in order. Each folds its tile, gets its carry as soon as the tiles before are
  /// folded, and puts its answers. A worker waits only briefly, because the tile it waits for may be suspended further up its
  /// own call stack (nested work); tiles left behind in this way are folded again at the end.
  template <class Scanner, class Source, class Out, class M, class Answer>
  void scan_by_turns(carry_chain<M>& chain, const Source& s, const Out& out, const M& m, scan_kind kind, const Answer& answer,
                     bool past_caches) const {
    const index tiles = tiles_of(s.size());
    const index workers = std::min<index>(concurrency(), tiles);
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
  cutter cut_;
};

template <class Self>
class threads {
 public:
  /// The executor that does the work.
  [[nodiscard]] pool worker() const { return pool(static_cast<const Self&>(*this)); }

  template <batch Batch, class M, class Sink>
  void fold(const Batch& b, const M& m, const Sink& sink) const {
    if constexpr (numbers_columns<M, Batch>) {
      if (are_columns_or_short(b.batch, lanes) && worker().fold_abreast(b.batch, m, b.projection, sink)) return;
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

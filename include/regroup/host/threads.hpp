// SPDX-License-Identifier: Apache-2.0
// Everything a CPU executor does, given only somebody's threads: a class that derives from `threads<Self>` and provides
//     int concurrency() const;                     how many calls may run at once
//     void bulk(index n, const F& f) const;        f(0), ..., f(n - 1), each once, on any threads; returns when all are done
// folds and scans in the contract's order. Workers take aligned intervals of tiles and hand up forests, so any pool gives
// the same bits. Small inputs stay on the calling thread. Level: thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "regroup/executor.hpp"
#include "regroup/host/lanes.hpp"
#include "regroup/host/prefixes.hpp"

namespace regroup::host {

/// Less work than this stays on the calling thread: about what waking a worker costs, several times over.
inline constexpr index grain_tiles = 4;
inline constexpr double grain_nanoseconds = 10000.0;

template <class Self>
class threads {
 public:
  /// sink(row, state): the state of every source of a batch.
  template <batch Batch, class M, class Sink>
  void fold(const Batch& b, const M& m, const Sink& sink) const {
    const index level = chunk_level(b);
    std::vector<chunk> chunks = chunks_of(b, level);
    if (chunks.size() <= 1) {
      for (index row = 0; row < b.size(); ++row) sink(row, fold_source(m, b[row]));
      return;
    }
    std::vector<forest<state_of<M>>> parts(chunks.size());
    each(static_cast<index>(chunks.size()), [&](index i) {
      const chunk& c = chunks[static_cast<std::size_t>(i)];
      if (c.is_part) {
        parts[static_cast<std::size_t>(i)] = fold_tiles(m, b[c.row], c.first, c.last);
      } else {
        for (index row = c.first; row < c.last; ++row) sink(row, fold_source(m, b[row]));
      }
    });
    for (std::size_t i = 0; i < chunks.size();) {
      if (!chunks[i].is_part) {
        ++i;
        continue;
      }
      const index row = chunks[i].row;
      forest<state_of<M>> whole;
      for (; i < chunks.size() && chunks[i].is_part && chunks[i].row == row; ++i) whole.append(m, std::move(parts[i]));
      sink(row, *whole.value(m));
    }
  }

  /// sink(row, position, state): every prefix of every source of a batch.
  template <batch Batch, class M, class Sink>
  void scan(const Batch& b, const M& m, scan_kind kind, const Sink& sink) const {
    const index level = chunk_level(b);
    std::vector<chunk> chunks = chunks_of(b, level);
    const auto put_to = [&sink](index row) {
      return [&sink, row](index i, const state_of<M>& s) { sink(row, i, s); };
    };
    if (chunks.size() <= 1) {
      for (index row = 0; row < b.size(); ++row) scan_source(m, b[row], kind, put_to(row));
      return;
    }
    // pass one: the summary of every tile of every long source; then their carries, in order; pass two: the prefixes
    std::vector<std::vector<tile_summary<state_of<M>>>> summaries(chunks.size());
    each(static_cast<index>(chunks.size()), [&](index i) {
      const chunk& c = chunks[static_cast<std::size_t>(i)];
      if (c.is_part) {
        summaries[static_cast<std::size_t>(i)] = summarise_tiles(m, b[c.row], c.first, c.last);
      } else {
        for (index row = c.first; row < c.last; ++row) scan_source(m, b[row], kind, put_to(row));
      }
    });
    std::vector<std::vector<tile_carry<state_of<M>>>> carries(chunks.size());
    carry_chain<M> chain(m);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (!chunks[i].is_part) continue;
      if (chunks[i].first == 0) chain = carry_chain<M>(m);
      for (auto& summary : summaries[i]) carries[i].push_back(chain.next(std::move(summary)));
      summaries[i] = {};
    }
    each(static_cast<index>(chunks.size()), [&](index i) {
      const chunk& c = chunks[static_cast<std::size_t>(i)];
      if (!c.is_part) return;
      for (index t = c.first; t < c.last; ++t) {
        scan_tile(m, b[c.row], t, carries[static_cast<std::size_t>(i)][static_cast<std::size_t>(t - c.first)], kind,
                  put_to(c.row));
      }
    });
  }

  /// body(0), ..., body(n - 1), each once; `cost` is an estimate of one call in nanoseconds.
  template <class Body>
  void for_each(index n, double cost, const Body& body) const {
    const double workers = static_cast<double>(self().concurrency());
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
  /// The tiles [first, last) of a long source, or, where `is_part` is false, the whole rows [first, last).
  struct chunk {
    index row;
    index first;
    index last;
    bool is_part;
  };

  [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }

  /// Chunks are 2^level tiles, aligned: a function of speed only, since any level gives the same bits.
  template <batch Batch>
  [[nodiscard]] index chunk_level(const Batch& b) const {
    const index workers = std::max<index>(self().concurrency(), 1);
    index most = 0;
    if (b.size() == 1) most = tiles_of(b[0].size());
    index level = std::countr_zero(static_cast<std::uint64_t>(grain_tiles));
    while ((most >> level) > 64 * workers) ++level;
    return level;
  }
  template <batch Batch>
  [[nodiscard]] std::vector<chunk> chunks_of(const Batch& b, index level) const {
    std::vector<chunk> chunks;
    if (self().concurrency() <= 1) return chunks;
    const index whole = index{1} << level;
    const index enough = whole * tile_elements;
    index first = 0;
    index elements = 0;
    const auto close = [&](index row) {
      if (first < row) chunks.push_back({0, first, row, false});
      elements = 0;
    };
    for (index row = 0; row < b.size(); ++row) {
      const index n = b[row].size();
      if (n > enough) {
        close(row);
        for (index t = 0; t < tiles_of(n); t += whole) {
          chunks.push_back({row, t, std::min(t + whole, tiles_of(n)), true});
        }
        first = row + 1;
      } else if ((elements += n + 16) >= enough) {
        close(row + 1);
        first = row + 1;
      }
    }
    close(b.size());
    return chunks;
  }

  /// bulk(), with the first exception brought to the caller and no further work begun after it.
  template <class Body>
  void each(index n, const Body& body) const {
    std::atomic<bool> failed = false;
    std::exception_ptr first;
    std::mutex one_at_a_time;
    self().bulk(n, [&](index i) {
      if (failed.load(std::memory_order_relaxed)) return;
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(one_at_a_time);
        if (!failed.exchange(true)) first = std::current_exception();
      }
    });
    if (first) std::rethrow_exception(first);
  }
};

}  // namespace regroup::host

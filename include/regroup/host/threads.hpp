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
/// A scan's chunk is at most 2^scan_level tiles, so that its second pass finds the elements in a cache.
inline constexpr int scan_level = 5;

template <class Self>
class threads {
 public:
  /// sink(row, state): the state of every source of a batch.
  template <batch Batch, class M, class Sink>
  void fold(const Batch& b, const M& m, const Sink& sink) const {
    const std::vector<chunk> chunks = chunks_of(b, chunk_level(b));
    if (chunks.size() <= 1) {
      fold_rows(b, 0, b.size(), m, sink);
      return;
    }
    std::vector<forest<state_of<M>>> parts(chunks.size());
    each(static_cast<index>(chunks.size()), [&](index i) {
      const chunk& c = chunks[static_cast<std::size_t>(i)];
      if (c.is_part) {
        parts[static_cast<std::size_t>(i)] = fold_tiles(m, b[c.row], c.first, c.last);
      } else {
        fold_rows(b, c.first, c.last, m, sink);
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

  /// sink(row, position, answers): answer(state) of every prefix of every source of a batch, a run of them at a time.
  template <batch Batch, class M, class Answer, class Sink>
  void scan(const Batch& b, const M& m, scan_kind kind, const Answer& answer, const Sink& sink) const {
    using element = element_of<std::remove_cvref_t<decltype(b[0])>>;
    using scanner = tile_scanner<M, element, Answer>;
    const auto put_to = [&sink](index row) {
      return [&sink, row](index position, const auto& answers) { sink(row, position, answers); };
    };
    const auto scan_rows = [&](index first, index last) {
      scanner scan(m, kind, answer);
      for (index row = first; row < last; ++row) scan_source(scan, m, b[row], put_to(row));
    };
    const std::vector<chunk> chunks = chunks_of(b, std::min(chunk_level(b), scan_level));
    if (chunks.size() <= 1) return scan_rows(0, b.size());
    // By rounds that caches hold. Pass one: the summary of every tile of every long source, and the short sources; then
    // carries, in order; pass two: the prefixes.
    carry_chain<M> chain(m);
    std::vector<std::vector<tile_summary<state_of<M>>>> summaries;
    std::vector<std::vector<tile_carry<state_of<M>>>> carries;
    const auto round = static_cast<std::size_t>(4 * self().concurrency());
    for (std::size_t begin = 0; begin < chunks.size(); begin += round) {
      const std::span now(chunks.data() + begin, std::min(round, chunks.size() - begin));
      summaries.assign(now.size(), {});
      carries.assign(now.size(), {});
      each(static_cast<index>(now.size()), [&](index i) {
        const chunk& c = now[static_cast<std::size_t>(i)];
        if (c.is_part) {
          summaries[static_cast<std::size_t>(i)] = summarise_tiles(m, b[c.row], c.first, c.last);
        } else {
          scan_rows(c.first, c.last);
        }
      });
      for (std::size_t i = 0; i < now.size(); ++i) {
        if (!now[i].is_part) continue;
        if (now[i].first == 0) chain = carry_chain<M>(m);
        for (auto& summary : summaries[i]) {
          carries[i].push_back(chain.next());
          chain.push(std::move(summary));
        }
      }
      each(static_cast<index>(now.size()), [&](index i) {
        const chunk& c = now[static_cast<std::size_t>(i)];
        if (!c.is_part) return;
        scanner scan(m, kind, answer);
        for (index t = c.first; t < c.last; ++t) {
          scan(b[c.row], t, carries[static_cast<std::size_t>(i)][static_cast<std::size_t>(t - c.first)], put_to(c.row));
        }
      });
    }
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
  [[nodiscard]] int chunk_level(const Batch& b) const {
    const index workers = std::max<index>(self().concurrency(), 1);
    index most = 0;
    if (b.size() == 1) most = tiles_of(b[0].size());
    int level = std::countr_zero(static_cast<std::uint64_t>(grain_tiles));
    while ((most >> level) > 64 * workers) ++level;
    return level;
  }
  template <batch Batch>
  [[nodiscard]] std::vector<chunk> chunks_of(const Batch& b, int level) const {
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

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
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "regroup/executor.hpp"
#include "regroup/host/lanes.hpp"
#include "regroup/host/prefixes.hpp"

namespace regroup::host {

/// Less work than this stays on the calling thread: about what waking a worker costs, several times over.
inline constexpr index grain_tiles = 4;
inline constexpr double grain_nanoseconds = 10000.0;
/// How often a worker asks whether its turn has come before it lets others run.
inline constexpr int turns_asked = 1000;

/// Which threads are inside something, each once.
class present_threads {
 public:
  /// An object that stays while the calling thread is inside, or nothing where it is already.
  [[nodiscard]] auto enter() {
    const auto leave = [this](const std::thread::id* me) {
      const std::lock_guard lock(one_at_a_time_);
      inside_.remove(*me);
    };
    const std::lock_guard lock(one_at_a_time_);
    const auto me = std::this_thread::get_id();
    const bool is_new = std::ranges::find(inside_, me) == inside_.end();
    return std::unique_ptr<const std::thread::id, decltype(leave)>(is_new ? &inside_.emplace_front(me) : nullptr,
                                                                   leave);
  }

 private:
  std::mutex one_at_a_time_;
  std::list<std::thread::id> inside_;
};

template <class Self>
class threads {
 public:
  /// sink(row, state): the state of every source of a batch.
  template <batch Batch, class M, class Sink>
  void fold(const Batch& b, const M& m, const Sink& sink) const {
    const std::vector<chunk> chunks = chunks_of(b, level_of(b.size() == 1 ? tiles_of(b[0].size()) : 0, 64));
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

  /// out[row][i] = answer(state) of the first i + 1 elements of every source of a batch, or of the first i: exclusive.
  template <batch Batch, batch Out, class M, class Answer>
  void scan(const Batch& b, const Out& out, const M& m, scan_kind kind, const Answer& answer) const {
    using place = element_of<std::remove_cvref_t<decltype(out[0])>>;
    using scanner = tile_scanner<M, element_of<std::remove_cvref_t<decltype(b[0])>>, place, Answer>;
    index elements = 0;
    for (index row = 0; row < b.size(); ++row) elements += b[row].size();
    const bool past_caches = static_cast<std::size_t>(elements) > cached_output_bytes / sizeof(place);
    const auto scan_rows = [&](index first, index last) {
      scanner scan(m, kind, answer, past_caches);
      for (index row = first; row < last; ++row) scan_source(scan, m, b[row], out[row]);
      scan.finish();
    };
    std::vector<chunk> chunks = chunks_of(b, level_of(tiles_of(elements), 8));
    if (chunks.size() <= 1) return scan_rows(0, b.size());
    const auto parts = std::ranges::stable_partition(chunks, [](const chunk& c) { return !c.is_part; });
    const std::span whole(chunks.begin(), parts.begin());
    if (!whole.empty()) {
      each(static_cast<index>(whole.size()), [&](index i) {
        scan_rows(whole[static_cast<std::size_t>(i)].first, whole[static_cast<std::size_t>(i)].last);
      });
    }
    for (const chunk& c : parts) {
      if (c.first != 0) continue;  // its row is scanned already
      scan_by_turns(b[c.row], out[c.row], m, [&] { return scanner(m, kind, answer, past_caches); });
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

  /// Chunks are 2^level tiles, aligned, `a_worker` for each at most where there are many: a function of speed only, since
  /// any level gives the same bits.
  [[nodiscard]] int level_of(index tiles, index a_worker) const {
    const index most = a_worker * std::max<index>(self().concurrency(), 1);
    int level = std::countr_zero(static_cast<std::uint64_t>(grain_tiles));
    while ((tiles >> level) > most) ++level;
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

  /// One long source in one pass. Workers take tiles in order; each folds its own, waits for its turn to take the carry and
  /// hand on the next, and puts its answers while others have theirs.
  template <source Source, class Out, class M, class MakeScanner>
  void scan_by_turns(const Source& s, const Out& out, const M& m, const MakeScanner& make_scanner) const {
    const index workers = self().concurrency();
    const index tiles = tiles_of(s.size());
    carry_chain<M> chain(m);
    std::atomic<index> taken = 0;
    std::atomic<index> turn = 0;  // of this tile; -1 when somebody failed
    present_threads present;
    each(workers, [&](index) {
      // An operator that runs work of its own may find another call of this here: one that would wait for the one below.
      const auto enter = present.enter();
      if (!enter) return;
      try {
        auto scan = make_scanner();
        for (index t = taken++; t < tiles; t = taken++) {
          auto summary = scan.fold(s, t, workers);
          for (int asked = 0; turn.load(std::memory_order_acquire) != t; ++asked) {
            if (turn.load(std::memory_order_relaxed) < 0) return;
            if (asked >= turns_asked) std::this_thread::yield();
          }
          const auto carry = chain.next();
          chain.push(std::move(summary));
          index mine = t;
          if (!turn.compare_exchange_strong(mine, t + 1, std::memory_order_release)) return;
          scan.put(s, carry, out);
        }
        scan.finish();
      } catch (...) {
        turn = -1;
        throw;
      }
    });
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

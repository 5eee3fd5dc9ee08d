// SPDX-License-Identifier: Apache-2.0
// The carry of a scan from tile to tile: perfect(totals of the tiles before), and the result just before the tile. On one
// thread, or handed from thread to thread. Level: thread.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "regroup/executor.hpp"
#include "regroup/memory.hpp"

namespace regroup::host {

/// What a full tile passes to the tiles after it: its total, and its last prefix in the two parts that a carry joins.
template <class State>
struct tile_summary {
  State total;                  // P[L - 1]
  std::optional<State> before;  // P[L - 2]
  State last;                   // the fold of the last piece
};

/// What a tile needs from the tiles before it; absent for the first.
template <class State>
struct tile_carry {
  std::optional<State> carry;      // perfect(totals)
  std::optional<State> preceding;  // the inclusive result just before the tile
};

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
  /// Begins after whole tiles that have been scanned elsewhere, so without a `preceding`.
  carry_chain(const M& m, forest<state_of<M>> totals, index tiles) : m_(&m), totals_(std::move(totals)), tiles_(tiles) {
    next_.carry = totals_.value(m);
  }
  /// The carry into the next tile.
  [[nodiscard]] const tile_carry<state_of<M>>& next() const noexcept { return next_; }
  /// Adds that tile.
  void push(tile_summary<state_of<M>> summary) {
    std::optional<state_of<M>> base = next_.carry;
    if (summary.before) base = regroup::joined(*m_, base, *summary.before);
    next_.preceding = regroup::joined(*m_, base, summary.last);
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

/// The carries of a source's tiles, which any threads fold in roughly ascending order.
template <class M>
class carries {
  using summary = tile_summary<state_of<M>>;
  using carry = tile_carry<state_of<M>>;

 public:
  explicit carries(carry_chain<M> before) : chain_(std::move(before)) {}

  /// Reports tile `t` as folded; returns the carry into it if all tiles before it have been pushed on the chain. One thread at
  /// a time pushes, unlocked, since an operator may wait for work that reports a tile; it goes on with what was reported then.
  [[nodiscard]] std::optional<carry> fold(index t, summary folded) {
    std::unique_lock lock(one_at_a_time_);
    index next = next_.load(std::memory_order_relaxed);
    if (t > next || is_pushing_) {
      early_.emplace(t, std::move(folded));
      return std::nullopt;
    }
    is_pushing_ = true;
    std::optional<carry> own = chain_.next();
    const auto push = [&](summary& tile) {
      next_.store(++next, std::memory_order_relaxed);
      lock.unlock();
      chain_.push(std::move(tile));
      lock.lock();
    };
    push(folded);
    for (auto early = early_.extract(next); !early.empty(); early = early_.extract(next)) {
      carries_.emplace(next, chain_.next());
      push(early.mapped());
    }
    is_pushing_ = false;
    return own;
  }
  /// Whether the carry into tile `t` is known.
  [[nodiscard]] bool has(index t) const noexcept { return next_.load(std::memory_order_relaxed) > t; }
  /// The carry into a tile that was folded early, if it is known by now; it is given out once.
  [[nodiscard]] std::optional<carry> take(index t) {
    const std::lock_guard lock(one_at_a_time_);
    const auto found = carries_.find(t);
    if (found == carries_.end()) return std::nullopt;
    std::optional<carry> taken = std::move(found->second);
    carries_.erase(found);
    return taken;
  }
  /// The chain after all tiles, once all are folded.
  [[nodiscard]] const carry_chain<M>& chain() const noexcept { return chain_; }
  /// The carries that were not taken.
  [[nodiscard]] std::vector<std::pair<index, carry>> take_all() {
    return {std::move_iterator(carries_.begin()), std::move_iterator(carries_.end())};
  }

 private:
  std::mutex one_at_a_time_;
  bool is_pushing_ = false;
  alignas(cache_line) std::atomic<index> next_ = 0;  // the first tile without a carry
  alignas(cache_line) carry_chain<M> chain_;
  std::map<index, summary> early_;  // folded before a tile before them was pushed
  std::map<index, carry> carries_;
};

}  // namespace regroup::host

// SPDX-License-Identifier: Apache-2.0
// Rows that are prefetched while others are computed with, in the order of memory and at the pace of the computation. Many
// prefetches at once wait for one another, and all later loads wait for them: on an Intel that reads 16.3 GB/s, decoding over
// fp32 reached 13.2 with two rows prefetched at a time, and reaches 15.3 with one line after every fourth shuffle. Local to
// each instruction set's file. Level: block.
#pragma once

#include <cstdint>
#include <utility>

#include "attention_tile.hpp"

namespace regroup::tiles {
namespace {

/// Prefetches `count` rows of `width` numbers, and then a second group of rows.
template <class T>
class rows_ahead {
 public:
  struct rows {
    const T* const* first;
    index count, width;
  };
  explicit rows_ahead(const rows& now, const rows& then = {}) : left_(now), then_(then) { next_row(); }
  [[nodiscard]] bool is_empty() const { return line_ == 0; }
  /// Prefetches the next line, into the first cache or the second.
  [[gnu::always_inline]] void fetch_line(bool second_cache) {
    if (is_empty()) return;
    const auto* const line = reinterpret_cast<const char*>(line_);
    if (second_cache) {  // clang 14 without optimisation crashes on two prefetches and a ?:
      __builtin_prefetch(line, 0, 2);
    } else {
      __builtin_prefetch(line, 0, 3);
    }
    line_ += 64;
    if (line_ >= end_) next_row();
  }
  /// Prefetches the rest of a row into the second cache.
  [[gnu::always_inline]] void fetch_row() {
    if (is_empty()) return;
    for (; line_ < end_; line_ += 64) __builtin_prefetch(reinterpret_cast<const char*>(line_), 0, 2);
    next_row();
  }
  /// Prefetches all that is left, line by line.
  [[gnu::always_inline]] void fetch_rest(bool second_cache) {
    while (!is_empty()) fetch_line(second_cache);
  }

 private:
  [[gnu::always_inline]] void next_row() {
    if (left_.count == 0) left_ = std::exchange(then_, {});
    line_ = end_ = 0;
    if (left_.count == 0) return;
    line_ = reinterpret_cast<std::uintptr_t>(*left_.first);
    end_ = line_ + static_cast<std::uintptr_t>(left_.width) * sizeof(T);
    ++left_.first;
    --left_.count;
  }

  rows left_, then_;                   // the rows after the one being fetched
  std::uintptr_t line_ = 0, end_ = 0;  // the next line and the end of that row; 0 if there is none
};

}  // namespace
}  // namespace regroup::tiles

// SPDX-License-Identifier: Apache-2.0
// Rows that are fetched while others are computed with: in the order of memory, at the pace of what is computed. What is
// asked for at once waits for itself, and all loads behind it: on an Intel that reads 16.3 GB/s, decoding over fp32 took
// 13.2 where rows were asked for two at a time, and takes 15.3 where a line is asked for after every fourth shuffle. Local to
// each instruction set's file. Level: block.
#pragma once

#include <cstdint>
#include <utility>

#include "attention_tile.hpp"

namespace regroup::tiles {
namespace {

/// `count` rows of `width` numbers, and then others.
template <class T>
class rows_ahead {
 public:
  struct rows {
    const T* const* first;
    index count, width;
  };
  explicit rows_ahead(const rows& now, const rows& then = {}) : left_(now), then_(then) { next_row(); }
  [[nodiscard]] bool is_empty() const { return line_ == 0; }
  /// The next line, into the first cache, or the second.
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
  /// What is left of a row, into the second cache.
  [[gnu::always_inline]] void fetch_row() {
    if (is_empty()) return;
    for (; line_ < end_; line_ += 64) __builtin_prefetch(reinterpret_cast<const char*>(line_), 0, 2);
    next_row();
  }
  /// All that is left, line by line.
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

  rows left_, then_;                   // behind the row that is being fetched
  std::uintptr_t line_ = 0, end_ = 0;  // of that row; 0: there is none
};

}  // namespace
}  // namespace regroup::tiles

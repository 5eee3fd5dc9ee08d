// SPDX-License-Identifier: Apache-2.0
// Rows that are fetched while others are computed with: in the order of memory, at the pace of what is computed. What is
// asked for at once waits for itself, and all loads behind it: on an Intel that reads 16.3 GB/s, decoding over fp32 took
// 13.2 where rows were asked for two at a time, and takes 15.3 where a line is asked for after every fourth shuffle. Local to
// each instruction set's file. Level: block.
#pragma once

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
  explicit rows_ahead(const rows& now, const rows& then = {}) : now_(now), then_(then) {}
  [[nodiscard]] bool is_empty() const { return now_.count == 0 && then_.count == 0; }
  /// The next line, into the first cache, or the second.
  [[gnu::always_inline]] void fetch_line(bool second_cache = false) {
    if (!has_row()) return;
    const char* const line = reinterpret_cast<const char*>(*now_.first) + at_;
    second_cache ? __builtin_prefetch(line, 0, 2) : __builtin_prefetch(line, 0, 3);
    at_ += 64;
    if (at_ >= now_.width * index{sizeof(T)}) next_row();
  }
  /// What is left of a row, into the second cache.
  [[gnu::always_inline]] void fetch_row() {
    if (!has_row()) return;
    for (; at_ < now_.width * index{sizeof(T)}; at_ += 64) {
      __builtin_prefetch(reinterpret_cast<const char*>(*now_.first) + at_, 0, 2);
    }
    next_row();
  }
  /// All that is left, line by line.
  [[gnu::always_inline]] void fetch_rest(bool second_cache = false) {
    while (has_row()) fetch_line(second_cache);
  }

 private:
  [[gnu::always_inline]] bool has_row() {
    if (now_.count == 0) {
      now_ = then_;
      then_.count = 0;
    }
    return now_.count != 0;
  }
  [[gnu::always_inline]] void next_row() {
    at_ = 0;
    ++now_.first;
    --now_.count;
  }

  rows now_, then_;
  index at_ = 0;  // in bytes
};

}  // namespace
}  // namespace regroup::tiles

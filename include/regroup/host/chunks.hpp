// SPDX-License-Identifier: Apache-2.0
// How a batch is cut into chunks for some workers. It affects speed only: any cut gives the same bits. Level: thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "regroup/host/abreast.hpp"

namespace regroup::host {

/// Less work than this stays on the calling thread: several times the cost of waking a worker.
inline constexpr index grain_tiles = 4;
/// Parts of fewer than 2^small_level tiles are small: handing one out takes a third of a microsecond, as folding a tile of sums
/// may. There are no more than `few_parts` of them for each worker.
inline constexpr int small_level = 4;
inline constexpr index few_parts = 4;
/// What a fold by M leaves to the calling thread, in tiles, and the least that it hands out.
template <class M>
inline constexpr index grain_of = is_quick<M> ? index{1} << small_level : grain_tiles;
/// Among several sources, only those of more than 2^turns_level tiles are scanned by all threads together.
inline constexpr int turns_level = 4;

/// The tiles [first, last) of a long source, or of all columns of a matrix from `row` on; or the whole rows [first, last) if
/// `is_part` is false.
struct chunk {
  index row;
  index first;
  index last;
  bool is_part;
};

/// A batch whose sources all have one length.
template <class Batch>
concept of_one_length = requires(const Batch& b) { b.length(); };

/// The elements of all sources of a batch, which it may know.
inline index elements_of(const auto& batch) {
  if constexpr (requires { batch.before(index{}); }) {
    return batch.before(batch.size());
  } else if constexpr (of_one_length<decltype(batch)>) {
    return batch.size() * batch.length();
  } else {
    index elements = 0;
    for (index row = 0; row < batch.size(); ++row) elements += batch[row].size();
    return elements;
  }
}

class cutter {
 public:
  explicit cutter(int workers) noexcept : workers_(workers) {}
  [[nodiscard]] int workers() const noexcept { return workers_; }

  /// The number of rows that a thread sweeps at once.
  template <batch In, batch Out>
  [[nodiscard]] index group_of(const In& in, const Out& out, index longest) const {
    const index group = group_rows(in, out, longest);
    return group > 1 && are_enough(workers_, in.size(), in[0].size()) ? group : 1;
  }

  /// For a fold: about `a_worker` parts for each worker, of no fewer than `grain` tiles; whole rows by groups.
  template <batch Batch>
  [[nodiscard]] std::vector<chunk> for_fold(const Batch& b, index grain, index a_worker, index group) const {
    return chunks_of(b, level_of(tiles_of(elements_of(b)), a_worker, grain), grain, group);
  }
  /// The same of matrices that have `columns` each, by tiles of them all; or as many whole ones together.
  template <batch Batch>
  [[nodiscard]] std::vector<chunk> for_fold_of_columns(const Batch& b, index grain, index columns) const {
    const int level = level_of(tiles_of(elements_of(b)), 16, grain);
    const index tiles = tiles_of(b[0].size()), some = std::max<index>((index{1} << level) / columns, 1);
    if (tiles <= some) return chunks_of(b, level, grain, columns);
    std::vector<chunk> chunks;
    const auto part = static_cast<index>(std::bit_floor(static_cast<std::uint64_t>(some)));
    for (index row = 0; row < b.size(); row += columns) {
      for (index t = 0; t < tiles; t += part) chunks.push_back({row, t, std::min(t + part, tiles), true});
    }
    return chunks;
  }
  /// For a scan, of sources that may be `columns` which go together.
  [[nodiscard]] std::vector<chunk> for_scan(const auto& b, index columns, index group) const {
    if (workers_ <= 1) return {};
    const int all = std::max(level_of(tiles_of(elements_of(b) * columns), 8, grain_tiles), b.size() > 1 ? turns_level : 0);
    const int level = std::max(all - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(columns))) + 1, 0);
    return chunks_of(b, level, index{1} << level, group);
  }

 private:
  /// The level of parts: 2^level tiles, aligned, at least `grain`; where there are many tiles, about `a_worker` parts for each
  /// worker, and fewer as long as they are small.
  [[nodiscard]] int level_of(index tiles, index a_worker, index grain) const {
    const index workers = std::max<index>(workers_, 1);
    int level = std::countr_zero(static_cast<std::uint64_t>(grain));
    const auto parts_exceed = [&](index each) { return (tiles >> level) > each * workers; };
    while (parts_exceed(a_worker) || (level < small_level && parts_exceed(few_parts))) ++level;
    return level;
  }
  /// The row with which those from `first` on have `enough` elements, or the last of all. By halving: while one thread looks at
  /// each the others wait, a fifth of the time that two take for sums of 20 elements.
  static index row_of_enough(const auto& b, index first, index enough) {
    const auto have = [&](index last) { return b.before(last) - b.before(first) + 16 * (last - first) >= enough; };
    index row = first, step = 1;  // those before this one have not
    for (; first + step < b.size() && !have(first + step); step *= 2) row = first + step;
    for (index end = std::min(first + step, b.size()); row + 1 < end;) {
      const index middle = row + (end - row) / 2;
      (have(middle) ? end : row) = middle;
    }
    return row;
  }
  /// Parts of 2^level tiles of the rows that are longer, and of the others as many together as have `grain` tiles.
  [[nodiscard]] std::vector<chunk> chunks_of(const auto& b, int level, index grain, index group) const {
    std::vector<chunk> chunks;
    if (workers_ <= 1) return chunks;
    const index whole = index{1} << level;
    const index enough = grain * tile_elements;
    if constexpr (of_one_length<decltype(b)>) {
      if (group > 1 || b.length() <= whole * tile_elements) {
        const index weight = b.length() + 16, groups = (enough + weight * group - 1) / (weight * group);
        for (index row = 0; row < b.size(); row += groups * group) {
          chunks.push_back({0, row, std::min(row + groups * group, b.size()), false});
        }
        return chunks;
      }
    }
    const auto is_long = [&](index n) { return n > whole * tile_elements && group == 1; };
    const auto push_parts = [&](index row, index n) {
      for (index t = 0; t < tiles_of(n); t += whole) chunks.push_back({row, t, std::min(t + whole, tiles_of(n)), true});
    };
    const auto push_rows = [&](index first, index last) {
      if (first < last) chunks.push_back({0, first, last, false});
    };
    index first = 0;
    if constexpr (requires { b.before(first); }) {
      while (first < b.size() && group == 1) {
        const index last = row_of_enough(b, first, enough), n = b.before(last + 1) - b.before(last);
        push_rows(first, is_long(n) ? last : last + 1);  // those before it are not long
        if (is_long(n)) push_parts(last, n);
        first = last + 1;
      }
    }
    index elements = 0;
    for (index row = first; row < b.size(); ++row) {
      const index n = b[row].size();
      if (is_long(n)) {
        push_rows(first, row);
        push_parts(row, n);
      } else if ((elements += n + 16) < enough || (row + 1 - first) % group != 0) {
        continue;
      } else {
        push_rows(first, row + 1);
      }
      first = row + 1;
      elements = 0;
    }
    push_rows(first, b.size());
    return chunks;
  }

  int workers_;
};

}  // namespace regroup::host

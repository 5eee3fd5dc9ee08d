// SPDX-License-Identifier: Apache-2.0
// Many rows as a device sees them, and the nodes of their trees as one list: a node of reach r covers r elements of a row,
// for rows longer than `above`; the nodes of a row are adjacent, and `slot` is a node's number in the list. Segments need no
// prefix sum for theirs: one that begins at element b begins at slot b / r + b / (above + 1), which leaves room for all
// nodes of a long one. So the list has gaps, but does not grow with the number of short segments. Level: device.
#pragma once

#include <functional>
#include <type_traits>

#include "regroup/batch.hpp"

namespace regroup::cuda {

/// Node `position` of row `row`, or of none: -1.
struct node_place {
  index row;
  index position;
};

/// Nodes of a given reach that a row of n elements has: one where it is empty, so that somebody answers for it.
constexpr index nodes_of(index n, index reach) noexcept { return n == 0 ? 1 : (n - 1) / reach + 1; }

/// `count` rows of `length` elements, `row_stride` apart, each `stride` from the next; read through a projection; X is const
/// for inputs.
template <class X, class Projection = std::identity>
struct row_batch {
  static constexpr bool has_gaps = false;
  X* first;
  index count;
  index length;
  index row_stride;
  index stride;
  Projection projection = {};

  [[nodiscard]] constexpr index size() const noexcept { return count; }
  constexpr auto operator[](index row) const {
    return regroup::project(strided<X>{first + row * row_stride, length, stride}, projection);
  }
  [[nodiscard]] constexpr index slots(index reach, index) const noexcept { return count * nodes_of(length, reach); }
  [[nodiscard]] constexpr index slot_of(index row, index reach, index) const noexcept {
    return row * nodes_of(length, reach);
  }
  [[nodiscard]] constexpr node_place locate(index slot, index reach, index) const noexcept {
    const index nodes = nodes_of(length, reach);
    return {slot / nodes, slot % nodes};
  }
};
template <class X, class Projection>
row_batch(X*, index, index, index, index, Projection) -> row_batch<X, Projection>;

/// One source of any kind as one row.
template <class Source>
struct one_source : single<Source> {
  static constexpr bool has_gaps = false;
  [[nodiscard]] constexpr index slots(index reach, index) const { return nodes_of(this->source.size(), reach); }
  [[nodiscard]] constexpr index slot_of(index, index, index) const noexcept { return 0; }
  [[nodiscard]] constexpr node_place locate(index slot, index, index) const noexcept { return {0, slot}; }
};
template <class Source>
one_source(single<Source>) -> one_source<Source>;

/// Axes that a kernel walks in C order, neighbours joined where one stride reaches both.
inline constexpr int most_axes = 16;
struct joined_axes {
  int rank = 0;
  index extents[most_axes] = {};
  index strides[most_axes] = {};

  [[nodiscard]] constexpr index offset_of(index i) const noexcept {
    index offset = 0;
    for (int a = rank - 1; a > 0; --a) {
      offset += i % extents[a] * strides[a];
      i /= extents[a];
    }
    return rank == 0 ? 0 : offset + i * strides[0];
  }
};
/// Rows of one stride, for each index of any axes.
template <class X, class Projection = std::identity>
struct axes_batch : row_batch<X, Projection> {
  joined_axes outer;
  constexpr auto operator[](index row) const {
    return regroup::project(strided<X>{this->first + outer.offset_of(row), this->length, this->stride}, this->projection);
  }
};
/// The elements along some axes. Where each stands costs divisions: a call, since an unrolled fold asks 32 times.
template <class X>
struct walked {
  X* first;
  index count;
  const joined_axes* axes;
  [[nodiscard]] constexpr index size() const noexcept { return count; }
  [[gnu::noinline]] constexpr X& operator[](index i) const noexcept { return first[axes->offset_of(i)]; }
};
/// Rows along any axes, for each index of any others.
template <class X, class Projection = std::identity>
struct walked_batch : axes_batch<X, Projection> {
  joined_axes inner;

  /// Whether one stride reaches the elements of a row, so that the batch it derives from is enough.
  [[nodiscard]] constexpr bool is_strided() const noexcept { return inner.rank <= 1; }
  [[nodiscard]] constexpr const axes_batch<X, Projection>& strided_rows() const noexcept { return *this; }
  constexpr auto operator[](index row) const {
    return regroup::project(walked<X>{this->first + this->outer.offset_of(row), this->length, &inner}, this->projection);
  }
};

/// Segments [offsets[s], offsets[s + 1]) of `total` elements; the offsets are in device memory.
template <class X, class Offset, class Projection = std::identity>
struct segment_batch {
  static constexpr bool has_gaps = true;
  X* first;
  const Offset* offsets;
  index count;
  index total;
  Projection projection = {};

  [[nodiscard]] constexpr index size() const noexcept { return count; }
  constexpr auto operator[](index s) const {
    const index begin = at(s);
    return regroup::project(strided<X>{first + begin, at(s + 1) - begin, 1}, projection);
  }
  [[nodiscard]] constexpr index slots(index reach, index above) const noexcept {
    return total / reach + total / (above + 1);
  }
  [[nodiscard]] constexpr index slot_of(index s, index reach, index above) const {
    return at(s) / reach + at(s) / (above + 1);
  }
  [[nodiscard]] constexpr node_place locate(index slot, index reach, index above) const {
    index low = 0;  // the last segment that begins at `slot` or before: whose the slot is, if anybody's
    index high = count - 1;
    while (low < high) {
      const index middle = low + (high - low + 1) / 2;
      if (slot_of(middle, reach, above) <= slot) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const index length = at(low + 1) - at(low);
    const index position = slot - slot_of(low, reach, above);
    return {length > above && position >= 0 && position < nodes_of(length, reach) ? low : -1, position};
  }

 private:
  [[nodiscard]] constexpr index at(index s) const { return static_cast<index>(offsets[s]); }
};
template <class X, class Offset, class Projection>
segment_batch(X*, const Offset*, index, index, Projection) -> segment_batch<X, Offset, Projection>;

}  // namespace regroup::cuda

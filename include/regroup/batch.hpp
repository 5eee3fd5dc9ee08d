// SPDX-License-Identifier: Apache-2.0
// Many sources: a *batch* has `size()` and `operator[](row)`. Rows, axes, segments and runs all become batches of sources.
#pragma once

#include <concepts>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "regroup/error.hpp"
#include "regroup/source.hpp"
#include "regroup/view.hpp"

namespace regroup {

/// Many sources of one type: the rows of a view, segments, runs, or one range.
template <class B>
concept batch = requires(const B& b, index i) {
  { b.size() } -> std::same_as<index>;
  requires source<std::remove_cvref_t<decltype(b[i])>>;
};
template <class Batch>
using source_in = std::remove_cvref_t<decltype(std::declval<const Batch&>()[index{}])>;
template <class Batch>
using element_in = element_of<source_in<Batch>>;

/// Rows at one distance from each other: element `i` of row `k` is (i, k).
template <class T>
struct grid {
  T* first = nullptr;
  index rows = 0;
  index length = 0;
  index stride = 1;
  index pitch = 0;

  constexpr T& operator()(index i, index k) const noexcept { return first[i * stride + k * pitch]; }
  template <class U>
    requires(!std::is_const_v<T> && std::same_as<U, const T>)
  constexpr operator grid<U>() const noexcept {  // NOLINT: implicit on purpose
    return {first, rows, length, stride, pitch};
  }
  /// `n` elements of every row from element `i` on.
  [[nodiscard]] constexpr grid part(index i, index n) const noexcept { return {first + i * stride, rows, n, stride, pitch}; }
};

/// The sources along the last `inner` axes of a view, for each index of the axes before them, in C order. With
/// `Source = strided<T>` the inner axes must join into at most one (see `coalesced`).
template <class T, class Source>
class slices {
 public:
  slices(const view<T>& v, int inner) : data_(v.data()) {
    const auto axes = [&](int first, int last) {
      return regroup::coalesced(view<T>(v.data(), shape(std::span(v.extents().begin() + first, v.extents().begin() + last)),
                               shape(std::span(v.strides().begin() + first, v.strides().begin() + last))));
    };
    const auto head = axes(0, v.rank() - inner);
    outer_extents_ = head.extents();
    outer_strides_ = head.strides();
    count_ = head.size();
    const auto tail = axes(v.rank() - inner, v.rank());
    inner_extents_ = tail.extents();
    inner_strides_ = tail.strides();
    length_ = tail.size();
  }
  [[nodiscard]] index size() const noexcept { return count_; }
  [[nodiscard]] index length() const noexcept { return length_; }
  /// Whether one stride reaches every element of a slice.
  [[nodiscard]] bool is_strided() const noexcept { return inner_extents_.size() <= 1 || length_ == 0; }
  Source operator[](index row) const noexcept {
    T* const first = data_ + offset_of(row, outer_extents_, outer_strides_);
    if constexpr (std::same_as<Source, strided<T>>) {
      return {first, length_, inner_strides_.size() == 0 ? index{1} : inner_strides_[0]};
    } else {
      return {first, &inner_extents_, &inner_strides_, length_};
    }
  }
  /// How many sources from `row` on begin side by side.
  [[nodiscard]] index side_by_side(index row) const noexcept {
    const int last = outer_extents_.size() - 1;
    return last < 0 || outer_strides_[last] != 1 ? 1 : outer_extents_[last] - row % outer_extents_[last];
  }
  /// The rows from `row` on, at most `most`, as far as they are one stride apart.
  [[nodiscard]] grid<T> grid_at(index row, index most) const noexcept
    requires std::same_as<Source, strided<T>>
  {
    const auto [first, length, stride] = (*this)[row];
    const int last = outer_extents_.size() - 1;
    if (last < 0) return {first, 1, length, stride, 0};
    return {first, std::min(most, outer_extents_[last] - row % outer_extents_[last]), length, stride, outer_strides_[last]};
  }

 private:
  T* data_;
  shape outer_extents_, outer_strides_, inner_extents_, inner_strides_;
  index count_;
  index length_;
};

template <class T>
using row_slices = slices<T, strided<T>>;

/// The rows of a view along its last axis.
template <class T>
row_slices<T> rows(const view<T>& v) {
  if (v.rank() == 0) throw_shape("rows need a view of rank 1 or more; got rank 0");
  return {v, 1};
}

/// One source as a batch of one.
template <source Source>
struct single {
  Source source;
  [[nodiscard]] constexpr index size() const noexcept { return 1; }
  constexpr const Source& operator[](index) const noexcept { return source; }
  [[nodiscard]] constexpr index side_by_side(index) const noexcept { return 1; }
};
template <source Source>
single(Source) -> single<Source>;

/// Calls body(batch) with the slices along the last `inner` axes, by the cheapest source that their strides allow.
template <class T, class Body>
void with_slices(const view<T>& x, int inner, const Body& body) {
  const slices<T, strided<T>> simple(x, inner);
  if (simple.is_strided()) {
    body(simple);
  } else {
    body(slices<T, lattice<T>>(x, inner));
  }
}

/// Many sources, each seen through a projection.
template <class Batch, class Projection>
struct projected_batch {
  const Batch& batch;
  const Projection& projection;
  [[nodiscard]] index size() const { return batch.size(); }
  auto operator[](index row) const { return seen(batch[row]); }
  auto joined(index first, index last) const
    requires requires(const Batch& b) { b.joined(first, last); }
  {
    return seen(batch.joined(first, last));
  }
  index length() const
    requires requires(const Batch& b) { b.length(); }
  {
    return batch.length();
  }
  index before(index row) const
    requires requires(const Batch& b) { b.before(row); }
  {
    return batch.before(row);
  }
  auto grid_at(index row, index most) const
    requires std::same_as<Projection, std::identity> && requires(const Batch& b) { b.grid_at(index{}, index{}); }
  {
    return batch.grid_at(row, most);
  }
  index side_by_side(index row) const
    requires std::same_as<Projection, std::identity> && requires(const Batch& b) { b.side_by_side(index{}); }
  {
    return batch.side_by_side(row);
  }

 private:
  auto seen(const auto& some) const {
    if constexpr (stays<Projection>) {
      return regroup::project(some, std::cref(projection));
    } else {
      return regroup::project(some, projection);
    }
  }
};

/// Throws offsets_error unless offsets begin at 0, never decrease and end at the number of elements.
template <class Offsets>
void require_offsets(const Offsets& offsets, index elements) {
  static_assert(std::integral<element_of<Offsets>>, "regroup: segment offsets are integers");
  if (offsets.size() == 0) throw_offsets("segment offsets need at least one entry, 0; got none");
  const auto at = [&](index s) { return offsets[s]; };
  if (at(0) != 0) {
    throw_offsets("segment offsets are positions, not lengths: they must begin at 0; got " + std::to_string(at(0)));
  }
  for (index s = 0; s + 1 < offsets.size(); ++s) {
    if (at(s + 1) < at(s)) {
      throw_offsets("segment offsets must not decrease; entry " + std::to_string(s + 1) + " is " + std::to_string(at(s + 1)) +
                    " after " + std::to_string(at(s)));
    }
  }
  if (static_cast<index>(at(offsets.size() - 1)) != elements) {
    throw_offsets("segment offsets must end at the number of elements, " + std::to_string(elements) + "; the last is " +
                  std::to_string(at(offsets.size() - 1)));
  }
}

/// Consecutive pieces of a source between offsets: piece s is [offsets[s], offsets[s + 1]).
template <class Source, class Offsets>
class segments {
  template <class, class>
  friend class segments;

 public:
  segments(const Source& elements, const Offsets& offsets) : elements_(elements), offsets_(offsets) {
    require_offsets(offsets, elements.size());
  }
  [[nodiscard]] index size() const { return offsets_.size() - 1; }
  /// The elements before a segment, which follow each other.
  [[nodiscard]] index before(index s) const { return static_cast<index>(offsets_[s]); }
  auto operator[](index s) const { return joined(s, s + 1); }
  /// The elements of the segments [first, last).
  auto joined(index first, index last) const { return piece_of(elements_, before(first), before(last) - before(first)); }
  /// The same pieces of another source, which is as long.
  template <class Other>
  [[nodiscard]] segments<Other, Offsets> of(const Other& elements) const {
    return {elements, offsets_, std::true_type{}};
  }

 private:
  segments(const Source& elements, const Offsets& offsets, std::true_type /*are checked*/)
      : elements_(elements), offsets_(offsets) {}

  Source elements_;
  Offsets offsets_;
};

}  // namespace regroup

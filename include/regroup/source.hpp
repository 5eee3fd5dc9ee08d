// SPDX-License-Identifier: Apache-2.0
// What a fold reads. A *source* has `size()` and `operator[](position)`; a *batch* is many sources: `size()` and
// `operator[](row)`. Ranges, rows, axes, segments, runs and index functions all become batches of sources.
#pragma once

#include <concepts>
#include <functional>
#include <iterator>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "regroup/error.hpp"
#include "regroup/monoid.hpp"
#include "regroup/view.hpp"

namespace regroup {

/// Elements at a fixed stride: the source of a row, a column or a contiguous range.
template <class T>
struct strided {
  T* first = nullptr;
  index count = 0;
  index stride = 1;

  [[nodiscard]] constexpr index size() const noexcept { return count; }
  constexpr T& operator[](index i) const noexcept { return first[i * stride]; }
  /// A pointer to the elements if they are contiguous, else nullptr.
  [[nodiscard]] constexpr T* contiguous() const noexcept { return stride == 1 || count <= 1 ? first : nullptr; }
};

/// All elements of a view in C order, whatever its strides: the source of several axes reduced together.
template <class T>
struct lattice {
  T* first = nullptr;
  const shape* extents = nullptr;  // kept by the batch
  const shape* strides = nullptr;
  index count = 0;

  [[nodiscard]] constexpr index size() const noexcept { return count; }
  constexpr T& operator[](index i) const noexcept { return first[offset_of(i, *extents, *strides)]; }
};

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
      return coalesced(view<T>(v.data(), shape(std::span(v.extents().begin() + first, v.extents().begin() + last)),
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

// As in monoid.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// The elements f(0), ..., f(count - 1), computed when they are read: `generate(n, [](index i) { return ...; })`.
/// `f` may be called more than once for a position and from any thread.
template <class F>
struct generate {
  index count;
  F f;
  generate(index n, F function) : count(n), f(std::move(function)) {
    if (n < 0) throw_argument("generate needs a count of 0 or more; got " + std::to_string(n));
  }
  [[nodiscard]] constexpr index size() const noexcept { return count; }
  constexpr decltype(auto) operator[](index i) const { return f(i); }
};

/// A random-access range as a source.
template <std::random_access_iterator I>
struct iterated {
  I first;
  index count = 0;
  [[nodiscard]] constexpr index size() const noexcept { return count; }
  constexpr decltype(auto) operator[](index i) const { return first[static_cast<std::iter_difference_t<I>>(i)]; }
};

/// Whether a projection takes an element and its position in its range, row or segment.
template <class Projection, class X>
inline constexpr bool takes_position = !std::invocable<const Projection&, X> && std::invocable<const Projection&, X, index>;

/// A source seen through a projection: a member pointer or a function of an element, as in std::ranges, or of its position too.
template <class Source, class Projection>
struct projected {
  static constexpr bool is_numbered = takes_position<Projection, decltype(std::declval<const Source&>()[index{}])>;
  Source source;
  Projection projection;
  [[nodiscard]] constexpr index size() const noexcept { return source.size(); }
  constexpr decltype(auto) operator[](index i) const {
    if constexpr (is_numbered) {
      return std::invoke(projection, source[i], i);
    } else {
      return std::invoke(projection, source[i]);
    }
  }
};

#if defined(__clang__)
#pragma clang attribute pop
#endif

/// The positions [first, first + count) of a source.
template <class Source>
struct piece {
  Source source;
  index first = 0;
  index count = 0;
  [[nodiscard]] constexpr index size() const noexcept { return count; }
  constexpr decltype(auto) operator[](index i) const { return source[first + i]; }
  [[nodiscard]] constexpr auto contiguous() const noexcept
    requires requires { source.contiguous(); }
  {
    const auto data = source.contiguous();
    return data == nullptr ? data : data + first;
  }
};

/// An index function that can be told to begin elsewhere, as `enumerate` can.
template <class F>
concept numbering = requires(const F& f, index first) {
  { f.from(first) } -> std::same_as<std::remove_cv_t<F>>;
  f.values;
};

/// A source computed by a `numbering`.
template <class Source>
concept numbered = numbering<decltype(Source::f)>;

/// Elements [first, first + count) of a source. A numbered source stays a generated source, numbered from `first`; any other
/// is wrapped in a `piece`.
template <class Source>
constexpr auto piece_of(const Source& s, index first, index count) {
  if constexpr (numbered<Source>) {
    return generate(count, s.f.from(first));
  } else {
    return piece<Source>{s, first, count};
  }
}

/// What a fold reads.
template <class S>
concept source = std::copy_constructible<S> && requires(const S& s, index i) {
  { s.size() } -> std::same_as<index>;
  s[i];
};

template <source Source>
using element_of = std::remove_cvref_t<decltype(std::declval<const Source&>()[index{}])>;
template <class Batch>
using source_in = std::remove_cvref_t<decltype(std::declval<const Batch&>()[index{}])>;
template <class Batch>
using element_in = element_of<source_in<Batch>>;

/// The type that is written to an output: its element type, or its member type `place` if writing converts.
template <source Out>
struct place_in {
  using type = element_of<Out>;
};
template <source Out>
  requires requires { typename Out::place; }
struct place_in<Out> {
  using type = typename Out::place;
};
template <source Out>
using place_of = typename place_in<Out>::type;

/// A pointer to the elements of a source if they are contiguous, else nullptr.
template <source Source>
constexpr auto contiguous(const Source& s) noexcept {
  if constexpr (requires { s.contiguous(); }) {
    return s.contiguous();
  } else {
    return static_cast<const element_of<Source>*>(nullptr);
  }
}

/// Where the elements from `first` on lie in memory, or nullptr.
template <source Source>
constexpr auto contiguous_from(const Source& s, index first) noexcept {
  if constexpr (requires { s.contiguous(); }) {
    const auto all = s.contiguous();
    return all == nullptr ? all : all + first;
  } else {
    return nullptr;
  }
}

/// Any range of rank 1 as a source: a contiguous range or a view of rank 1, a random-access range, or a source.
template <class R>
constexpr auto as_source(const R& range) {
  if constexpr (has_axes<R>) {
    const auto v = view(range);
    if (v.rank() != 1) {
      throw_shape("a sequence of elements needs a view of rank 1; got shape " + to_string(v.extents()));
    }
    return strided<typename decltype(v)::element_type>{v.data(), v.extent(0), v.stride(0)};
  } else if constexpr (std::ranges::contiguous_range<const R>) {
    using element = std::remove_reference_t<std::ranges::range_reference_t<const R>>;
    return strided<element>{std::ranges::data(range), static_cast<index>(std::ranges::size(range)), 1};
  } else if constexpr (std::ranges::random_access_range<const R> && std::ranges::sized_range<const R>) {
    return iterated<std::ranges::iterator_t<const R>>{std::ranges::begin(range),
                                                      static_cast<index>(std::ranges::size(range))};
  } else {
    static_assert(source<R>,
                  "regroup: elements come as a random-access range, a view, or anything with `size()` (64-bit) and "
                  "`operator[](position)`");
    return range;
  }
}

template <source Source, class Projection>
constexpr auto project(const Source& s, const Projection& projection) {
  if constexpr (std::same_as<Projection, std::identity>) {
    return s;
  } else {
    return projected<Source, Projection>{s, projection};
  }
}

/// One source as a batch of one.
template <source Source>
struct single {
  Source source;
  [[nodiscard]] constexpr index size() const noexcept { return 1; }
  constexpr const Source& operator[](index) const noexcept { return source; }
};
template <source Source>
single(Source) -> single<Source>;

/// Many sources of one type: the rows of a view, segments, runs, or one range.
template <class B>
concept batch = requires(const B& b, index i) {
  { b.size() } -> std::same_as<index>;
  requires source<std::remove_cvref_t<decltype(b[i])>>;
};

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
  auto operator[](index row) const { return project(batch[row], projection); }
  auto grid_at(index row, index most) const
    requires std::same_as<Projection, std::identity> && requires(const Batch& b) { b.grid_at(index{}, index{}); }
  {
    return batch.grid_at(row, most);
  }
};

/// Consecutive pieces of a source between offsets: piece s is [offsets[s], offsets[s + 1]).
template <class Source, class Offsets>
class segments {
 public:
  segments(const Source& elements, const Offsets& offsets) : elements_(elements), offsets_(offsets) {
    static_assert(std::integral<element_of<Offsets>>, "regroup: segment offsets are integers");
    if (offsets.size() == 0) throw_offsets("segment offsets need at least one entry, 0; got none");
    const auto at = [&](index s) { return static_cast<index>(offsets[s]); };
    if (at(0) != 0) throw_offsets("segment offsets must begin at 0; got " + std::to_string(at(0)));
    for (index s = 0; s + 1 < offsets.size(); ++s) {
      if (at(s + 1) < at(s)) {
        throw_offsets("segment offsets must not decrease; entry " + std::to_string(s + 1) + " is " +
                      std::to_string(at(s + 1)) + " after " + std::to_string(at(s)));
      }
    }
    if (at(offsets.size() - 1) != elements.size()) {
      throw_offsets("segment offsets must end at the number of elements, " + std::to_string(elements.size()) +
                    "; the last is " + std::to_string(at(offsets.size() - 1)));
    }
  }
  [[nodiscard]] index size() const { return offsets_.size() - 1; }
  auto operator[](index s) const {
    const auto first = static_cast<index>(offsets_[s]);
    return piece_of(elements_, first, static_cast<index>(offsets_[s + 1]) - first);
  }

 private:
  Source elements_;
  Offsets offsets_;
};

}  // namespace regroup

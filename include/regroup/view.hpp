// SPDX-License-Identifier: Apache-2.0
// Where elements are: a `view` is a pointer with run-time extents and strides. It owns and copies nothing.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/error.hpp"
#include "regroup/monoid.hpp"

namespace regroup {

/// NumPy's limit.
inline constexpr int max_rank = 64;

/// A short list of extents, strides or axes, kept in place. Numbers of any integral type will do: `{rows, x.size() / rows}`.
class shape {
  struct number {
    index value;
    template <std::integral I>
    constexpr number(I n) noexcept : value(static_cast<index>(n)) {}  // NOLINT: implicit on purpose
  };

 public:
  constexpr shape() noexcept = default;
  constexpr shape(std::initializer_list<number> values) {
    for (const number n : values) push_back(n.value);
  }
  template <std::ranges::input_range R>
    requires(!std::same_as<std::remove_cvref_t<R>, shape>) && std::convertible_to<std::ranges::range_value_t<R>, index>
  constexpr shape(const R& values) {  // NOLINT: implicit on purpose
    for (const auto value : values) push_back(static_cast<index>(value));
  }
  constexpr shape(const shape& other) noexcept { *this = other; }
  constexpr shape& operator=(const shape& other) noexcept {
    size_ = other.size_;
    for (std::size_t i = 0; i < size_; ++i) values_[i] = other.values_[i];
    return *this;
  }

  constexpr void push_back(index value) {
    if (size_ == values_.size()) throw_shape("at most " + std::to_string(max_rank) + " axes are supported");
    values_[size_++] = value;
  }
  [[nodiscard]] constexpr int size() const noexcept { return static_cast<int>(size_); }
  constexpr index& operator[](int axis) noexcept { return values_[static_cast<std::size_t>(axis)]; }
  constexpr index operator[](int axis) const noexcept { return values_[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] constexpr index* begin() noexcept { return values_.data(); }
  [[nodiscard]] constexpr index* end() noexcept { return values_.data() + size_; }
  [[nodiscard]] constexpr const index* begin() const noexcept { return values_.data(); }
  [[nodiscard]] constexpr const index* end() const noexcept { return values_.data() + size_; }
  friend constexpr bool operator==(const shape& a, const shape& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::size_t size_ = 0;
  std::array<index, max_rank> values_;  // only the first size_ are read
};

/// "(2, 3, 5)", for messages.
std::string to_string(const shape& s);

/// Throws shape_error unless every extent is 0 or more and the elements can be counted, those of axes of extent 0 aside.
constexpr void require_countable(const shape& extents) {
  index n = 1;
  for (const index extent : extents) {
    if (extent < 0) throw_shape("a view's extents cannot be negative; got " + to_string(extents));
    if (extent > 0 && __builtin_mul_overflow(n, extent, &n)) {
      throw_shape("a view has fewer than 2^63 elements; got extents " + to_string(extents));
    }
  }
}

/// The strides of a C-order array. Throws shape_error as a view of these extents does.
constexpr shape row_major(const shape& extents) {
  require_countable(extents);
  shape strides = extents;
  index step = 1;
  for (int a = extents.size() - 1; a >= 0; --a) {
    strides[a] = step;
    step *= std::max<index>(extents[a], 1);
  }
  return strides;
}

/// An mdspan or a type like it, whose elements are those in memory: an accessor that makes them from these is no view.
template <class V>
concept mdspan_like = requires(const V& v) {
  v.data_handle();
  v.rank();
  { v.extent(0) } -> std::convertible_to<index>;
  { v.stride(0) } -> std::convertible_to<index>;
} && (!requires { typename V::reference; } || std::same_as<typename V::reference, typename V::element_type&>);

/// A strided array of any rank that somebody else owns: a pointer, extents and strides, both in elements. Strides may be
/// zero or negative. Built implicitly from containers and spans (rank 1) and from anything mdspan-like; a view to write through
/// not from a temporary container.
template <class T>
class view {
 public:
  using element_type = T;

  constexpr view() noexcept : extents_{0}, strides_{1} {}
  /// C order.
  constexpr view(T* data, const shape& extents) : view(data, extents, row_major(extents)) {}
  constexpr view(T* data, const shape& extents, const shape& strides)
      : data_(data), extents_(extents), strides_(strides) {
    if (extents.size() != strides.size()) {
      throw_shape("a view needs one stride an axis; got extents " + to_string(extents) + " and strides " +
                  to_string(strides));
    }
    require_countable(extents);
  }
  template <std::ranges::contiguous_range R>
    requires(std::ranges::borrowed_range<R> || std::is_const_v<T>) &&
            std::convertible_to<std::remove_reference_t<std::ranges::range_reference_t<R>> (*)[], T (*)[]>
  constexpr view(R&& range)  // NOLINT: implicit on purpose
      : data_(std::ranges::data(range)), extents_{static_cast<index>(std::ranges::size(range))}, strides_{1} {}
  /// C order, of memory that a container or span holds; throws shape_error where it is shorter.
  template <std::ranges::contiguous_range R>
    requires(std::ranges::borrowed_range<R> || std::is_const_v<T>) &&
            std::convertible_to<std::remove_reference_t<std::ranges::range_reference_t<R>> (*)[], T (*)[]>
  constexpr view(R&& range, const shape& extents) : view(std::ranges::data(range), extents) {
    if (size() > static_cast<index>(std::ranges::size(range))) {
      throw_shape("a view of shape " + to_string(extents) + " needs " + std::to_string(size()) + " elements; there are " +
                  std::to_string(std::ranges::size(range)));
    }
  }
  template <mdspan_like V>
  constexpr view(const V& other) : data_(other.data_handle()) {  // NOLINT: implicit on purpose
    for (std::size_t a = 0; a < other.rank(); ++a) {
      extents_.push_back(static_cast<index>(other.extent(a)));
      strides_.push_back(static_cast<index>(other.stride(a)));
    }
    require_countable(extents_);
  }
  template <class U>
    requires(std::is_const_v<T> && std::same_as<const U, T>)
  constexpr view(const view<U>& other)  // NOLINT: implicit on purpose
      : data_(other.data()), extents_(other.extents()), strides_(other.strides()) {}

  [[nodiscard]] constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr int rank() const noexcept { return extents_.size(); }
  [[nodiscard]] constexpr const shape& extents() const noexcept { return extents_; }
  [[nodiscard]] constexpr const shape& strides() const noexcept { return strides_; }
  [[nodiscard]] constexpr index extent(int axis) const noexcept { return extents_[axis]; }
  [[nodiscard]] constexpr index stride(int axis) const noexcept { return strides_[axis]; }
  /// The number of elements.
  [[nodiscard]] constexpr index size() const noexcept {
    index n = 1;
    for (const index extent : extents_) n *= extent;
    return n;
  }

  template <std::convertible_to<index>... I>
  constexpr T& operator()(I... i) const noexcept {
    index offset = 0;
    int axis = 0;
    ((offset += static_cast<index>(i) * strides_[axis++]), ...);
    return data_[offset];
  }
  /// The `i`-th subarray along the first axis, one rank lower. Throws shape_error for rank 0.
  [[nodiscard]] constexpr view operator[](index i) const {
    if (rank() == 0) throw_shape("a view of rank 0 is one element and has no subarrays; read it as v()");
    return {data_ + i * strides_[0], shape(std::span(extents_.begin() + 1, extents_.end())),
            shape(std::span(strides_.begin() + 1, strides_.end()))};
  }
  /// The same elements with their axes in another order: axis `a` of the result is axis `order[a]` of this. Negative axes count
  /// from the end. Throws shape_error unless each axis is named once.
  [[nodiscard]] constexpr view permuted(const shape& order) const {
    shape extents;
    shape strides;
    std::array<bool, max_rank> is_named = {};
    for (const index axis : order) {
      const index a = axis < 0 ? axis + rank() : axis;
      if (order.size() != rank() || a < 0 || a >= rank() || std::exchange(is_named[static_cast<std::size_t>(a)], true)) {
        throw_shape("a permutation names each of " + std::to_string(rank()) + " axes once; got " + to_string(order));
      }
      extents.push_back(extents_[static_cast<int>(a)]);
      strides.push_back(strides_[static_cast<int>(a)]);
    }
    return {data_, extents, strides};
  }

 private:
  T* data_ = nullptr;
  shape extents_;
  shape strides_;
};

template <std::ranges::contiguous_range R>
view(R&& range) -> view<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
template <std::ranges::contiguous_range R>
view(R&& range, const shape&) -> view<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
template <mdspan_like V>
view(const V& other) -> view<typename V::element_type>;

/// The type of the elements of a view, or of what becomes one, without const.
template <class V>
using element_of_view = std::remove_const_t<typename decltype(view(std::declval<const V&>()))::element_type>;

namespace detail {
template <class T>
void takes_view(const view<T>&);
}
/// An array with axes, whatever their number: a view, or of a class derived from one, or mdspan-like.
template <class V>
concept has_axes = mdspan_like<V> || requires(const V& v) { detail::takes_view(v); };

/// The offset of the element at position `i` in C order of `extents`.
constexpr index offset_of(index i, const shape& extents, const shape& strides) noexcept {
  index offset = 0;
  for (int a = extents.size() - 1; a > 0; --a) {
    offset += (i % extents[a]) * strides[a];
    i /= extents[a];
  }
  return extents.size() == 0 ? 0 : offset + i * strides[0];
}

/// The same view with axes of extent one dropped and neighbouring axes joined where one stride reaches both.
template <class T>
constexpr view<T> coalesced(const view<T>& v) {
  shape extents;
  shape strides;
  for (int a = 0; a < v.rank(); ++a) {
    if (v.extent(a) == 1) continue;
    const int last = extents.size() - 1;
    if (last >= 0 && strides[last] == v.stride(a) * v.extent(a)) {
      extents[last] *= v.extent(a);
      strides[last] = v.stride(a);
    } else {
      extents.push_back(v.extent(a));
      strides.push_back(v.stride(a));
    }
  }
  return {v.data(), extents, strides};
}

/// The view with the given axes moved to the end, all in ascending order. Negative axes count from the end.
template <class T>
view<T> axes_last(const view<T>& x, const shape& axes) {
  std::vector<bool> is_reduced(static_cast<std::size_t>(x.rank()), false);
  for (index a : axes) {
    const index axis = a < 0 ? a + x.rank() : a;
    if (axis < 0 || axis >= x.rank()) {
      throw_shape("axis " + std::to_string(a) + " does not exist in shape " + to_string(x.extents()));
    }
    if (is_reduced[static_cast<std::size_t>(axis)]) throw_shape("axis " + std::to_string(a) + " is named twice");
    is_reduced[static_cast<std::size_t>(axis)] = true;
  }
  shape order;
  for (const bool reduced : {false, true}) {
    for (int a = 0; a < x.rank(); ++a) {
      if (is_reduced[static_cast<std::size_t>(a)] == reduced) order.push_back(a);
    }
  }
  return x.permuted(order);
}

}  // namespace regroup

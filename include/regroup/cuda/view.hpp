// SPDX-License-Identifier: Apache-2.0
// Where elements are on a device: a pointer into device memory with extents and strides. A type of its own, so that host
// memory never reaches a kernel; a `view` of host memory does not convert to it, nor it to one.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include "regroup/cuda/batch.hpp"
#include "regroup/outputs.hpp"
#include "regroup/view.hpp"

namespace regroup::cuda {

/// A strided array of any rank in device memory that somebody else owns; extents and strides in elements, as in `view`.
/// Throws argument_error where the pointer is null (and there are elements) or not aligned for T, and shape_error as `view`
/// does. The memory itself is not checked.
template <class T>
class device_view {
 public:
  using element_type = T;

  device_view(T* data, const shape& extents) : device_view(data, extents, row_major(extents)) {}
  device_view(T* data, const shape& extents, const shape& strides) : view_(data, extents, strides) {
    if (view_.size() > 0 && data == nullptr) {
      throw_argument("a device_view of " + std::to_string(view_.size()) + " elements needs their address; got null");
    }
    if (reinterpret_cast<std::uintptr_t>(data) % alignof(T) != 0) {
      throw_argument("a device_view's elements must be aligned to " + std::to_string(alignof(T)) +
                     " bytes; the address is a multiple of " + std::to_string(alignment_of(data)));
    }
  }
  template <class U>
    requires std::same_as<const U, T>
  device_view(const device_view<U>& other)  // NOLINT: implicit on purpose
      : device_view(other.data(), other.extents(), other.strides()) {}

  [[nodiscard]] T* data() const noexcept { return view_.data(); }
  [[nodiscard]] int rank() const noexcept { return view_.rank(); }
  [[nodiscard]] const shape& extents() const noexcept { return view_.extents(); }
  [[nodiscard]] const shape& strides() const noexcept { return view_.strides(); }
  [[nodiscard]] index size() const noexcept { return view_.size(); }

  /// The same elements with one axis, or some, moved behind the others; negative axes count from the end. Throws shape_error
  /// where there is no such axis.
  [[nodiscard]] device_view axis_last(int axis) const { return with_axes_last({axis}); }
  [[nodiscard]] device_view with_axes_last(const shape& axes) const {
    const auto permuted = axes_last(view_, axes);
    return {permuted.data(), permuted.extents(), permuted.strides()};
  }
  /// A row along the last `inner` axes for each index of the others, of any strides. Throws shape_error where more than 16
  /// axes cannot be joined.
  template <class Projection = std::identity>
  [[nodiscard]] walked_batch<T, Projection> rows_along(int inner, const Projection& projection = {}) const {
    const auto joined = [this](int from, int to) {
      const view<T> some(data(), shape(std::span(extents().begin() + from, extents().begin() + to)),
                         shape(std::span(strides().begin() + from, strides().begin() + to)));
      return some.size() == 0 ? view<T>(data(), shape{0}) : coalesced(some);
    };
    const auto outer = joined(0, rank() - inner), own = joined(rank() - inner, rank());
    const auto last = [](const view<T>& v, index none) { return v.rank() == 0 ? none : v.stride(v.rank() - 1); };
    return {{{data(), outer.size(), own.size(), last(outer, 0), last(own, 1), projection}, axes_of(outer)}, axes_of(own)};
  }
  /// The rows along the last axis. Their starts must be one stride apart: throws shape_error otherwise.
  template <class Projection = std::identity>
  [[nodiscard]] row_batch<T, Projection> rows(const Projection& projection = {}) const {
    if (rank() == 0) throw_shape("rows need a view of rank 1 or more; got rank 0");
    const auto batch = rows_along(1, projection);
    if (batch.outer.rank > 1) {
      throw_shape("on a device the rows of a view must be one stride apart; shape " + to_string(extents()) +
                  " with strides " + to_string(strides()) + " has " + std::to_string(batch.outer.rank));
    }
    return batch;
  }
  /// All elements in C order as one row; throws shape_error where one stride does not reach them.
  template <class Projection = std::identity>
  [[nodiscard]] row_batch<T, Projection> one_row(const Projection& projection = {}) const {
    const auto batch = rows_along(rank(), projection);
    if (!batch.is_strided()) {
      throw_shape("on a device a range needs one stride; shape " + to_string(extents()) + " with strides " +
                  to_string(strides()) + " has " + std::to_string(batch.inner.rank));
    }
    return batch;
  }
  /// Throws overlap_error where an output shares memory with this one, which is `whose`.
  template <class U>
  void require_apart_from(const device_view<U>& out, bool in_place_allowed, const char* whose = "the input") const {
    require_apart(view_, view<U>(out.data(), out.extents(), out.strides()), in_place_allowed, whose);
  }
  /// Throws unless an output has a place for each of `count` rows, at one stride, in memory of its own; returns the stride.
  template <class Out>
  index require_places(const device_view<Out>& out, index count) const {
    static_assert(!std::is_const_v<Out>, "regroup: the output is written, so its elements cannot be const");
    regroup::require_places(out.extents(), out.size(), count);
    require_apart_from(out, false);
    return out.one_row().stride;
  }

 private:
  static std::uintptr_t alignment_of(const void* p) {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    return address & (~address + 1);
  }
  static joined_axes axes_of(const view<T>& v) {
    if (v.rank() > most_axes) {
      throw_shape("on a device at most " + std::to_string(most_axes) + " axes may have strides of their own; shape " +
                  to_string(v.extents()) + " with strides " + to_string(v.strides()) + " has " +
                  std::to_string(v.rank()));
    }
    joined_axes axes{v.rank(), {}, {}};
    for (int a = 0; a < v.rank(); ++a) {
      axes.extents[a] = v.extent(a);
      axes.strides[a] = v.stride(a);
    }
    return axes;
  }
  view<T> view_;
};

/// The segments of elements between offsets, which are in device memory and are not checked.
template <class X, class Offset, class Projection = std::identity>
segment_batch<X, Offset, Projection> segments_of(const device_view<X>& xs, const device_view<Offset>& offsets,
                                                 const Projection& projection = {}) {
  static_assert(std::is_integral_v<Offset>, "regroup: segment offsets are integers");
  if (xs.one_row().stride != 1 || offsets.one_row().stride != 1) {
    throw_shape("on a device segments need elements and offsets side by side");
  }
  if (offsets.size() == 0) throw_offsets("segment offsets need at least one entry, 0; got none");
  return {xs.data(), offsets.data(), offsets.size() - 1, xs.size(), projection};
}

template <class V>
inline constexpr bool is_device_view = false;
template <class T>
inline constexpr bool is_device_view<device_view<T>> = true;

/// The caller's device memory for intermediate states: as much as the verb's `_workspace` says, aligned to 16 bytes.
struct workspace {
  void* data = nullptr;
  std::size_t bytes = 0;

  /// Throws argument_error where it is too small, null or misaligned.
  void require(std::size_t needed) const {
    if (bytes < needed) {
      throw_argument("the workspace has " + std::to_string(bytes) + " bytes; this call needs " + std::to_string(needed));
    }
    if (needed > 0 && (data == nullptr || reinterpret_cast<std::uintptr_t>(data) % 16 != 0)) {
      throw_argument("a workspace's address must be a multiple of 16 and not null");
    }
  }
};

}  // namespace regroup::cuda

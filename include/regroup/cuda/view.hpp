// SPDX-License-Identifier: Apache-2.0
// Where elements are on a device: a pointer into device memory with extents and strides. A type of its own, so that host
// memory never reaches a kernel; a `view` of host memory does not convert to it, nor it to one.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include "regroup/cuda/batch.hpp"
#include "regroup/view.hpp"

namespace regroup::cuda {

/// A strided array of any rank in device memory that somebody else owns; extents and strides in elements, as in `view`.
/// Throws argument_error where the pointer is null (and there are elements) or not aligned for T, and shape_error as
/// `view` does. The memory itself is not looked at.
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

  /// The same elements with one axis, -1 the last, moved behind the others; throws shape_error where there is none such.
  [[nodiscard]] device_view axis_last(int axis) const {
    const auto turned = axes_last(view_, {axis});
    return {turned.data(), turned.extents(), turned.strides()};
  }
  /// The rows along the last axis. Their starts must be one stride apart: throws shape_error otherwise.
  template <class Projection = std::identity>
  [[nodiscard]] row_batch<T, Projection> rows(const Projection& projection = {}) const {
    if (rank() == 0) throw_shape("rows need a view of rank 1 or more; got rank 0");
    const auto outer = coalesced(view<T>(data(), shape(std::span(extents().begin(), extents().end() - 1)),
                                         shape(std::span(strides().begin(), strides().end() - 1))));
    if (outer.rank() > 1) {
      throw_shape("on a device the rows of a view must be one stride apart; shape " + to_string(extents()) +
                  " with strides " + to_string(strides()) + " has " + std::to_string(outer.rank()));
    }
    const int last = rank() - 1;
    return {data(), outer.size(), extents()[last], outer.rank() == 0 ? 0 : outer.stride(0), strides()[last], projection};
  }
  /// All elements in C order as one row; throws shape_error where one stride does not reach them.
  template <class Projection = std::identity>
  [[nodiscard]] row_batch<T, Projection> one_row(const Projection& projection = {}) const {
    const auto all = coalesced(view_);
    if (all.rank() > 1) {
      throw_shape("on a device a range needs one stride; shape " + to_string(extents()) + " with strides " +
                  to_string(strides()) + " has " + std::to_string(all.rank()));
    }
    return {data(), 1, all.size(), all.size(), all.rank() == 0 ? 1 : all.stride(0), projection};
  }
  /// Throws overlap_error where an output shares memory with this one.
  template <class U>
  void require_apart_from(const device_view<U>& out, bool in_place_allowed) const {
    require_apart(view_, view<U>(out.data(), out.extents(), out.strides()), in_place_allowed);
  }
  /// Throws unless an output has a place for each of `count` rows, at one stride, in memory of its own; returns the stride.
  template <class Out>
  index require_places(const device_view<Out>& out, index count) const {
    static_assert(!std::is_const_v<Out>, "regroup: the output is written, so its elements cannot be const");
    if (out.size() != count) {
      throw_shape("the output needs one place a row, " + std::to_string(count) + "; it has shape " +
                  to_string(out.extents()));
    }
    require_apart_from(out, false);
    return out.one_row().stride;
  }

 private:
  static std::uintptr_t alignment_of(const void* p) {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    return address & (~address + 1);
  }
  view<T> view_;
};

template <class V>
inline constexpr bool is_device_view = false;
template <class T>
inline constexpr bool is_device_view<device_view<T>> = true;

/// A caller's device memory for the states in between: as much as the verb's `_workspace` says, aligned to 16 bytes.
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

// SPDX-License-Identifier: Apache-2.0
// The scans on cuda::device: of a range, of every row, along one axis, and of segments, with the bits of `seq`. An output has
// the shape of its input and may be exactly it. Ranges, rows and axes take one pass over memory, a read and a write
// (cuda/scan_chain.hpp); segments longer than a tile (4096 elements) are read twice. Where states are large (over 8 bytes), or
// an element together with an answer of another type, a tile is read once more, which a cache may serve. Level: device.
#pragma once

#include <functional>
#include <optional>

#include "regroup/cuda/device.cuh"

namespace regroup {

namespace cuda {

/// Uses the caller's workspace, in stream order, if there is one; else allocates it, and waits.
template <scan_kind Kind, class In, class Out, class M>
void scan_batch(const device& on, const In& in, const Out& out, const M& m, const std::optional<workspace>& w) {
  if (w) return on.scan<Kind>(in, out, m, *w);
  with_workspace(on, on.scan_bytes<Kind>(in, m), [&](const workspace& own) { on.scan<Kind>(in, out, m, own); });
}

template <class X, class Y>
void require_scannable(const device_view<X>& x, const device_view<Y>& y) {
  require_same_extents(x.extents(), y.extents());
  x.require_apart_from(y, true);
}

template <scan_kind Kind, class X, class Y, class M, class Projection>
void scan_rows(const device& on, const device_view<X>& x, const device_view<Y>& y, const M& m,
               const std::optional<workspace>& w, const Projection& projection) {
  require_scannable(x, y);
  if (x.size() == 0) return;  // however many rows of nothing there are
  scan_batch<Kind>(on, input(x).rows(projection), y.rows(), m, w);
}

template <scan_kind Kind, class X, class Y, class M, class Projection>
void scan_range(const device& on, const device_view<X>& x, const device_view<Y>& y, const M& m,
                const std::optional<workspace>& w, const Projection& projection) {
  if (x.rank() != 1) {
    throw_shape("a scan of a range needs a view of rank 1, of rows inclusive_scan_rows; got shape " + to_string(x.extents()));
  }
  scan_rows<Kind>(on, x, y, m, w, projection);
}

template <scan_kind Kind, class X, class Y, class M, class Projection>
void scan_axis(const device& on, const device_view<X>& x, index axis, const device_view<Y>& y, const M& m,
               const std::optional<workspace>& w, const Projection& projection) {
  require_scannable(x, y);
  if (x.size() == 0) return;
  const auto in = input(x).with_axes_last({axis}).rows_along(1, projection);
  const auto out = y.with_axes_last({axis}).rows_along(1);
  scan_batch<Kind>(on, in.strided_rows(), out.strided_rows(), m, w);
}

template <scan_kind Kind, class X, class Offset, class Y, class M, class Projection>
void scan_segments(const device& on, const device_view<X>& xs, const device_view<Offset>& offsets,
                   const device_view<Y>& y, const M& m, const std::optional<workspace>& w,
                   const Projection& projection) {
  require_same_length(xs.size(), y.size());
  xs.require_apart_from(y, true);
  offsets.require_apart_from(y, false, "the offsets");
  scan_batch<Kind>(on, segments_of(input(xs), offsets, projection), segments_of(y, offsets), m, w);
}

}  // namespace cuda

/// The scans (scan.hpp) of a range: a device_view of rank 1 (else shape_error). They wait. Answers are trivially copyable: a
/// fanout's tuples go into an aggregate of the caller's that is made of one.
template <class X, class Y, class M, class Projection = std::identity>
void inclusive_scan(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y, const M& m,
                    const Projection& projection = {}) {
  cuda::scan_range<scan_kind::inclusive>(on, x, y, m, std::nullopt, projection);
}
template <class X, class Y, class M, class Projection = std::identity>
void exclusive_scan(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y, const M& m,
                    const Projection& projection = {}) {
  cuda::scan_range<scan_kind::exclusive>(on, x, y, m, std::nullopt, projection);
}
/// The bytes of workspace that either scan of x needs, and the scans in stream order.
template <class X, class M>
std::size_t scan_workspace(const cuda::device& on, const cuda::device_view<X>& x, const M& m) {
  return on.scan_bytes<scan_kind::exclusive>(cuda::input(x).rows(), m);
}
template <class X, class Y, class M, class Projection = std::identity>
void inclusive_scan_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                         const M& m, const cuda::workspace& w, const Projection& projection = {}) {
  cuda::scan_range<scan_kind::inclusive>(on, x, y, m, w, projection);
}
template <class X, class Y, class M, class Projection = std::identity>
void exclusive_scan_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                         const M& m, const cuda::workspace& w, const Projection& projection = {}) {
  cuda::scan_range<scan_kind::exclusive>(on, x, y, m, w, projection);
}

/// The scan of every row along the last axis; rows must be one stride apart.
template <class X, class Y, class M, class Projection = std::identity>
void inclusive_scan_rows(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y, const M& m,
                         const Projection& projection = {}) {
  cuda::scan_rows<scan_kind::inclusive>(on, x, y, m, std::nullopt, projection);
}
template <class X, class Y, class M, class Projection = std::identity>
void exclusive_scan_rows(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y, const M& m,
                         const Projection& projection = {}) {
  cuda::scan_rows<scan_kind::exclusive>(on, x, y, m, std::nullopt, projection);
}
template <class X, class M>
std::size_t scan_rows_workspace(const cuda::device& on, const cuda::device_view<X>& x, const M& m) {
  return scan_workspace(on, x, m);
}
template <class X, class Y, class M, class Projection = std::identity>
void inclusive_scan_rows_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                              const M& m, const cuda::workspace& w, const Projection& projection = {}) {
  cuda::scan_rows<scan_kind::inclusive>(on, x, y, m, w, projection);
}
template <class X, class Y, class M, class Projection = std::identity>
void exclusive_scan_rows_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                              const M& m, const cuda::workspace& w, const Projection& projection = {}) {
  cuda::scan_rows<scan_kind::exclusive>(on, x, y, m, w, projection);
}

/// The scan along one axis of a view of any strides, each line on its own. At most 16 axes that cannot be joined.
template <class X, class Y, class M, class Projection = std::identity>
void inclusive_scan_axis(const cuda::device& on, const cuda::device_view<X>& x, index axis,
                         const cuda::device_view<Y>& y, const M& m, const Projection& projection = {}) {
  cuda::scan_axis<scan_kind::inclusive>(on, x, axis, y, m, std::nullopt, projection);
}
template <class X, class Y, class M, class Projection = std::identity>
void exclusive_scan_axis(const cuda::device& on, const cuda::device_view<X>& x, index axis,
                         const cuda::device_view<Y>& y, const M& m, const Projection& projection = {}) {
  cuda::scan_axis<scan_kind::exclusive>(on, x, axis, y, m, std::nullopt, projection);
}
template <class X, class M>
std::size_t scan_axis_workspace(const cuda::device& on, const cuda::device_view<X>& x, index axis, const M& m) {
  return on.scan_bytes<scan_kind::exclusive>(cuda::input(x).with_axes_last({axis}).rows_along(1), m);
}
template <class X, class Y, class M, class Projection = std::identity>
void inclusive_scan_axis_into(const cuda::device& on, const cuda::device_view<X>& x, index axis,
                              const cuda::device_view<Y>& y, const M& m, const cuda::workspace& w,
                              const Projection& projection = {}) {
  cuda::scan_axis<scan_kind::inclusive>(on, x, axis, y, m, w, projection);
}
template <class X, class Y, class M, class Projection = std::identity>
void exclusive_scan_axis_into(const cuda::device& on, const cuda::device_view<X>& x, index axis,
                              const cuda::device_view<Y>& y, const M& m, const cuda::workspace& w,
                              const Projection& projection = {}) {
  cuda::scan_axis<scan_kind::exclusive>(on, x, axis, y, m, w, projection);
}

/// The scan of each segment on its own; offsets in device memory, not checked, as in `reduce_segments`.
template <class X, class Offset, class Y, class M, class Projection = std::identity>
void inclusive_scan_segments(const cuda::device& on, const cuda::device_view<X>& x,
                             const cuda::device_view<Offset>& offsets, const cuda::device_view<Y>& y, const M& m,
                             const Projection& projection = {}) {
  cuda::scan_segments<scan_kind::inclusive>(on, x, offsets, y, m, std::nullopt, projection);
}
template <class X, class Offset, class Y, class M, class Projection = std::identity>
void exclusive_scan_segments(const cuda::device& on, const cuda::device_view<X>& x,
                             const cuda::device_view<Offset>& offsets, const cuda::device_view<Y>& y, const M& m,
                             const Projection& projection = {}) {
  cuda::scan_segments<scan_kind::exclusive>(on, x, offsets, y, m, std::nullopt, projection);
}
template <class X, class Offset, class M>
std::size_t scan_segments_workspace(const cuda::device& on, const cuda::device_view<X>& x,
                                    const cuda::device_view<Offset>& offsets, const M& m) {
  return on.scan_bytes<scan_kind::exclusive>(cuda::segments_of(cuda::input(x), offsets), m);
}
template <class X, class Offset, class Y, class M, class Projection = std::identity>
void inclusive_scan_segments_into(const cuda::device& on, const cuda::device_view<X>& x,
                                  const cuda::device_view<Offset>& offsets, const cuda::device_view<Y>& y, const M& m,
                                  const cuda::workspace& w, const Projection& projection = {}) {
  cuda::scan_segments<scan_kind::inclusive>(on, x, offsets, y, m, w, projection);
}
template <class X, class Offset, class Y, class M, class Projection = std::identity>
void exclusive_scan_segments_into(const cuda::device& on, const cuda::device_view<X>& x,
                                  const cuda::device_view<Offset>& offsets, const cuda::device_view<Y>& y, const M& m,
                                  const cuda::workspace& w, const Projection& projection = {}) {
  cuda::scan_segments<scan_kind::exclusive>(on, x, offsets, y, m, w, projection);
}

template <class X, class... Rest>
cuda::refused_memory<X, Rest...> inclusive_scan(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> exclusive_scan(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> inclusive_scan_rows(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> exclusive_scan_rows(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> inclusive_scan_axis(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> exclusive_scan_axis(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> inclusive_scan_segments(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> exclusive_scan_segments(const cuda::device&, const X&, const Rest&...);

}  // namespace regroup

// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp on a GPU, with the bits of the CPU (algorithms/softmax.hpp). A row of up to 8192
// elements is held by 4 threads or by 1, 2, 4 or 8 warps, one of up to 65,536 by a cluster of 2, 4 or 8 blocks: one read and
// one write of memory. Code compiled for devices older than sm_90, which have no clusters, sweeps a row of up to 65,536 by
// tiles in one block: three reads, two of which a cache may serve. A longer row is folded by many blocks, and read once more.
// The choice depends only on the row's length and the device. Needs nvcc with -std=c++20 --expt-relaxed-constexpr. Level:
// device.
#pragma once

#include "regroup/cuda/device.cuh"
#include "regroup/cuda/row_verbs.hpp"
#include "regroup/cuda/segment_rows.hpp"

namespace regroup {

namespace cuda {

/// Runs the work in a workspace of its own, and waits.
template <class Work>
void run_rows(const device& on, const Work& work) {
  with_workspace(on, work.bytes(), [&](const workspace& w) { work.run(on, w); });
}

}  // namespace cuda

/// softmax (algorithms/softmax.hpp) along one axis of a view whose rows are one stride apart; y has x's shape, its element
/// type or a wider floating one, and may be exactly x. Returns when it is done. Throws as the host's, and device_error.
template <class X, class Y>
void softmax(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
             const cuda::softmax_options<cuda::real_of<X>>& options = {}) {
  cuda::run_rows(on, cuda::normalise<softmax_parts::probability>(x, y, options, "softmax"));
}
template <class X, class Y>
void log_softmax(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                 const cuda::softmax_options<cuda::real_of<X>>& options = {}) {
  cuda::run_rows(on, cuda::normalise<softmax_parts::log_probability>(x, y, options, "log_softmax"));
}
/// log(sum exp x) of each row, in C order of the other axes.
template <class X, class Out>
void logsumexp(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Out>& out,
               const logsumexp_options& options = {}) {
  cuda::run_rows(on, cuda::log_sums(x, out, options));
}

/// The bytes of workspace that any of the three needs for x along an axis: none for rows up to 65,536 elements.
template <class X>
std::size_t softmax_workspace(const cuda::device&, const cuda::device_view<X>& x, int axis = -1) {
  using real = cuda::real_of<X>;
  using look = cuda::look_normalise<softmax_parts::log_probability, real>;  // whose map is the larger
  const auto rows = cuda::rows_along(x, axis, "softmax");
  return cuda::workspace_of<real, look>(rows).bytes;
}
/// The same in the caller's workspace, in stream order.
template <class X, class Y>
void softmax_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                  const cuda::workspace& w, const cuda::softmax_options<cuda::real_of<X>>& options = {}) {
  cuda::normalise<softmax_parts::probability>(x, y, options, "softmax").run(on, w);
}
template <class X, class Y>
void log_softmax_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Y>& y,
                      const cuda::workspace& w, const cuda::softmax_options<cuda::real_of<X>>& options = {}) {
  cuda::normalise<softmax_parts::log_probability>(x, y, options, "log_softmax").run(on, w);
}
template <class X, class Out>
void logsumexp_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Out>& out,
                    const cuda::workspace& w, const logsumexp_options& options = {}) {
  cuda::log_sums(x, out, options).run(on, w);
}

/// softmax_segments (algorithms/softmax_segments.hpp) of elements side by side, along one axis. The S + 1 offsets are in device
/// memory and not checked, as in `reduce_segments`. Segments of up to 32 elements get 4 threads each, of up to 1024 a warp, of
/// up to 65,536 a block, which reads them three times. Returns when it is done. Throws as `softmax`.
template <class X, class Offset, class Y>
void softmax_segments(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Offset>& offsets,
                      const cuda::device_view<Y>& y, const cuda::softmax_options<cuda::real_of<X>>& options = {}) {
  cuda::run_rows(on, cuda::normalise_segments<softmax_parts::probability>(x, offsets, y, options, "softmax_segments"));
}
template <class X, class Offset, class Y>
void log_softmax_segments(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Offset>& offsets,
                          const cuda::device_view<Y>& y, const cuda::softmax_options<cuda::real_of<X>>& options = {}) {
  cuda::run_rows(on, cuda::normalise_segments<softmax_parts::log_probability>(x, offsets, y, options, "log_softmax_segments"));
}
template <class X, class Offset, class Out>
void logsumexp_segments(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Offset>& offsets,
                        const cuda::device_view<Out>& out, const logsumexp_options& options = {}) {
  cuda::run_rows(on, cuda::log_sums_of_segments(x, offsets, out, options));
}
/// The bytes of workspace that any of the three needs: none for up to 65,536 elements in all; else up to 40 for each segment,
/// and for every 65,536 elements.
template <class X, class Offset>
std::size_t softmax_segments_workspace(const cuda::device&, const cuda::device_view<X>& x,
                                       const cuda::device_view<Offset>& offsets) {
  using real = cuda::real_of<X>;
  using look = cuda::look_normalise<softmax_parts::log_probability, real>;  // whose map is the larger
  const auto rows = cuda::segments_of(cuda::segmented(x, -1, "softmax_segments"), offsets);
  return cuda::segment_work{rows, rows, softmax_parts::scaled<real>{1}, look{}}.bytes();
}
/// The same in the caller's workspace, in stream order.
template <class X, class Offset, class Y>
void softmax_segments_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Offset>& offsets,
                           const cuda::device_view<Y>& y, const cuda::workspace& w,
                           const cuda::softmax_options<cuda::real_of<X>>& options = {}) {
  cuda::normalise_segments<softmax_parts::probability>(x, offsets, y, options, "softmax_segments").run(on, w);
}
template <class X, class Offset, class Y>
void log_softmax_segments_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Offset>& offsets,
                               const cuda::device_view<Y>& y, const cuda::workspace& w,
                               const cuda::softmax_options<cuda::real_of<X>>& options = {}) {
  cuda::normalise_segments<softmax_parts::log_probability>(x, offsets, y, options, "log_softmax_segments").run(on, w);
}
template <class X, class Offset, class Out>
void logsumexp_segments_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Offset>& offsets,
                             const cuda::device_view<Out>& out, const cuda::workspace& w,
                             const logsumexp_options& options = {}) {
  cuda::log_sums_of_segments(x, offsets, out, options).run(on, w);
}

template <class X, class... Rest>
cuda::refused_memory<X, Rest...> softmax(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> log_softmax(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> logsumexp(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> softmax_segments(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> log_softmax_segments(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> logsumexp_segments(const cuda::device&, const X&, const Rest&...);

}  // namespace regroup

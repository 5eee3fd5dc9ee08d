// SPDX-License-Identifier: Apache-2.0
// reduce on cuda::device: of a range, of the rows or any axes of a view, of segments, and by key, with the bits of `seq`.
// Level: device.
#pragma once

#include <functional>

#include "regroup/cuda/device.cuh"
#include "regroup/cuda/runs.hpp"
#include "regroup/monoids/arithmetic.hpp"

namespace regroup {

namespace cuda {

/// Where the answers go, one a row.
template <class M, class X, class Out>
put_answer<M, Out> output(const device_view<X>& in, const device_view<Out>& out, index count, const M& m) {
  require_place_for<Out, answer_of<M>>();
  return {m, out.data(), in.require_places(out, count)};
}

/// Returns the number of runs and writes their offsets to `offsets`, which has room for two more than there are keys. Waits.
template <class Key>
index find_runs(const device& on, const strided<const Key>& keys, index* offsets) {
  if (keys.size() == 0) return 0;
  const heads_of_runs<Key> heads{keys};
  const one_source in{single{heads}};
  const one_source out{single{starts_of_runs<Key>{heads, offsets, offsets + keys.size() + 1}}};
  index runs = 0;
  with_workspace(on, on.scan_bytes<scan_kind::inclusive>(in, plus<index>{}), [&](const workspace& w) {
    on.scan<scan_kind::inclusive>(in, out, plus<index>{}, w);
    check(cudaMemcpyAsync(&runs, offsets + keys.size() + 1, sizeof runs, cudaMemcpyDeviceToHost, on.stream()),
          "copying the number of runs");
  });
  return runs;
}
template <class T>
device_view<T> places_of_runs(const device_view<T>& places, index runs) {
  static_assert(!std::is_const_v<T>, "regroup: the output is written, so its elements cannot be const");
  require_room_for_runs(places.extents(), runs);
  return {places.data(), {runs}, places.strides()};
}

}  // namespace cuda

/// reduce (reduce.hpp) on a GPU, of a range, or of a view of any rank whose elements have one stride. Returns the host's
/// bits; waits. Throws shape_error, and device_error.
template <class X, class M, class Projection = std::identity>
auto reduce(const cuda::device& on, const cuda::device_view<X>& xs, const M& m, const Projection& projection = {}) {
  static_assert(require_identity<M>());
  const auto row = cuda::input(xs).one_row(projection);
  const cuda::device_buffer result(sizeof(state_of<M>), on.stream());
  cuda::slot<state_of<M>> state;
  cuda::with_workspace(on, on.fold_bytes(row, m), [&](const cuda::workspace& w) {
    on.fold(row, m, cuda::put_state<state_of<M>>{static_cast<state_of<M>*>(result.data())}, w);
    cuda::check(cudaMemcpyAsync(&state, result.data(), sizeof(state_of<M>), cudaMemcpyDeviceToHost, on.stream()),
                "copying the result");
  });
  return regroup::lower(m, state.value);
}
/// The bytes of workspace that `reduce_into` needs.
template <class X, class M>
std::size_t reduce_workspace(const cuda::device& on, const cuda::device_view<X>& xs, const M& m) {
  return on.fold_bytes(cuda::input(xs).one_row(), m);
}
/// The same into one place on the device, in stream order.
template <class X, class Out, class M, class Projection = std::identity>
void reduce_into(const cuda::device& on, const cuda::device_view<X>& xs, const cuda::device_view<Out>& out, const M& m,
                 const cuda::workspace& w, const Projection& projection = {}) {
  on.fold(cuda::input(xs).one_row(projection), m, cuda::output(xs, out, 1, m), w);
}

/// reduce_rows on a GPU: each row along the last axis; `out` has one place a row. Rows of up to 32 elements get 4 threads
/// each if a state has at most 8 bytes; other rows of up to 1024 elements get a warp each; longer ones get a block for each
/// of their ranges of tiles. Rows must be one stride apart. Throws as the host's, and device_error.
template <class X, class M>
std::size_t reduce_rows_workspace(const cuda::device& on, const cuda::device_view<X>& x, const M& m) {
  return on.fold_bytes(cuda::input(x).rows(), m);
}
template <class X, class Out, class M, class Projection = std::identity>
void reduce_rows_into(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Out>& out,
                      const M& m, const cuda::workspace& w, const Projection& projection = {}) {
  const auto rows = cuda::input(x).rows(projection);
  on.fold(rows, m, cuda::output(x, out, rows.size(), m), w);
}
template <class X, class Out, class M, class Projection = std::identity>
void reduce_rows(const cuda::device& on, const cuda::device_view<X>& x, const cuda::device_view<Out>& out, const M& m,
                 const Projection& projection = {}) {
  cuda::with_workspace(on, reduce_rows_workspace(on, x, m),
                       [&](const cuda::workspace& w) { reduce_rows_into(on, x, out, m, w, projection); });
}

/// reduce_axes on a GPU: any axes together, positions in C order of them; `out` has one place for each index of the others,
/// at one stride. At most 16 axes of each kind, not counting those that can be joined because one stride reaches both.
template <class X, class M>
std::size_t reduce_axes_workspace(const cuda::device& on, const cuda::device_view<X>& x, const shape& axes, const M& m) {
  return on.fold_bytes(cuda::input(x).with_axes_last(axes).rows_along(axes.size()), m);
}
template <class X, class Out, class M, class Projection = std::identity>
void reduce_axes_into(const cuda::device& on, const cuda::device_view<X>& x, const shape& axes,
                      const cuda::device_view<Out>& out, const M& m, const cuda::workspace& w,
                      const Projection& projection = {}) {
  const auto rows = cuda::input(x).with_axes_last(axes).rows_along(axes.size(), projection);
  const auto put = cuda::output(x, out, rows.size(), m);
  if (rows.is_strided()) return on.fold(rows.strided_rows(), m, put, w);
  on.fold(rows, m, put, w);
}
template <class X, class Out, class M, class Projection = std::identity>
void reduce_axes(const cuda::device& on, const cuda::device_view<X>& x, const shape& axes,
                 const cuda::device_view<Out>& out, const M& m, const Projection& projection = {}) {
  cuda::with_workspace(on, reduce_axes_workspace(on, x, axes, m),
                       [&](const cuda::workspace& w) { reduce_axes_into(on, x, axes, out, m, w, projection); });
}

/// reduce_segments on a GPU. The S + 1 offsets are in device memory and are not checked: they must begin at 0, end at the
/// number of elements and never decrease. Segments of up to 1024 elements get a warp each; or, if a state has at most 8 bytes
/// and the mean length is at most 32, those of up to 128 elements get 4 threads each. Longer ones are folded as in
/// `reduce_rows`.
template <class X, class Offset, class M>
std::size_t reduce_segments_workspace(const cuda::device& on, const cuda::device_view<X>& xs,
                                      const cuda::device_view<Offset>& offsets, const M& m) {
  return on.fold_bytes(cuda::segments_of(cuda::input(xs), offsets), m);
}
template <class X, class Offset, class Out, class M, class Projection = std::identity>
void reduce_segments_into(const cuda::device& on, const cuda::device_view<X>& xs,
                          const cuda::device_view<Offset>& offsets, const cuda::device_view<Out>& out, const M& m,
                          const cuda::workspace& w, const Projection& projection = {}) {
  const auto segments = cuda::segments_of(cuda::input(xs), offsets, projection);
  offsets.require_apart_from(out, false, "the offsets");
  on.fold(segments, m, cuda::output(xs, out, segments.size(), m), w);
}
template <class X, class Offset, class Out, class M, class Projection = std::identity>
void reduce_segments(const cuda::device& on, const cuda::device_view<X>& xs, const cuda::device_view<Offset>& offsets,
                     const cuda::device_view<Out>& out, const M& m, const Projection& projection = {}) {
  cuda::with_workspace(on, reduce_segments_workspace(on, xs, offsets, m), [&](const cuda::workspace& w) {
    reduce_segments_into(on, xs, offsets, out, m, w, projection);
  });
}

/// reduce_by_key on a GPU: each run of consecutive equal keys. A scan of the keys finds the runs in device memory, 8 bytes a
/// key, which are allocated. Waits, and returns the number of runs. Elements must be contiguous. Throws as the host's, and
/// device_error.
template <class Key, class X, class KeyOut, class Out, class M, class Projection = std::identity>
index reduce_by_key(const cuda::device& on, const cuda::device_view<Key>& keys, const cuda::device_view<X>& xs,
                    const cuda::device_view<KeyOut>& keys_out, const cuda::device_view<Out>& out, const M& m,
                    const Projection& projection = {}) {
  require_one_key_an_element(keys.size(), xs.size());
  const cuda::device_buffer memory(static_cast<std::size_t>(keys.size() + 2) * sizeof(index), on.stream());
  const strided<const std::remove_const_t<Key>> all = cuda::input(keys).one_row()[0];
  auto* const offsets = static_cast<index*>(memory.data());
  const index runs = cuda::find_runs(on, all, offsets);
  const auto first_keys = cuda::places_of_runs(keys_out, runs);
  const auto answers = cuda::places_of_runs(out, runs);
  keys.require_apart_from(first_keys, false, "the keys");
  keys.require_apart_from(answers, false, "the keys");
  xs.require_apart_from(first_keys, false);
  first_keys.require_apart_from(answers, false, "another output");
  if (runs == 0) return 0;
  const cuda::device_view<const index> starts(offsets, {runs + 1});
  cuda::with_workspace(on, reduce_segments_workspace(on, xs, starts, m), [&](const cuda::workspace& w) {
    reduce_segments_into(on, xs, starts, answers, m, w, projection);  // refuses before anything is written
    on.launch(cuda::put_first_keys<std::remove_const_t<Key>, KeyOut>{all, offsets, first_keys.one_row()[0]},
              cuda::smaller((runs + cuda::block_threads - 1) / cuda::block_threads, cuda::most_blocks));
  });
  return runs;
}

template <class X, class... Rest>
cuda::refused_memory<X, Rest...> reduce(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> reduce_rows(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> reduce_axes(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> reduce_by_key(const cuda::device&, const X&, const Rest&...);
template <class X, class... Rest>
cuda::refused_memory<X, Rest...> reduce_segments(const cuda::device&, const X&, const Rest&...);

}  // namespace regroup

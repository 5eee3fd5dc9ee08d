// SPDX-License-Identifier: Apache-2.0
// The verb scan: every prefix of a range, of the rows or one axis of a view, or of segments. The first k results are the scan
// of the first k elements, bitwise; the last equals reduce bitwise for exact monoids, within the bound otherwise. An
// exclusive scan is lower(identity) followed by the inclusive results without the last. The output may be exactly the input.
// Projections are as in reduce.hpp.
#pragma once

#include <functional>

#include "regroup/executor.hpp"
#include "regroup/outputs.hpp"
#include "regroup/require_monoid.hpp"

namespace regroup {

namespace verbs {

/// The answer of a state, as an element of an output. Independent of the executor, like `lowered`.
template <class Place, class M>
auto answer_in(const M& m) {
  require_place_for<Place, answer_of<M>>();
  return [&m](const state_of<M>& s) { return static_cast<Place>(regroup::lower(m, s)); };
}

template <executor Executor, class Batch, class OutBatch, class M, class Projection>
void scan(const Executor& ex, const Batch& in, const OutBatch& out, const M& m, scan_kind kind,
          const Projection& projection) {
  const projected_batch<Batch, Projection> seen{in, projection};
  if constexpr (require_monoid<M, element_of<decltype(seen[0])>>()) {
    ex.scan(seen, out, m, kind, answer_in<place_of<std::remove_cvref_t<decltype(out[0])>>>(m));
  }
}

/// Throws unless a scan along a range can go from x to y: equal lengths, and y is exactly x or shares no memory with it.
template <class Range, class Out>
void require_scannable(const Range& x, const Out& y) {
  require_same_length(as_source(x).size(), as_source(y).size());
  require_own_memory(x, y, true);
}

template <executor Executor, class Range, class Out, class M, class Projection>
void scan_range(const Executor& ex, const Range& x, const view<Out>& out, const M& m, scan_kind kind,
                const Projection& projection) {
  require_scannable(x, out);
  verbs::scan(ex, single{as_source(x)}, single{as_source(out)}, m, kind, projection);
}

template <executor Executor, class View, class Out, class M, class Projection>
void scan_axis(const Executor& ex, const View& x, index axis, const view<Out>& out, const M& m, scan_kind kind,
               const Projection& projection) {
  const auto in = view(x);
  require_same_extents(in.extents(), out.extents());
  regroup::require_apart(in, out, true);
  const auto along = axes_last(in, {axis});
  if (in.size() == 0 && !is_collective<Executor>) return;  // however many rows of nothing there are
  verbs::scan(ex, regroup::rows(along), regroup::rows(axes_last(out, {axis})), m, kind, projection);
}

template <executor Executor, class Range, class Offsets, class Out, class M, class Projection>
void scan_segments(const Executor& ex, const Range& xs, const Offsets& offsets, const view<Out>& out, const M& m,
                   scan_kind kind, const Projection& projection) {
  require_scannable(xs, out);
  require_own_memory(offsets, out, false, "the offsets");
  const segments in(as_source(xs), as_source(offsets));
  verbs::scan(ex, in, in.of(as_source(out)), m, kind, projection);
}

}  // namespace verbs

/// y[i] = lower(x_0 + ... + x_i) along a range. Reads x once; twice where elements, states or answers are not trivially
/// copyable, or elements or answers not trivially default-constructible; and once more a tile that had to wait for others. Uses
/// six tiles of memory a thread; outputs over 8 MiB are written with non-temporal stores. Throws shape_error where lengths
/// differ, overlap_error where y shares memory with x without being exactly x, as far as x is a view or refers to elements at
/// equal distances. If an operator throws, some answers may have been written.
template <executor Executor, class Range, class Out, class M, class Projection = std::identity>
void inclusive_scan(const Executor& ex, const Range& x, Out&& y, const M& m, const Projection& projection = {}) {
  verbs::scan_range(ex, x, regroup::writable(std::forward<Out>(y)), m, scan_kind::inclusive, projection);
}
/// y[0] = lower(identity), y[i] = lower(x_0 + ... + x_{i-1}); otherwise like `inclusive_scan`.
template <executor Executor, class Range, class Out, class M, class Projection = std::identity>
void exclusive_scan(const Executor& ex, const Range& x, Out&& y, const M& m, const Projection& projection = {}) {
  verbs::scan_range(ex, x, regroup::writable(std::forward<Out>(y)), m, scan_kind::exclusive, projection);
}

/// The scan along one axis of a view, each line on its own; y has the shape of x. A negative axis counts from the end. Throws
/// shape_error (rank 0, no such axis, other extents), and overlap_error where y shares memory with x without being exactly x.
///
/// Memory a thread: half a MiB for 16 or more lines side by side, and up to 3 MiB for fewer; contiguous lines take no more than
/// a range. Other lines are copied 16 at a time, up to a tile (4096 elements) of each, with as many answers: 1 MiB where
/// elements and answers have 8 bytes, 4 MiB where they have 32.
template <executor Executor, class View, class Out, class M, class Projection = std::identity>
void inclusive_scan_axis(const Executor& ex, const View& x, index axis, Out&& y, const M& m,
                         const Projection& projection = {}) {
  verbs::scan_axis(ex, x, axis, regroup::writable(std::forward<Out>(y)), m, scan_kind::inclusive, projection);
}
template <executor Executor, class View, class Out, class M, class Projection = std::identity>
void exclusive_scan_axis(const Executor& ex, const View& x, index axis, Out&& y, const M& m,
                         const Projection& projection = {}) {
  verbs::scan_axis(ex, x, axis, regroup::writable(std::forward<Out>(y)), m, scan_kind::exclusive, projection);
}

/// The scan along the last axis. Throws as `inclusive_scan_axis`.
template <executor Executor, class View, class Out, class M, class Projection = std::identity>
void inclusive_scan_rows(const Executor& ex, const View& x, Out&& y, const M& m, const Projection& projection = {}) {
  verbs::scan_axis(ex, x, -1, regroup::writable(std::forward<Out>(y)), m, scan_kind::inclusive, projection);
}
template <executor Executor, class View, class Out, class M, class Projection = std::identity>
void exclusive_scan_rows(const Executor& ex, const View& x, Out&& y, const M& m, const Projection& projection = {}) {
  verbs::scan_axis(ex, x, -1, regroup::writable(std::forward<Out>(y)), m, scan_kind::exclusive, projection);
}

/// The scan of each segment on its own; offsets are as in `reduce_segments`. Throws offsets_error, shape_error where y has
/// not the length of xs, and overlap_error where y shares memory with the offsets, or with xs without being exactly xs.
template <executor Executor, class Range, class Offsets, class Out, class M, class Projection = std::identity>
void inclusive_scan_segments(const Executor& ex, const Range& xs, const Offsets& offsets, Out&& y, const M& m,
                             const Projection& projection = {}) {
  verbs::scan_segments(ex, xs, offsets, regroup::writable(std::forward<Out>(y)), m, scan_kind::inclusive, projection);
}
template <executor Executor, class Range, class Offsets, class Out, class M, class Projection = std::identity>
void exclusive_scan_segments(const Executor& ex, const Range& xs, const Offsets& offsets, Out&& y, const M& m,
                             const Projection& projection = {}) {
  verbs::scan_segments(ex, xs, offsets, regroup::writable(std::forward<Out>(y)), m, scan_kind::exclusive, projection);
}

}  // namespace regroup

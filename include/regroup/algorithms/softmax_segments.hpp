// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp of segments: of each row's entries of a sparse matrix, each node's edges of a graph, each
// sequence of a packed batch. A segment has the bits of a row of its own (softmax.hpp). Level: thread.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/algorithms/softmax.hpp"
#include "regroup/batch.hpp"
#include "regroup/host/chunks.hpp"

namespace regroup {
namespace softmax_parts {

/// The segments of lines, which lie along a view's last axis; its axes from `before` on, but the last, are within a segment. A
/// *piece* is one segment of all lines within; its rows follow each other: row = (lines before, segment, line within).
template <class T>
class segment_rows {
 public:
  segment_rows(const view<T>& lines, int before, const index* offsets, index segments)
      : view_(lines), before_(before), lines_(regroup::rows(lines)), offsets_(offsets), segments_(segments) {
    for (int a = before; a + 1 < lines.rank(); ++a) within_ *= lines.extent(a);
    if (lines_.size() == 1) only_ = lines_[0];
  }
  [[nodiscard]] index size() const noexcept { return lines_.size() * segments_; }
  [[nodiscard]] index within() const noexcept { return within_; }
  strided<T> operator[](index row) const noexcept {
    const auto of = [this](index segment, const strided<T>& line) {
      return strided<T>{line.first + offsets_[segment] * line.stride, offsets_[segment + 1] - offsets_[segment], line.stride};
    };
    if (lines_.size() == 1) return of(row, only_);  // without divisions
    const index piece = row / within_, before = piece / segments_;
    return of(piece % segments_, lines_[before * within_ + row % within_]);
  }
  /// The length of a piece's rows.
  [[nodiscard]] index length(index piece) const noexcept {
    const index segment = piece < segments_ ? piece : piece % segments_;
    return offsets_[segment + 1] - offsets_[segment];
  }
  /// The elements of all pieces before one.
  [[nodiscard]] index before(index piece) const noexcept {
    return piece == 0 ? 0 : within_ * (piece / segments_ * lines_.length() + offsets_[piece % segments_]);
  }
  /// A piece's rows.
  [[nodiscard]] row_slices<T> piece(index piece) const {
    shape extents, strides;
    for (int a = before_; a + 1 < view_.rank(); ++a) {
      extents.push_back(view_.extent(a));
      strides.push_back(view_.stride(a));
    }
    extents.push_back(length(piece));
    strides.push_back(view_.stride(view_.rank() - 1));
    return regroup::rows(view<T>((*this)[piece * within_].first, extents, strides));
  }

 private:
  view<T> view_;
  int before_;
  row_slices<T> lines_;
  strided<T> only_;
  const index* offsets_;
  index segments_, within_ = 1;
};

/// The pieces of a batch of segments, as far as it matters for sharing them out.
template <class T>
struct pieces_of {
  struct extent {
    index elements;
    [[nodiscard]] index size() const noexcept { return elements; }
  };
  const segment_rows<T>& rows;
  [[nodiscard]] index size() const noexcept { return rows.within() == 0 ? 0 : rows.size() / rows.within(); }
  [[nodiscard]] index before(index piece) const noexcept { return rows.before(piece); }
  extent operator[](index piece) const noexcept { return {rows.length(piece) * rows.within()}; }
};

/// each_row for segments. Short ones of few lines go in groups, whatever their lengths; others as rows do, those that have more
/// than a fair share of all elements by all threads. (16 lines across a vector earn what that costs from 9 elements on.)
template <executor Executor, class X, class Out, std::floating_point Real, class Verb>
void each_segment(const Executor& ex, const segment_rows<const X>& in, const Out& out, scaled<Real> seen,
                  const look<Verb>& look) {
  using y = typename output_of<X, Out>::type;
  const pieces_of<const X> pieces{in};
  const index within = in.within();
  const auto alone = [&](const auto& on, index piece) {
    softmax_parts::look<Verb> of_piece = look;
    of_piece.first = piece * within;
    if constexpr (std::same_as<Out, std::nullopt_t>) {
      softmax_parts::each_row_of<X, X>(on, in.piece(piece), std::nullopt, seen, of_piece);
    } else {
      softmax_parts::each_row_of<X, y>(on, in.piece(piece), out.piece(piece), seen, of_piece);
    }
  };
  const auto some = [&](index first, index last) {
    const auto on = worker_of(seq);
    if constexpr (has_row_kernels<X, y>) {
      group_sweep<X, y> sweep(seen);
      const index longest = within == 1                   ? longest_in_group
                            : within < host::abreast     ? 2 * lanes
                            : within < 2 * host::abreast ? host::abreast / 2
                                                         : 0;
      const auto is_short = [&](index piece) { return in.length(piece) <= longest; };
      while (first < last) {
        const index begin = first;
        while (first < last && is_short(first)) ++first;
        host::dispatch([&] { sweep.rows(in, out, begin * within, first * within, look); });
        for (; first < last && !is_short(first); ++first) alone(on, first);
      }
    } else {
      for (; first < last; ++first) alone(on, first);
    }
  };
  const std::vector<host::chunk> chunks = host::cutter(concurrency_of(ex)).for_scan(pieces, 1, 1);
  if (chunks.size() <= 1) return some(0, pieces.size());
  ex.for_each(static_cast<index>(chunks.size()), 1e4, [&](index i) {
    const host::chunk& c = chunks[static_cast<std::size_t>(i)];
    if (!c.is_part) some(c.first, c.last);
  });
  for (const host::chunk& c : chunks) {
    if (c.is_part && c.first == 0) alone(ex, c.row);
  }
}

/// each_segment on a CPU's threads where there are row_kernels from X to Y, compiled by the library, as each_row_compiled is.
template <class X, class Y, class Real, class Map>
void each_segment_compiled(const host::pool& ex, const segment_rows<const X>& in, const segment_rows<Y>& out,
                           scaled<Real> seen, const look_of<Map, Real>& look);
template <class X, class Real>
void each_segment_compiled(const host::pool& ex, const segment_rows<const X>& in, std::nullopt_t, scaled<Real> seen,
                           const look_of<no_map, Real>& look);

template <class X, class Y, class Executor, class In, class... Rest>
void each_segment_of(const Executor& ex, const In& in, const Rest&... rest) {
  static_assert(!is_collective<Executor>,
                "regroup: softmax, log_softmax and logsumexp of segments do not go over ranks; this verb is one rank's, with "
                "ranks.local()");
  if constexpr (has_row_kernels<X, Y> && requires { softmax_parts::each_segment_compiled(ex, in, rest...); }) {
    softmax_parts::each_segment_compiled(ex, in, rest...);
  } else {
    softmax_parts::each_segment(ex, in, rest...);
  }
}

/// Checked offsets in memory, copied unless they lie there as they are used.
template <class Offsets>
class segment_offsets {
 public:
  segment_offsets(const Offsets& offsets, index elements) {
    const auto given = as_source(offsets);
    require_offsets(given, elements);
    count_ = given.size() - 1;
    if constexpr (std::same_as<std::remove_cvref_t<decltype(given[0])>, index>) first_ = contiguous(given);
    if (first_ != nullptr) return;
    copies_.resize(static_cast<std::size_t>(given.size()));
    for (index s = 0; s <= count_; ++s) copies_[static_cast<std::size_t>(s)] = static_cast<index>(given[s]);
    first_ = copies_.data();
  }
  /// The segments of lines along the last axis of a view, which in the whole is its axis `axis`.
  template <class T>
  [[nodiscard]] segment_rows<T> of(const view<T>& lines, int axis) const {
    return {lines, axis < 0 ? axis + lines.rank() : axis, first_, count_};
  }

 private:
  const index* first_ = nullptr;
  index count_;
  std::vector<index> copies_;
};

/// softmax_segments and log_softmax_segments.
template <template <class> class Map, executor Executor, class View, class Offsets, class Y, class Real>
void normalise_segments(const Executor& ex, const View& x, const Offsets& offsets, const view<Y>& y,
                        const softmax_options<Real>& options, const char* verb) {
  const auto from = lines_along(x, options.axis, verb);
  const auto to = output_lines(x, y, options.axis, verb);
  require_own_memory(offsets, y, false, "the offsets");
  const segment_offsets<Offsets> checked(offsets, from.extent(from.rank() - 1));
  const auto in = checked.of(from, options.axis);
  const auto seen = scale_of<Real>(options.scale);
  using places = decltype(verbs::output(x, *options.logsumexp, in.size()));
  std::optional<places> put;
  if (options.logsumexp) {
    regroup::require_apart(y, *options.logsumexp, false, "another output");
    require_own_memory(offsets, *options.logsumexp, false, "the offsets");
    put.emplace(verbs::output(x, *options.logsumexp, in.size()));
  }
  const look<from_state<Map<Real>, Real, places>> look{{seen, put ? &*put : nullptr}};
  softmax_parts::each_segment_of<element_of_view<View>, Y>(ex, in, checked.of(to, options.axis), seen, look);
}

}  // namespace softmax_parts

/// softmax of S segments along one axis of a view, of a container for one: segment s is [offsets[s], offsets[s + 1]) and may be
/// empty, offsets as in `reduce_segments`. Lines along the axis have the same segments: of scores (edges, heads) with `.axis =
/// 0` each node's edges, head by head. Each has the bits of `softmax` over its elements alone. The options' logsumexp has x's
/// shape with S in place of that axis. Throws as `softmax`, offsets_error, and overlap_error where an output shares memory with
/// the offsets. Cost: as rows of those lengths, but of a few elements some three times that of equally long rows (AVX2:
/// bench/results/walls.md); offsets of another type than `index` are copied, and so are short segments that are not contiguous.
template <executor Executor, class View, class Offsets, class Out>
void softmax_segments(const Executor& ex, const View& x, const Offsets& offsets, Out&& y,
                      const softmax_options<softmax_parts::real_in<const View>>& options = {}) {
  softmax_parts::normalise_segments<softmax_parts::probability>(
      worker_of(ex), x, offsets, regroup::writable(std::forward<Out>(y)), options, "softmax_segments");
}
/// log_softmax of segments.
template <executor Executor, class View, class Offsets, class Out>
void log_softmax_segments(const Executor& ex, const View& x, const Offsets& offsets, Out&& y,
                          const softmax_options<softmax_parts::real_in<const View>>& options = {}) {
  softmax_parts::normalise_segments<softmax_parts::log_probability>(
      worker_of(ex), x, offsets, regroup::writable(std::forward<Out>(y)), options, "log_softmax_segments");
}
/// logsumexp of segments: -inf for an empty one. `out` is in C order of x's axes with S in place of the one, or a function of
/// (row, value). (`reduce_segments` with log_sum_exp has the same error bound, and other bits past 4096 elements.)
template <executor Executor, class View, class Offsets, class Out>
void logsumexp_segments(const Executor& ex, const View& x, const Offsets& offsets, Out&& out,
                        const logsumexp_options& options = {}) {
  using real = softmax_parts::real_in<const View>;
  const auto from = softmax_parts::lines_along(x, options.axis, "logsumexp_segments");
  const softmax_parts::segment_offsets<Offsets> checked(offsets, from.extent(from.rank() - 1));
  const auto in = checked.of(from, options.axis);
  require_own_memory(offsets, out, false, "the offsets");
  const auto put = verbs::output(x, std::forward<Out>(out), in.size());
  const auto seen = softmax_parts::scale_of<real>(options.scale);
  using verb = softmax_parts::from_state<softmax_parts::no_map, real, std::remove_const_t<decltype(put)>>;
  const softmax_parts::look<verb> look{{seen, &put}};
  softmax_parts::each_segment_of<element_of_view<View>, element_of_view<View>>(worker_of(ex), in, std::nullopt, seen, look);
}

}  // namespace regroup

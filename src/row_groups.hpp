// SPDX-License-Identifier: Apache-2.0
// Softmax's loops over a group of short rows, for one instruction set. A short row alone waits for its largest element, then
// for its sum. Here a group's rows are swept one after another without waiting; the one pack that is left of each is folded
// together with those of the others. Local to each instruction set's file. Level: lane.
#pragma once

#include "softmax_rows.hpp"

namespace regroup::softmax_parts {
namespace {

template <class X, class Y, class Pack, bool OfWeights, bool Scales>
struct group_loops : row_loops<X, Y, Pack, OfWeights, Scales> {
  using base = row_loops<X, Y, Pack, OfWeights, Scales>;
  using typename base::two, typename base::form, typename base::Real, typename base::maximum_of_numbers, typename base::sums;
  static constexpr index width = Pack::width, pair = 2 * width;
  using group = row_group<X, Y>;

  using base::largest, base::write;
  static constexpr index line = index{cache_line / sizeof(Y)};  // outputs in a line

  /// What is left of each row of a group: one pack.
  class lefts {
   public:
    void set(index row, const Pack& x) { x.store(of_ + place(row)); }
    /// to[k]: the lanes of row k, folded by halving.
    template <class Op>
    void fold(index rows, Real* to, const Op& op) {
      for (index row = rows; row % width != 0; ++row) set(row, Pack::all(0));
      for (index first = 0; first < rows; first += width) {
        packs<Pack, width> x;
        unrolled<width>([&](int i) { x[i] = Pack::load(of_ + (first + i) * width); });
        tiles::folded<Pack>(x, op).store(to + first);
      }
    }

   private:
    static index place(index row) { return (row / width * width + tiles::place_to_fold<Pack>(row % width)) * width; }
    alignas(64) Real of_[static_cast<std::size_t>(group::most * width)];
  };

  /// The largest elements of a row in each lane.
  [[gnu::always_inline]] static Pack largest_in_lanes(const X* x, index length, const Pack& scale) {
    find_pages_ahead(x, static_cast<std::size_t>(length) * sizeof(X));
    maximum_of_numbers top;
    index i = 0;
    for (; i + pair <= length; i += pair) top.template add<true>(x + i, scale, pair);
    if (i < length) top.template add<false>(x + i, scale, length - i);
    return Pack::larger(top.top[0], top.top[1]);
  }
  [[gnu::flatten]] static void largest(const form& f, group& rows) {
    const Pack scale = Pack::all(f.scale);
    lefts left;
    for (index row = 0; row < rows.count; ++row) {
      const X* const x = rows.x[static_cast<std::size_t>(row)];
      left.set(row, largest_in_lanes(x, rows.length[static_cast<std::size_t>(row)], scale));
    }
    left.fold(rows.count, rows.m.data(), Pack::larger);
  }

  /// Weights of n elements from the i-th on, which are kept, and added to the lanes. Meanwhile the places at `y` are
  /// prefetched, and the elements at `later`: this takes the longest, so that least of them wait for one another. (On an Intel
  /// logsumexp of 128 elements is 1.4 times as fast as with the next group prefetched while the largest elements are found.)
  template <bool Whole>
  [[gnu::always_inline]] static void weigh(const X* x, index i, index n, const Pack& scale, const Pack& m, Real* weights,
                                           sums& lane, const Y* y, const X* later) {
    two v;
    base::template load<Whole>(v, x + i, scale, n, m);
    base::fetch(later + i);
    for (index at = i; at < i + pair; at += line) __builtin_prefetch(y + at, 1);
    unrolled<2>([&](int j) { v[j].x = v[j].x - m.x; });
    tiles::decay<Pack, 2>(v);
    if constexpr (!Whole) {
      unrolled<2>([&](int j) {
        v[j] = Pack::first(std::clamp<index>(n - j * width, 0, width), v[j], Pack::all(base::plus_identity));
      });
    }
    tiles::store<Pack>(v, weights + i);
    unrolled<2>([&](int j) {
      Real* const to = lane.lane + i % lanes + j * width;
      if (i >= lanes) v[j].x = Pack::load(to).x + v[j].x;
      v[j].store(to);
    });
  }
  /// The sums of a row's weights in each lane, halved down to one pack.
  [[gnu::always_inline]] static Pack sum_in_lanes(const X* x, index length, const Pack& scale, const Pack& m, Real* weights,
                                                  sums& lane, const Y* y, const X* later) {
    index i = 0;
    for (; i + pair <= length; i += pair) weigh<true>(x, i, pair, scale, m, weights, lane, y, later);
    if (i < length) weigh<false>(x, i, length - i, scale, m, weights, lane, y, later);
    return lane.halved_to_pack();
  }
  [[gnu::flatten]] static void sum(const form& f, group& rows) {
    const Pack scale = Pack::all(f.scale);
    lefts left;
    const index ahead = rows.ahead * index{sizeof(X)};
    sums lane;
    index reached = 0;  // the lanes behind are as they were
    for (index row = 0; row < rows.count; ++row) {
      const auto k = static_cast<std::size_t>(row);
      const index length = rows.length[k], reaches = std::min((length + pair - 1) / pair * pair, lanes);
      for (index i = reaches; i < reached; i += width) Pack::all(base::plus_identity).store(lane.lane + i);
      reached = reaches;
      Real* const weights = rows.weights[k];
      const auto* const written = rows.y[k] == nullptr ? reinterpret_cast<const Y*>(weights) : rows.y[k];
      const X* const x = rows.x[k];
      left.set(row, sum_in_lanes(x, length, scale, Pack::all(rows.m[k]), weights, lane, written, moved(x, ahead)));
    }
    left.fold(rows.count, rows.s.data(), sums::sum);
  }

  /// n outputs from the i-th on, made of a whole pair of packs or of n elements; all of the pair is written if so told.
  template <bool Whole, bool WritesWhole = Whole>
  [[gnu::always_inline]] static void put(const X* x, const Real* weights, index i, index n, const Pack& scale, const Pack& m,
                                         const Pack& a, const Pack& b, bool shares, Y* y) {
    two v;
    if constexpr (OfWeights) {
      unrolled<2>([&](int j) { v[j].x = Pack::load(weights + i + j * width).x * a.x; });
      if (shares) unrolled<2>([&](int j) { v[j].x = v[j].x * b.x; });
    } else {
      base::template load<Whole>(v, x + i, scale, n, m);
      unrolled<2>([&](int j) { v[j].x = v[j].x - m.x; });
      unrolled<2>([&](int j) { v[j].x = v[j].x - b.x; });
    }
    base::template store<WritesWhole>(v, y + i, n);
  }
  [[gnu::flatten]] static void write(const form& f, const group& rows, bool shares) {
    const Pack scale = Pack::all(f.scale);
    // How many outputs may be written from a row's first on: its own, and those of rows right behind it, which are written
    // later. So a last pack need not be cut, unless it would lie over elements that are read again.
    std::array<index, group::size> places;
    const Y* begin = nullptr;  // of the row behind
    index behind = 0;          // its places
    for (auto k = static_cast<std::size_t>(rows.count); k-- > 0;) {
      places[k] = behind = rows.length[k] + (rows.y[k] + rows.length[k] == begin ? behind : 0);
      begin = rows.y[k];
    }
    for (std::size_t k = 0; k < static_cast<std::size_t>(rows.count); ++k) {
      const Pack m = Pack::all(rows.m[k]), a = Pack::all(rows.a[k]), b = Pack::all(rows.b[k]);
      const index length = rows.length[k];
      index i = 0;
      for (; i + pair <= length; i += pair) put<true>(rows.x[k], rows.weights[k], i, pair, scale, m, a, b, shares, rows.y[k]);
      if (i == length) continue;
      const bool is_read_again = !OfWeights && static_cast<const void*>(rows.x[k]) == static_cast<const void*>(rows.y[k]);
      if (i + pair <= places[k] && !is_read_again) {
        put<false, true>(rows.x[k], rows.weights[k], i, length - i, scale, m, a, b, shares, rows.y[k]);
      } else {
        put<false>(rows.x[k], rows.weights[k], i, length - i, scale, m, a, b, shares, rows.y[k]);
      }
    }
  }
};

/// Chooses the loop for a call.
template <class X, class Y, class Pack>
struct any_row_loops {
  using Real = widened<X>;
  using form = row_form<Real>;
  template <class Body>
  static auto with(const form& f, row_map_kind kind, const Body& body) {
    const bool of_weights = kind != row_map_kind::differences;
    if (f.scale == 1) {
      return of_weights ? body(group_loops<X, Y, Pack, true, false>{}) : body(group_loops<X, Y, Pack, false, false>{});
    }
    return of_weights ? body(group_loops<X, Y, Pack, true, true>{}) : body(group_loops<X, Y, Pack, false, true>{});
  }
  static Real largest(const form& f, const X* x) {
    return with(f, row_map_kind::weights, [&](auto loops) { return loops.largest(f, x); });
  }
  static Real sweep(const form& f, const row_sweep<X, Y>& row, Real* leaves) {
    return with(f, row.before.map.kind, [&](auto loops) { return loops.sweep(f, row, leaves); });
  }
  static void write(const form& f, const row_outputs<X, Y>& row) {
    with(f, row.map.kind, [&](auto loops) { loops.write(f, row); });
  }
  static void largest_of_group(const form& f, row_group<X, Y>& rows) {
    with(f, row_map_kind::weights, [&](auto loops) { loops.largest(f, rows); });
  }
  static void sum_group(const form& f, row_group<X, Y>& rows) {
    with(f, row_map_kind::weights, [&](auto loops) { loops.sum(f, rows); });
  }
  static void write_group(const form& f, const row_group<X, Y>& rows, row_map_kind kind) {
    with(f, kind, [&](auto loops) { loops.write(f, rows, kind == row_map_kind::shares_of_weights); });
  }
};

template <class X, class Y, class Pack>
constexpr row_kernels<X, Y> kernels_of() {
  using loops = any_row_loops<X, Y, Pack>;
  return {loops::largest,          loops::sweep,     loops::write,
          loops::largest_of_group, loops::sum_group, loops::write_group};
}

}  // namespace
}  // namespace regroup::softmax_parts

// SPDX-License-Identifier: Apache-2.0
// Softmax's loops over a group of short rows, for one instruction set. A short row alone waits for its largest element, then
// for its sum. Here a group's rows are swept one after another without waiting; the one pack that is left of each is folded
// together with those of the others. Local to each instruction set's file. Level: lane.
#pragma once

#include <concepts>
#include <type_traits>

#include "softmax_rows.hpp"

namespace regroup::softmax_parts {
namespace {

template <class X, class Y, class Pack, bool OfWeights, bool Scales>
struct group_loops : row_loops<X, Y, Pack, OfWeights, Scales> {
  using base = row_loops<X, Y, Pack, OfWeights, Scales>;
  using typename base::form, typename base::Real, typename base::maximum_of_numbers, typename base::sums;
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
    if (length <= width) {
      packs<Pack, 1> only;
      base::template load<false, 1>(only, x, scale, length, maximum_of_numbers::least());
      return Pack::larger(only[0], maximum_of_numbers::least());
    }
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

  /// What is computed of a row in a group.
  struct weighed_row {
    const X* x;
    Real* weights;
    Pack scale, m;
    const Y* y;      ///< places to prefetch
    const X* later;  ///< elements to prefetch
  };
  /// Packs of a row's last n elements. A short row's time is that of its packs, so it weighs no more of them.
  template <class Body>
  [[gnu::always_inline]] static void in_packs(index n, const Body& body) {
    n <= width ? body(std::integral_constant<int, 1>{}) : body(std::integral_constant<int, 2>{});
  }
  /// Those that are written together: numbers of 16 bits fill a register by pairs of packs.
  static constexpr bool stores_pairs = !std::same_as<Y, Real>;

  /// v: N packs of weights, of n elements from the i-th on, which are kept; behind them nothing to add. Meanwhile places and
  /// later elements are prefetched: this takes the longest, so that least of them wait for one another. (On an Intel logsumexp
  /// of 128 elements is 1.4 times as fast as with the next group prefetched while the largest elements are found.)
  template <bool Whole, int N>
  [[gnu::always_inline]] static void weigh(packs<Pack, N>& v, const weighed_row& row, index i, index n) {
    base::template load<Whole, N>(v, row.x + i, row.scale, n, row.m);
    fetch_lines(row.later + i, N * width * sizeof(X));
    for (index at = i; at < i + N * width; at += line) __builtin_prefetch(row.y + at, 1);
    unrolled<N>([&](int j) { v[j].x = v[j].x - row.m.x; });
    tiles::decay<Pack, N>(v);
    if constexpr (!Whole) {
      unrolled<N>([&](int j) {
        v[j] = Pack::first(std::clamp<index>(n - j * width, 0, width), v[j], Pack::all(base::plus_identity));
      });
    }
    unrolled<N>([&](int j) { v[j].store(row.weights + i + j * width); });
    if constexpr (N == 1 && stores_pairs) Pack::all(base::plus_identity).store(row.weights + i + width);
  }
  /// The sums of a row's weights in each lane, halved down to one pack. `reached`: the lanes from here on are as they were.
  [[gnu::always_inline]] static Pack sum_in_lanes(const weighed_row& row, index length, sums& lane, index& reached) {
    if (length <= pair) {  // halving adds nothing to these but each other
      Pack all;
      in_packs(length, [&]<int N>(std::integral_constant<int, N>) {
        packs<Pack, N> v;
        weigh<false, N>(v, row, 0, length);
        all = N == 1 ? v[0] : sums::sum(v[0], v[N - 1]);
      });
      return all;
    }
    const index reaches = std::min((length + width - 1) / width * width, lanes);
    for (index i = reaches; i < reached; i += width) Pack::all(base::plus_identity).store(lane.lane + i);
    reached = reaches;
    index i = 0;
    const auto add = [&]<bool Whole, int N>(std::bool_constant<Whole>, std::integral_constant<int, N>) {
      packs<Pack, N> v;
      weigh<Whole, N>(v, row, i, Whole ? pair : length - i);
      unrolled<N>([&](int j) {
        Real* const to = lane.lane + i % lanes + j * width;
        if (i >= lanes) v[j].x = Pack::load(to).x + v[j].x;
        v[j].store(to);
      });
    };
    for (; i + pair <= length; i += pair) add(std::true_type{}, std::integral_constant<int, 2>{});
    if (i < length) in_packs(length - i, [&](auto n) { add(std::false_type{}, n); });
    if (length <= lanes / 4) return lane.template halved_to_pack<lanes / 4>();
    return length <= lanes / 2 ? lane.template halved_to_pack<lanes / 2>() : lane.halved_to_pack();
  }
  [[gnu::flatten]] static void sum(const form& f, group& rows) {
    const Pack scale = Pack::all(f.scale);
    lefts left;
    const index ahead = rows.ahead * index{sizeof(X)};
    sums lane;
    index reached = 0;
    for (index row = 0; row < rows.count; ++row) {
      const auto k = static_cast<std::size_t>(row);
      Real* const weights = rows.weights[k];
      const auto* const written = rows.y[k] == nullptr ? reinterpret_cast<const Y*>(weights) : rows.y[k];
      const weighed_row of{rows.x[k], weights, scale, Pack::all(rows.m[k]), written, moved(rows.x[k], ahead)};
      left.set(row, sum_in_lanes(of, rows.length[k], lane, reached));
    }
    left.fold(rows.count, rows.s.data(), sums::sum);
  }

  /// n outputs from the i-th on, made of N whole packs of weights, or of elements, of which n are read unless Whole; all of the
  /// packs are written if so told.
  template <bool Whole, bool WritesWhole = Whole, int N = 2>
  [[gnu::always_inline]] static void put(const X* x, const Real* weights, index i, index n, const Pack& scale, const Pack& m,
                                         const Pack& a, const Pack& b, bool shares, Y* y) {
    packs<Pack, N> v;
    if constexpr (OfWeights) {
      unrolled<N>([&](int j) { v[j].x = Pack::load(weights + i + j * width).x * a.x; });
      if (shares) unrolled<N>([&](int j) { v[j].x = v[j].x * b.x; });
    } else {
      base::template load<Whole, N>(v, x + i, scale, n, m);
      unrolled<N>([&](int j) { v[j].x = v[j].x - m.x; });
      unrolled<N>([&](int j) { v[j].x = v[j].x - b.x; });
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
      const auto put_last = [&]<int N>(std::integral_constant<int, N>) {
        if (i + N * width <= places[k] && !is_read_again) {
          put<false, true, N>(rows.x[k], rows.weights[k], i, length - i, scale, m, a, b, shares, rows.y[k]);
        } else {
          put<false, false, N>(rows.x[k], rows.weights[k], i, length - i, scale, m, a, b, shares, rows.y[k]);
        }
      };
      if constexpr (stores_pairs) {
        put_last(std::integral_constant<int, 2>{});
      } else {
        in_packs(length - i, put_last);
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

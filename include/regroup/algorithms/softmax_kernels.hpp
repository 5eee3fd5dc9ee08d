// SPDX-License-Identifier: Apache-2.0
// The library's own loops for rows of softmax that fit a cache (src/softmax_rows.hpp), one for each instruction set, chosen
// at run time. One pass: while the weights of a row are computed, the outputs of the row before are written and the largest
// element of the row after is found, so memory is never idle. Level: lane.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>

#include "regroup/algorithms/softmax_row.hpp"
#include "regroup/executor.hpp"
#include "regroup/memory.hpp"

namespace regroup::softmax_parts {

/// The outputs of a row, to be written: its elements and weights (null if `write` is to compute them once more), its largest
/// element, and the map that makes the outputs.
template <class X, class Y>
struct row_outputs {
  using Real = widened<X>;
  const X* x;
  const Real* weights;
  Y* y;  ///< null: nothing is to be written
  Real m;
  row_map<Real> map;
  index behind = 0;  ///< in a sweep: how many elements of its row come before the first of these; a multiple of L
};

/// A row whose weights decay(x scale - m) are to be computed, and kept unless `weights` is null.
template <class X, class Y>
struct row_sweep {
  using Real = widened<X>;
  const X* x;
  Real* weights;
  Real m;
  const X* next;  ///< the row whose largest element is found meanwhile
  row_outputs<X, Y> before;
};

/// Up to `most` short rows that are swept together: their lengths; their elements; their weights, aligned and with room for two
/// packs more; their outputs, if there are any, of one kind that needs weights or differences; the state (m, s) of each, and
/// the numbers of its map.
template <class X, class Y>
struct row_group {
  using Real = widened<X>;
  static constexpr index most = 16;
  static constexpr auto size = static_cast<std::size_t>(most);
  index count;
  std::array<index, size> length;
  std::array<const X*, size> x;
  std::array<Y*, size> y;
  std::array<Real*, size> weights;
  index ahead;  ///< elements from the first row to the next group's first, to be prefetched; 0 where that is not known
  alignas(64) std::array<Real, size> m, s, a, b;
};

/// Scratch for weights, which begins at a cache line.
template <class Real>
struct alignas(cache_line) line_of {
  Real values[cache_line / sizeof(Real)];
};

/// What all rows share.
template <class Real>
struct row_form {
  index length;
  Real scale;
  bool past_caches;
};

/// The loops of one instruction set.
template <class X, class Y>
struct row_kernels {
  using Real = widened<X>;
  /// The largest x scale; a 0 has either sign, and NaN may or may not show.
  Real (*largest)(const row_form<Real>& form, const X* x);
  /// leaves[t]: plus's leaf of the weights of tile t. Returns the largest element of the next row.
  Real (*sweep)(const row_form<Real>& form, const row_sweep<X, Y>& row, Real* leaves);
  void (*write)(const row_form<Real>& form, const row_outputs<X, Y>& outputs);
  /// The same for a group of short rows, of their own lengths, each step for all of them: every m; every s, and the weights;
  /// the outputs of a kind.
  void (*largest_of_group)(const row_form<Real>& form, row_group<X, Y>& rows);
  void (*sum_group)(const row_form<Real>& form, row_group<X, Y>& rows);
  void (*write_group)(const row_form<Real>& form, const row_group<X, Y>& rows, row_map_kind kind);
};

/// Whether there are loops from X to Y: to the type itself, and from 16 bits to float.
template <class X, class Y>
concept has_row_kernels = (std::same_as<widened<X>, float> || std::same_as<X, double>) &&
                          (std::same_as<Y, X> || std::same_as<Y, widened<X>>);

/// The loops for host::current_target().
template <class X, class Y>
requires has_row_kernels<X, Y>
const row_kernels<X, Y>& current_row_kernels();

/// log_sum_exp's leaf of a tile of any elements; the loops above give it only if the largest one is finite. (Its signature
/// uses only names that all compilers mangle alike.)
template <class X, class Real>
typename log_sum_exp<Real>::state leaf_of_tile(const X* x, index n, scaled<Real> seen);

}  // namespace regroup::softmax_parts

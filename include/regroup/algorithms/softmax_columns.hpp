// SPDX-License-Identifier: Apache-2.0
// Columns of softmax, and other rows that are not contiguous: several are transposed, swept as rows, and their outputs
// transposed back, so memory is read and written a few lines at a time and the loops are those of rows. The bits are those of
// softmax_sweeps.hpp.
// Level: lane.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>

#include "regroup/host/abreast.hpp"

namespace regroup::softmax_parts {

/// The longest rows that are swept this way; of columns, enough of them for a group, shorter ones than `shortest_transposed`
/// go abreast (softmax_abreast.hpp).
inline constexpr index longest_transposed = index{1} << 20, shortest_transposed = 3 * lanes + 1;

/// Memory for several columns of one length as rows, and for their outputs: the same memory if the types are the same.
template <class X, class Y>
class columns_as_rows {
 public:
  columns_as_rows(index length, index rows)
      : length_(length),
        together_(std::min(rows, together(length))),
        x_(room<X>(together_)),
        y_(room<Y>(std::is_same_v<X, Y> ? 0 : together_)) {}
  /// How many columns go together: a few cache lines of each row of the matrix, and at most 4M elements.
  static constexpr index together(index length) {
    return length <= tile_elements ? 64 : std::clamp<index>((index{1} << 22) / length, 4, 16);
  }

  /// sweep(rows, their outputs or nothing, the number of the first, how many) over the rows [first, last) of a batch.
  template <class In, class Out, class Sweep>
  void each(const In& in, const Out& out, index first, index last, const Sweep& sweep) {
    for (index n = 0; first < last; first += n) {
      n = std::min(last - first, together_);
      each_grid<const X>(in, first, n, [&](const auto& x, index k) {
        host::set_apart(x, x_.get() + k * step<X>(), step<X>());
      });
      if constexpr (std::is_same_v<Out, std::nullopt_t>) {
        sweep(rows_at<const X>(x_.get(), n), out, first, n);
      } else {
        sweep(rows_at<const X>(x_.get(), n), rows_at(outputs(), n), first, n);
        each_grid<Y>(out, first, n, [&](const auto& y, index k) {
          host::put_back<Y>(outputs() + k * step<Y>(), step<Y>(), y);
        });
      }
    }
  }

 private:
  /// body(grid, k) for the rows first + k, ... < first + n of a batch, as many at a time as are one stride apart.
  template <class T, class Batch, class Body>
  static void each_grid(const Batch& b, index first, index n, const Body& body) {
    for (index k = 0; k < n;) {
      const grid<T> some = b.grid_at(first + k, n - k);
      body(some, k);
      k += some.rows;
    }
  }
  template <class T>
  [[nodiscard]] index step() const {
    return host::step_apart<T>(length_);
  }
  template <class T>
  [[nodiscard]] std::unique_ptr<T[]> room(index rows) const {
    return std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(rows * step<T>()));
  }
  [[nodiscard]] Y* outputs() const {
    if constexpr (std::is_same_v<X, Y>) {
      return x_.get();
    } else {
      return y_.get();
    }
  }
  template <class T>
  [[nodiscard]] row_slices<T> rows_at(T* first, index n) const {
    return rows(view<T>(first, {n, length_}, {step<T>(), 1}));
  }

  index length_, together_;
  std::unique_ptr<X[]> x_;
  std::unique_ptr<Y[]> y_;
};

}  // namespace regroup::softmax_parts

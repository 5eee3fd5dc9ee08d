// SPDX-License-Identifier: Apache-2.0
// Columns of softmax: several neighbouring columns are transposed, swept as rows, and their outputs transposed back, so
// memory is read and written a few lines at a time and the loops are those of rows. The bits are those of softmax_sweeps.hpp.
// Level: lane.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>

#include "regroup/host/abreast.hpp"

namespace regroup::softmax_parts {

/// Whether columns of this length are swept this way; shorter ones go abreast (softmax_abreast.hpp).
constexpr bool are_transposed(index length) { return length > 3 * lanes && length <= index{1} << 20; }

/// Memory for several columns of one length as rows, and for their outputs: the same memory if the types are the same.
template <class X, class Y>
class columns_as_rows {
 public:
  explicit columns_as_rows(index length)
      : length_(length),
        x_(room<X>(together(length))),
        y_(room<Y>(std::is_same_v<X, Y> ? 0 : together(length))) {}
  /// How many columns go together: a few cache lines of each row of the matrix, and at most 4M elements.
  static constexpr index together(index length) {
    return length <= tile_elements ? 64 : std::clamp<index>((index{1} << 22) / length, 4, 16);
  }

  /// sweep(rows, their outputs or nothing, the number of the first, how many) over the rows [first, last) of a batch.
  template <class In, class Out, class Sweep>
  void each(const In& in, const Out& out, index first, index last, const Sweep& sweep) {
    while (first < last) {
      grid<const X> x = in.grid_at(first, std::min(last - first, together(length_)));
      if constexpr (std::is_same_v<Out, std::nullopt_t>) {
        host::set_apart(x, x_.get(), step<X>());
        sweep(rows_at<const X>(x_.get(), x.rows), out, first, x.rows);
      } else {
        const grid<Y> y = out.grid_at(first, x.rows);
        x.rows = y.rows;
        host::set_apart(x, x_.get(), step<X>());
        sweep(rows_at<const X>(x_.get(), x.rows), rows_at(outputs(), x.rows), first, x.rows);
        host::put_back<Y>(outputs(), step<Y>(), y);
      }
      first += x.rows;
    }
  }

 private:
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

  index length_;
  std::unique_ptr<X[]> x_;
  std::unique_ptr<Y[]> y_;
};

}  // namespace regroup::softmax_parts

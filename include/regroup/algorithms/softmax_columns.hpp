// SPDX-License-Identifier: Apache-2.0
// Columns of softmax: some that stand side by side are turned, swept as rows are, and their outputs turned back, so memory is
// read and written a few lines at a time and the loops are those of rows. Bits as softmax_sweeps.hpp. Level: lane.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>

#include "regroup/algorithms/softmax_abreast.hpp"
#include "regroup/host/turn.hpp"
#include "regroup/memory.hpp"
#include "regroup/source.hpp"

namespace regroup::softmax_parts {

/// The columns that are swept so: shorter ones go abreast (softmax_abreast.hpp), memory for some of longer ones would be dear.
constexpr bool are_turned(index length) { return length > 3 * lanes && length <= index{1} << 20; }

/// Memory for some columns of a length as rows, and for their outputs: the same where they are of one type.
template <class X, class Y>
class columns_as_rows {
 public:
  explicit columns_as_rows(index length)
      : length_(length), x_(room<X>(together(length))), y_(room<Y>(std::is_same_v<X, Y> ? 0 : together(length))) {}
  /// How many columns: a few lines of each row of the matrix, as long as that is little memory.
  static constexpr index together(index length) { return length <= tile_elements ? 64 : 16; }

  /// sweep(rows, their outputs or nothing, the number of the first, how many) over the rows [first, last) of a batch.
  template <class In, class Out, class Sweep>
  void each(const In& in, const Out& out, index first, index last, const Sweep& sweep) {
    while (first < last) {
      grid<const X> x = in.grid_at(first, std::min(last - first, together(length_)));
      if constexpr (std::is_same_v<Out, std::nullopt_t>) {
        read(x);
        sweep(rows_at<const X>(x_.get(), x.rows), out, first, x.rows);
      } else {
        const grid<Y> y = out.grid_at(first, x.rows);
        x.rows = y.rows;
        read(x);
        sweep(rows_at<const X>(x_.get(), x.rows), rows_at(outputs(), x.rows), first, x.rows);
        write(y);
      }
      first += x.rows;
    }
  }

 private:
  template <class T>
  [[nodiscard]] std::unique_ptr<T[]> room(index rows) const {
    return std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(rows * pitch_));
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
    return rows(view<T>(first, {n, length_}, {pitch_, 1}));
  }
  void read(const grid<const X>& x) {
    if (x.pitch == 1) return host::turn(x.first, x.stride, x_.get(), pitch_, length_, x.rows);
    for (index k = 0; k < x.rows; ++k) {
      for (index i = 0; i < length_; ++i) x_[static_cast<std::size_t>(k * pitch_ + i)] = x(i, k);
    }
  }
  void write(const grid<Y>& y) const {
    const Y* const from = outputs();
    if (y.pitch == 1) {
      constexpr index some = 16;  // rows of the matrix, of which whole lines are written one after another
      for (index i = 0; i < length_; i += some) {
        host::turn(from + i, pitch_, y.first + i * y.stride, y.stride, y.rows, std::min(some, length_ - i));
      }
      return;
    }
    for (index k = 0; k < y.rows; ++k) {
      for (index i = 0; i < length_; ++i) y(i, k) = from[k * pitch_ + i];
    }
  }

  index length_;
  index pitch_ = length_ + index{cache_line};  // none of the rows begins where another does in its page
  std::unique_ptr<X[]> x_;
  std::unique_ptr<Y[]> y_;
};

}  // namespace regroup::softmax_parts

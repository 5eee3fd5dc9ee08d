// SPDX-License-Identifier: Apache-2.0
#include "scored_rows.hpp"

#include "put.hpp"
#include "regroup/monoids/softmax_mean.hpp"
#include "typed.hpp"

namespace regroup::tool {
namespace {

/// The d values of a row.
template <class T>
struct row_values {
  const T* first;
  index d, stride;
  [[nodiscard]] index size() const { return d; }
  const T& operator[](std::size_t k) const { return first[static_cast<index>(k) * stride]; }
};

/// The rows of one (n, 1 + d) array as elements of softmax_mean.
template <class T>
struct scored_source {
  const T* first;
  index count, to_next_row, d, to_next_value;
  [[nodiscard]] index size() const { return count; }
  scored<T, row_values<T>> operator[](index i) const {
    const T* const row = first + i * to_next_row;
    return {*row, {row + to_next_value, d, to_next_value}};
  }
};

/// One source for each index of the axes before the last two.
template <class T>
struct scored_batch {
  view<const T> x;
  extents outer_extents, outer_strides;
  [[nodiscard]] index size() const { return count_of(outer_extents); }
  scored_source<T> operator[](index row) const {
    const int rank = x.rank();
    return {x.data() + offset_of(row, outer_extents, outer_strides), x.extent(rank - 2), x.stride(rank - 2),
            x.extent(rank - 1) - 1, x.stride(rank - 1)};
  }
};

}  // namespace

extents softmax_mean_shape(const input& x, const std::optional<std::vector<int>>& axes, bool keepdims) {
  const extents& shape = x.shape();
  const int rank = shape.size();
  if (!is_float(x.type())) {
    throw_argument(x.name() + ": softmax_mean does not take " + name_of(x.type()) + "; it takes floating types");
  }
  if (rank < 2 || shape[rank - 1] < 1) {
    throw_shape(x.name() + ": softmax_mean needs a shape (..., n, 1 + d), a score and d values a row; got " +
                to_string(shape));
  }
  for (const int axis : axes.value_or(std::vector<int>{})) {
    if (checked_axis(x.name(), shape, axis) != rank - 2) {
      throw_shape(x.name() + ": softmax_mean reduces the last axis but one, " + std::to_string(rank - 2) +
                  "; --axis names " + std::to_string(axis));
    }
  }
  extents result;
  index rows = 1;
  for (int a = 0; a < rank - 2; ++a) {
    result.push_back(shape[a]);
    rows *= shape[a];
  }
  if (shape[rank - 2] == 0 && rows > 0) {
    throw_shape(x.name() + ": softmax_mean of nothing does not exist; the shape " + to_string(shape) +
                " has no rows to reduce");
  }
  if (keepdims) result.push_back(1);
  result.push_back(shape[rank - 1] - 1);
  return result;
}

void reduce_softmax_mean(const parallel& ex, const input& x, const result& y) {
  with_float(x.type(), [&]<class T>(std::type_identity<T>) {
    using real = widened<T>;
    scored_batch<T> batch{view_of<T>(x), {}, {}};
    const int rank = batch.x.rank();
    for (int a = 0; a < rank - 2; ++a) {
      batch.outer_extents.push_back(batch.x.extent(a));
      batch.outer_strides.push_back(batch.x.stride(a));
    }
    const index d = batch.x.extent(rank - 1) - 1;
    const softmax_mean<real> m{d};
    ex.fold(batch, m, [&](index row, const auto& state) {
      const auto mean = m.lower(state);
      for (index k = 0; k < d; ++k) put(y, row * d + k, mean[static_cast<std::size_t>(k)]);
    });
  });
}

}  // namespace regroup::tool

// SPDX-License-Identifier: Apache-2.0
#include "scored_rows.hpp"

#include "put.hpp"
#include "regroup/monoids/softmax_mean.hpp"
#include "regroup/stream.hpp"
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

/// The rows of an (n, 1 + d) array as elements of softmax_mean.
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

extents softmax_mean_shape(const std::string& name, const description& about,
                           const std::optional<std::vector<int>>& axes, bool keepdims) {
  const extents& shape = about.shape;
  const int rank = shape.size();
  if (!is_float(about.type)) {
    throw_argument(name + ": softmax_mean does not take " + name_of(about.type) + "; it takes floating types");
  }
  if (rank < 2 || shape[rank - 1] < 1) {
    throw_shape(name + ": softmax_mean needs a shape (..., n, 1 + d), a score and d values a row; got " +
                to_string(shape));
  }
  for (const int axis : axes.value_or(std::vector<int>{})) {
    if (checked_axis(name, shape, axis) != rank - 2) {
      throw_shape(name + ": softmax_mean reduces the last axis but one, " + std::to_string(rank - 2) +
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
    throw_shape(name + ": softmax_mean of nothing does not exist; the shape " + to_string(shape) +
                " has no rows to reduce");
  }
  if (keepdims) result.push_back(1);
  result.push_back(shape[rank - 1] - 1);
  return result;
}

namespace {

/// The mean of the first array becomes row `first` of y.
void fold(const workers& ex, const input& x, const result& y, index first) {
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
      for (index k = 0; k < d; ++k) put(y, (first + row) * d + k, mean[static_cast<std::size_t>(k)]);
    });
  });
}

constexpr index block = 256 * tile_elements;
constexpr index widest = block / tile_elements;  // the width of rows of which a tile fills a block

index columns_of(const description& about) { return about.shape[about.shape.size() - 1]; }
index rows_of(const description& about) { return about.shape[about.shape.size() - 2]; }

}  // namespace

void reduce_softmax_mean(const workers& ex, const input& x, const result& y) { fold(ex, x, y, 0); }

bool streams_softmax_mean(const description& about) {
  if (about.fortran_order) return false;
  return about.shape.size() < 2 || columns_of(about) <= widest || rows_of(about) <= block / columns_of(about);
}

void reduce_softmax_mean(const workers& ex, stream& x, const result& y, progress& shown) {
  const index columns = columns_of(x.about()), rows = rows_of(x.about());
  const index arrays = x.remaining() / std::max<index>(rows * columns, 1);
  with_float(x.about().type, [&]<class T>(std::type_identity<T>) {
    using real = widened<T>;
    std::vector<T> elements;
    const auto read = [&](index count) {
      elements.resize(static_cast<std::size_t>(count));
      x.read(elements.data(), count);
      shown.advance(count);
    };
    if (rows <= block / columns) {
      const index at_once = block / std::max<index>(rows * columns, 1);
      for (index first = 0; first < arrays; first += at_once) {
        const index count = std::min(at_once, arrays - first);
        read(count * rows * columns);
        const description some{x.about().type, false, false, {count, rows, columns}};
        fold(ex, {x.name(), some, {elements.data(), [](const void*) {}}}, y, first);
      }
      return;
    }
    // Reads whole tiles of rows: an accumulator may still refer to the last ones when it answers.
    const index at_once = widest / columns * tile_elements;
    const index d = columns - 1;
    const softmax_mean<real> m{d};
    for (index array = 0; array < arrays; ++array) {
      accumulator<softmax_mean<real>, scored<T, row_values<T>>> all(m);
      for (index row = 0; row < rows; row += at_once) {
        const index count = std::min(at_once, rows - row);
        read(count * columns);
        all.push(ex, scored_source<T>{elements.data(), count, columns, d, 1});
      }
      const auto mean = all.value();
      for (index k = 0; k < d; ++k) put(y, array * d + k, mean[static_cast<std::size_t>(k)]);
    }
  });
}

}  // namespace regroup::tool

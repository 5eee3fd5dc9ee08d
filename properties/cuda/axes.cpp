// SPDX-License-Identifier: Apache-2.0
// Folds and scans along any axes of any strides, emulated, have the trees of `seq`: positions in C order of the reduced
// axes, whatever memory order, direction or repetition the strides say.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../order/recorder.hpp"
#include "folds.hpp"
#include "regroup/cuda/view.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "said.hpp"

namespace {

using emulated::machine;
using order::rule;
using order::word;
using regroup::index;
using regroup::shape;
namespace cuda = regroup::cuda;

/// An array in some memory order, with room between its elements, and the view of it.
struct array {
  std::vector<word> memory;
  shape extents, strides;
  index first = 0;

  [[nodiscard]] regroup::view<const word> host() const { return {memory.data() + first, extents, strides}; }
  [[nodiscard]] cuda::device_view<const word> device() const { return {memory.data() + first, extents, strides}; }
  [[nodiscard]] regroup::view<word> host_output() { return {memory.data() + first, extents, strides}; }
  [[nodiscard]] cuda::device_view<word> device_output() { return {memory.data() + first, extents, strides}; }
};

/// Axes in the memory order of `order`, the innermost last; a stride is negated where a bit of `backwards` says so, and 0
/// where one of `repeated` does.
array laid_out(const shape& extents, const shape& order, unsigned backwards = 0, unsigned repeated = 0) {
  array a{{}, extents, extents};
  index step = 2, first = 0;
  for (int i = order.size() - 1; i >= 0; --i) {
    const int axis = static_cast<int>(order[i]);
    const bool is_backwards = (backwards >> axis & 1) != 0;
    a.strides[axis] = (repeated >> axis & 1) != 0 ? 0 : is_backwards ? -step : step;
    if (a.strides[axis] < 0) first += step * (extents[axis] - 1);
    step *= std::max<index>(extents[axis], 1);
  }
  a.memory = order::elements(step);
  a.first = first;
  return a;
}

template <rule Rule>
void expect_fold(const array& a, const shape& axes, const std::string& where) {
  const order::hashed<Rule> m;
  const auto rows = a.device().with_axes_last(axes).rows_along(axes.size());
  std::vector<word> expected(static_cast<std::size_t>(rows.size()));
  regroup::reduce_axes(regroup::seq, a.host(), axes, expected, m);
  machine on(emulated::schedule::random, 3);
  const auto states = rows.is_strided() ? emulated::fold(on, m, rows.strided_rows()) : emulated::fold(on, m, rows);
  ASSERT_TRUE(std::equal(expected.begin(), expected.end(), states.begin(), states.end())) << where;
}

template <regroup::scan_kind Kind>
void expect_scan(const array& a, index axis, const std::string& where) {
  const order::hashed<rule::pieces> m;
  array expected = a, got = a;
  if constexpr (Kind == regroup::scan_kind::inclusive) {
    regroup::inclusive_scan_axis(regroup::seq, a.host(), axis, expected.host_output(), m);
  } else {
    regroup::exclusive_scan_axis(regroup::seq, a.host(), axis, expected.host_output(), m);
  }
  machine on(emulated::schedule::random, 4);
  const auto out = got.device_output().with_axes_last({axis}).rows_along(1);
  const auto in = cuda::device_view<const word>(got.device_output()).with_axes_last({axis}).rows_along(1);
  emulated::scan<Kind>(on, m, in.strided_rows(), out.strided_rows());
  ASSERT_TRUE(got.memory == expected.memory) << where;
}

}  // namespace

TEST(axes, fold_in_c_order) {
  const std::vector<array> arrays = {
      laid_out({3, 5, 4, 7}, {0, 1, 2, 3}),
      laid_out({3, 5, 4, 7}, {2, 0, 3, 1}, 0b0110),
      laid_out({3, 40, 2, 60}, {3, 1, 0, 2}, 0, 0b1000),
      laid_out({2, 71, 2, 73}, {2, 0, 3, 1}),  // more than a tile
      laid_out({0, 3, 2}, {0, 1, 2}),
      laid_out({3, 0, 2}, {0, 1, 2}),
  };
  for (const auto& a : arrays) {
    for (const shape& axes : {shape{}, shape{0}, shape{1}, shape{-1}, shape{0, -1}, shape{-1, 1}, shape{1, 2, 0}}) {
      if (order::small() && axes.size() < 2) continue;  // thousands of rows
      const std::string where = to_string(a.extents) + " along " + to_string(axes);
      expect_fold<rule::pieces>(a, axes, where);
      expect_fold<rule::striped>(a, axes, where);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(axes, scan_in_place) {
  const std::vector<array> arrays = {laid_out({3, 5, 4}, {1, 2, 0}, 0b010), laid_out({2, 300, 3}, {2, 0, 1}),
                                     laid_out({2, 2, 5000}, {1, 2, 0}, 0b100), laid_out({4, 0, 3}, {0, 1, 2})};
  for (const auto& a : arrays) {
    for (const std::int64_t axis : {0, 1, -1}) {
      const std::string where = to_string(a.extents) + " along " + std::to_string(axis);
      expect_scan<regroup::scan_kind::inclusive>(a, axis, where);
      expect_scan<regroup::scan_kind::exclusive>(a, axis, where);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(axes, are_joined_where_one_stride_reaches) {
  float x[24];
  const cuda::device_view<float> all(x, {2, 3, 4});
  const auto last = all.rows_along(1);
  EXPECT_TRUE(last.is_strided());
  EXPECT_EQ(last.strided_rows().row_stride, 4);
  EXPECT_EQ(last.strided_rows().stride, 1);
  EXPECT_EQ(last.strided_rows().length, 4);
  EXPECT_EQ(last.size(), 6);
  EXPECT_EQ(last.outer.rank, 1);
  const auto middle = all.with_axes_last({1}).rows_along(1);
  EXPECT_TRUE(middle.is_strided());
  EXPECT_EQ(middle.outer.rank, 2);
  EXPECT_FALSE(all.with_axes_last({0, 2}).rows_along(2).is_strided());
  EXPECT_EQ(all.rows_along(3).inner.rank, 1);
  EXPECT_EQ(all.rows_along(0).size(), 24);
  EXPECT_THROW(static_cast<void>(all.with_axes_last({3})), regroup::shape_error);
  EXPECT_THROW(static_cast<void>(all.with_axes_last({1, -2})), regroup::shape_error);
}

TEST(axes, more_than_sixteen_are_refused) {
  shape extents, strides;
  for (int a = 0; a < 17; ++a) {
    extents.push_back(2);
    strides.push_back(1);
  }
  float x[18];
  EXPECT_EQ(said<regroup::shape_error>([&] { return cuda::device_view<float>(x, extents, strides).rows_along(17); })
                .substr(0, 67),
            "on a device at most 16 axes may have strides of their own; shape (2");
  EXPECT_EQ(cuda::device_view<float>(x, extents, strides).rows_along(8).size(), 512);
}

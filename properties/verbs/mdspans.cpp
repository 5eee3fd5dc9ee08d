// SPDX-License-Identifier: Apache-2.0
// Any type with an mdspan's members can be used as a view: of any rank that the verb takes, with its own strides, as input and
// output.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "regroup/algorithms/softmax.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

namespace {

using regroup::seq;

/// As much of std::mdspan, which C++20 lacks, as a view asks of it.
template <class T, std::size_t Rank>
struct mdspan {
  using element_type = T;
  T* data;
  std::array<std::int64_t, Rank> extents;
  std::array<std::int64_t, Rank> strides;
  [[nodiscard]] T* data_handle() const { return data; }
  static constexpr std::size_t rank() { return Rank; }
  [[nodiscard]] std::int64_t extent(std::size_t axis) const { return extents[axis]; }
  [[nodiscard]] std::int64_t stride(std::size_t axis) const { return strides[axis]; }
};

std::vector<int> counted(std::size_t n) {
  std::vector<int> xs(n);
  std::iota(xs.begin(), xs.end(), 0);
  return xs;
}

}  // namespace

TEST(mdspans, are_reduced_whatever_their_rank) {
  const auto xs = counted(24);
  const regroup::plus<int> sum;
  EXPECT_EQ(regroup::reduce(seq, mdspan<const int, 1>{xs.data(), {12}, {2}}, sum), 132);
  EXPECT_EQ(regroup::reduce(seq, mdspan<const int, 2>{xs.data(), {3, 4}, {8, 1}}, sum), 114);
  EXPECT_EQ(regroup::reduce(seq, mdspan<const int, 3>{xs.data(), {2, 3, 4}, {1, 2, 6}}, sum), 276);
  EXPECT_EQ(regroup::reduce(seq, mdspan<const int, 0>{xs.data() + 7, {}, {}}, sum), 7);
}

TEST(mdspans, as_views_of_a_derived_class_are) {
  struct matrix : regroup::view<const int> {
    using regroup::view<const int>::view;
  };
  const auto xs = counted(24);
  EXPECT_EQ(regroup::reduce(seq, matrix(xs.data(), {4, 6}), regroup::plus<int>{}), 276);
  std::vector<int> sums(24);
  regroup::inclusive_scan(seq, matrix(xs.data(), {24}), sums, regroup::plus<int>{});
  EXPECT_EQ(sums.back(), 276);
}

TEST(mdspans, are_inputs_and_outputs) {
  const auto xs = counted(24);
  const mdspan<const int, 2> columns{xs.data(), {6, 4}, {1, 6}};
  std::vector<int> out(12, -1);
  regroup::reduce_rows(seq, columns, mdspan<int, 1>{out.data(), {6}, {2}}, regroup::maximum<int>{});
  for (int row = 0; row < 6; ++row) {
    EXPECT_EQ(out[static_cast<std::size_t>(2 * row)], 18 + row);
    EXPECT_EQ(out[static_cast<std::size_t>(2 * row + 1)], -1);
  }
  std::vector<int> sums(12);
  regroup::inclusive_scan(seq, mdspan<const int, 1>{xs.data(), {12}, {2}}, mdspan<int, 1>{sums.data(), {12}, {1}},
                          regroup::plus<int>{});
  EXPECT_EQ(sums.back(), 132);
  EXPECT_THROW(regroup::inclusive_scan(seq, columns, sums, regroup::plus<int>{}), regroup::shape_error);
  const std::vector<float> logits(8, 0.0F);
  std::vector<float> p(8);
  regroup::softmax(seq, mdspan<const float, 2>{logits.data(), {2, 4}, {4, 1}}, mdspan<float, 2>{p.data(), {2, 4}, {4, 1}});
  EXPECT_EQ(p, std::vector<float>(8, 0.25F));
}

/// What an accessor makes of the elements is not what lies in memory.
TEST(mdspans, whose_accessor_computes_are_no_views) {
  struct scaled : mdspan<const int, 1> {
    using reference = int;
  };
  struct plain : mdspan<const int, 1> {
    using reference = const int&;
  };
  static_assert(!regroup::mdspan_like<scaled> && !std::convertible_to<scaled, regroup::view<const int>>);
  static_assert(regroup::mdspan_like<plain> && std::convertible_to<plain, regroup::view<const int>>);
}

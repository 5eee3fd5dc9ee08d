// SPDX-License-Identifier: Apache-2.0
// Softmax's family over segments: each has the bits of its elements alone, for every type, any lengths beside it, any layout,
// axis and threads, in place or not; and offsets, places and memory that cannot be are refused.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cfenv>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "regroup/algorithms/softmax_segments.hpp"
#include "softmax_reference.hpp"

namespace properties {
namespace {

using regroup::shape;
using regroup::view;

template <class T>
bool same(const T& a, const T& b) {
  const auto x = regroup::widen(a), y = regroup::widen(b);
  return (x != x && y != y) || std::memcmp(&a, &b, sizeof a) == 0;
}

/// Ordinary elements, and now and then a segment's worth of something else.
template <class X>
X an_element(order::dice& random) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const index kind = random(0, 400);
  if (kind == 0) return static_cast<X>(std::numeric_limits<float>::quiet_NaN());
  if (kind == 1) return static_cast<X>(inf);
  if (kind < 12) return static_cast<X>(-inf);
  return static_cast<X>(static_cast<float>(random(-400, 400)) / 16);
}

enum class what { softmax, log_softmax, logsumexp };

/// Whether every segment of every line has the bits it has alone. x stands as (before, elements, within), moved about.
template <class X, class Y = X>
void expect_segments_as_alone(const std::vector<index>& lengths, index before, index within) {
  using real = regroup::widened<X>;
  std::vector<index> offsets = {0};
  for (const index n : lengths) offsets.push_back(offsets.back() + n);
  const std::vector<std::int32_t> narrow(offsets.begin(), offsets.end());
  const index n = offsets.back(), segments = static_cast<index>(lengths.size());
  order::dice random(static_cast<std::uint64_t>(1000 * n + 10 * before + within));
  std::vector<X> x(static_cast<std::size_t>(before * n * within));
  for (X& e : x) e = an_element<X>(random);
  const regroup::parallel two = regroup::par.with_threads(2);

  const std::vector<shape> orders = {{0, 1, 2}, {1, 0, 2}, {2, 0, 1}};  // where memory has the three axes
  for (const shape& order : orders) {
    const shape extents = {before, n, within};
    shape strides = {0, 0, 0};
    for (index step = 1, k = 2; k >= 0; step *= extents[static_cast<int>(order[static_cast<int>(k--)])]) {
      strides[static_cast<int>(order[static_cast<int>(k)])] = step;
    }
    std::vector<Y> y(x.size());
    std::vector<X> copy = x;
    const view<const X> in(x.data(), extents, strides);
    for (const what verb : {what::softmax, what::log_softmax, what::logsumexp}) {
      for (const bool in_place : {false, true}) {
        if (in_place && (verb == what::logsumexp || !std::same_as<X, Y>)) continue;
        copy = x;
        const view<const X> from(copy.data(), extents, strides);
        view<Y> to(y.data(), extents, strides);
        if constexpr (std::same_as<X, Y>) {
          if (in_place) to = view<Y>(copy.data(), extents, strides);
        }
        std::vector<real> lse(static_cast<std::size_t>(before * segments * within), real{7});
        const view<real> places(lse.data(), {before, segments, within});
        switch (verb) {
          case what::softmax:
            regroup::softmax_segments(two, from, narrow, to, {.axis = 1, .logsumexp = places});
            break;
          case what::log_softmax:
            regroup::log_softmax_segments(regroup::seq, from, offsets, to, {.scale = 0.75, .axis = -2, .logsumexp = places});
            break;
          case what::logsumexp:
            regroup::logsumexp_segments(two, from, offsets, places, {.scale = 1, .axis = 1});
        }
        for (index b = 0; b < before; ++b) {
          for (index s = 0; s < segments; ++s) {
            for (index w = 0; w < within; ++w) {
              const index first = offsets[static_cast<std::size_t>(s)], length = lengths[static_cast<std::size_t>(s)];
              std::vector<X> row;
              for (index i = 0; i < length; ++i) row.push_back(in(b, first + i, w));
              std::vector<Y> expected(row.size());
              std::vector<real> of_row(1);
              if (verb == what::softmax) regroup::softmax(regroup::seq, row, expected, {.logsumexp = of_row});
              if (verb == what::log_softmax) {
                regroup::log_softmax(regroup::seq, row, expected, {.scale = 0.75, .logsumexp = of_row});
              }
              if (verb == what::logsumexp) regroup::logsumexp(regroup::seq, row, of_row);
              const std::string where = "verb " + std::to_string(static_cast<int>(verb)) + ", order " + to_string(order) +
                                        ", line " + std::to_string(b) + ", segment " + std::to_string(s) + " of " +
                                        std::to_string(length) + ", within " + std::to_string(w);
              ASSERT_TRUE(same(places(b, s, w), of_row[0])) << where << ": " << places(b, s, w) << ", alone " << of_row[0];
              for (index i = 0; verb != what::logsumexp && i < length; ++i) {
                ASSERT_TRUE(same(to(b, first + i, w), expected[static_cast<std::size_t>(i)]))
                    << where << ", in place " << in_place << ", " << i;
              }
            }
          }
        }
      }
    }
  }
}

std::vector<index> many(index count, index most) {
  order::dice random(static_cast<std::uint64_t>(count));
  std::vector<index> lengths;
  for (index s = 0; s < count; ++s) lengths.push_back(random(0, 2) == 0 ? 0 : random(0, most));
  return lengths;
}

template <class X>
class softmax_segments : public testing::Test {};
using types = testing::Types<float, double, regroup::float16, regroup::bfloat16>;
TYPED_TEST_SUITE(softmax_segments, types);

TYPED_TEST(softmax_segments, a_segment_has_the_bits_it_has_alone) {
  for (const index before : {1, 2}) {
    for (const index within : {1, 3}) {
      expect_segments_as_alone<TypeParam>({}, before, within);
      expect_segments_as_alone<TypeParam>({0}, before, within);
      expect_segments_as_alone<TypeParam>({0, 0, 1, 0, 2, 0}, before, within);
      expect_segments_as_alone<TypeParam>({511, 1, 512, 31, 32, 33, 0, 127, 128, 129, 2, 300, 4097}, before, within);
      expect_segments_as_alone<TypeParam>(many(200, 40), before, within);
    }
  }
  expect_segments_as_alone<TypeParam>({5, 70'000, 0, 33'000, 12, 140'000, 3}, 1, 1);
  expect_segments_as_alone<TypeParam>({5, 70'000, 12}, 1, 2);
  expect_segments_as_alone<TypeParam>(many(20'000, 30), 1, 1);
  for (const index within : {15, 17, 40}) expect_segments_as_alone<TypeParam>(many(40, 30), 1, within);
}

TEST(softmax_segments_of, types_that_widen) {
  expect_segments_as_alone<regroup::bfloat16, float>(many(100, 60), 1, 3);
  expect_segments_as_alone<regroup::float16, float>({600, 3, 0, 40'000, 7}, 1, 1);
  expect_segments_as_alone<float, double>({600, 3, 0, 5000, 7}, 2, 1);
}

TEST(softmax_segments_of, nothing_within) {
  std::vector<float> none;
  const std::vector<index> offsets = {0, 2, 5};
  const view<float> x(none.data(), {5, 0});
  regroup::softmax_segments(regroup::par, x, offsets, x, {.axis = 0});
  regroup::logsumexp_segments(regroup::par, x, offsets, [](index, float) { FAIL() << "there is no row"; }, {.axis = 0});
}

TEST(softmax_segments_of, what_cannot_be) {
  std::vector<float> x(5), y(5), lse(2);
  std::vector<index> offsets = {0, 2, 5};
  const auto refused = [&](const std::vector<index>& wrong) {
    EXPECT_THROW(regroup::softmax_segments(regroup::seq, x, wrong, y), regroup::offsets_error);
    EXPECT_THROW(regroup::logsumexp_segments(regroup::seq, x, wrong, lse), regroup::offsets_error);
  };
  refused({});
  refused({1, 2, 5});
  refused({0, 3, 2, 5});
  refused({0, 2, 4});
  refused({0, 2, 6});
  const auto parts = std::span(x);
  EXPECT_THROW(regroup::softmax_segments(regroup::seq, x, offsets, parts.first(4)), regroup::shape_error);
  EXPECT_THROW(regroup::softmax_segments(regroup::seq, parts.first(4), std::vector{0, 4}, parts.last(4)),
               regroup::overlap_error);
  EXPECT_THROW(regroup::softmax_segments(regroup::seq, x, offsets, y, {.logsumexp = std::span(lse).first(1)}),
               regroup::shape_error);
  EXPECT_THROW(regroup::softmax_segments(regroup::seq, x, offsets, y, {.logsumexp = std::span(y).first(2)}),
               regroup::overlap_error);
  EXPECT_THROW(regroup::softmax_segments(regroup::seq, x, offsets, y, {.scale = std::numeric_limits<double>::infinity()}),
               regroup::argument_error);
  EXPECT_THROW(regroup::softmax_segments(regroup::seq, x, offsets, y, {.axis = 1}), regroup::shape_error);
  EXPECT_THROW(regroup::logsumexp_segments(regroup::seq, x, offsets, std::span(lse).first(1)), regroup::shape_error);
  EXPECT_THROW(regroup::logsumexp_segments(regroup::seq, x, offsets, std::span(x).first(2)), regroup::overlap_error);
  std::vector<std::int32_t> shared = {0, 2, 5, 5, 5};
  const view<float> over(reinterpret_cast<float*>(shared.data()), {5});
  EXPECT_THROW(regroup::softmax_segments(regroup::seq, x, std::span(shared).first(3), over), regroup::overlap_error);
}

/// What lay in scratch before is not computed with: new memory holds 0x7f7f7f7f, 3.4e38, which no float16 holds.
TEST(softmax_segments_of, nothing_that_scratch_held) {
  std::vector<index> offsets = {0};
  for (const index n : {5, 8, 12, 20, 1, 33, 40, 57}) offsets.push_back(offsets.back() + n);
  const std::vector<regroup::float16> x(static_cast<std::size_t>(offsets.back()), regroup::float16(1.5f));
  std::vector<regroup::float16> y(x.size());
  mallopt(M_PERTURB, 0x80);
  std::feclearexcept(FE_ALL_EXCEPT);
  regroup::softmax_segments(regroup::seq, x, offsets, y);
  const int raised = std::fetestexcept(FE_OVERFLOW | FE_INVALID);
  mallopt(M_PERTURB, 0);
  EXPECT_EQ(raised, 0);
}

}  // namespace
}  // namespace properties

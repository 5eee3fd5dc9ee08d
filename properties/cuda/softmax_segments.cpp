// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp of segments by the device's kernels have the bits of `seq`: of every length and any beside
// it, in place, of every type, with infinities and NaN, under every schedule, on any grid.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "regroup/algorithms/softmax_segments.hpp"
#include "regroup/cuda/segment_rows.hpp"
#include "rows.hpp"

namespace {

using emulated::machine;
using emulated::schedule;
using order::digest_of;
using order::kind;
using regroup::index;
namespace cuda = regroup::cuda;
using regroup::softmax_parts::log_probability;
using regroup::softmax_parts::probability;

template <class X>
using real_of = regroup::widened<X>;

template <class X>
auto widened_of(const std::vector<X>& xs) {
  std::vector<real_of<X>> wide;
  for (const X x : xs) wide.push_back(regroup::widen(x));
  return wide;
}

/// Runs a verb's work in exactly the workspace it asks for.
template <class Work>
void run(const machine& on, const Work& work, index most_blocks = cuda::most_blocks) {
  machine another = on;
  const auto memory = emulated::memory_of(work.bytes());
  work.run(emulated::executor{another, 1, most_blocks}, {memory.data(), work.bytes()});
}

template <class X, class Y = X>
void expect_the_bits_of_seq(const machine& on, kind k, const std::vector<index>& lengths, const std::string& where,
                            index most_blocks = cuda::most_blocks) {
  std::vector<int> offsets = {0};
  for (const index n : lengths) offsets.push_back(offsets.back() + static_cast<int>(n));
  const index total = offsets.back(), count = static_cast<index>(lengths.size());
  std::vector<X> xs;
  for (const float x : order::numbers<float>(k, total, static_cast<std::uint64_t>(total) + 5)) xs.push_back(X(x));
  using real = real_of<X>;
  const std::vector<real> wide = widened_of(xs);
  std::vector<real> expected(wide.size()), expected_lse(lengths.size()), lse(lengths.size(), real{99});
  const cuda::device_view<const int> at(offsets.data(), {count + 1});
  const cuda::device_view<const X> x(xs.data(), {total});
  const cuda::device_view<real> sums(lse.data(), {count});
  const auto compare = [&](std::vector<Y> ys, const std::string& verb) {
    for (auto& y : expected) y = regroup::widen(static_cast<Y>(y));
    ASSERT_EQ(digest_of(widened_of(ys)), digest_of(expected)) << where << ", " << verb;
    ASSERT_EQ(digest_of(lse), digest_of(expected_lse)) << where << ", the logsumexps of " << verb;
  };

  regroup::softmax_segments(regroup::seq, wide, offsets, expected, {.scale = 0.37, .logsumexp = expected_lse});
  std::vector<Y> ys(xs.begin(), xs.end());
  const cuda::device_view<Y> y(ys.data(), {total});
  if constexpr (std::same_as<X, Y>) {  // in place
    run(on, cuda::normalise_segments<probability>(y, at, y, {.scale = 0.37, .logsumexp = sums}, "softmax_segments"),
        most_blocks);
  } else {
    run(on, cuda::normalise_segments<probability>(x, at, y, {.scale = 0.37, .logsumexp = sums}, "softmax_segments"),
        most_blocks);
  }
  compare(ys, "softmax");

  regroup::log_softmax_segments(regroup::seq, wide, offsets, expected, {.logsumexp = expected_lse});
  lse.assign(lse.size(), real{99});
  run(on, cuda::normalise_segments<log_probability>(x, at, y, {.logsumexp = sums}, "log_softmax_segments"), most_blocks);
  compare(ys, "log_softmax");

  regroup::logsumexp_segments(regroup::seq, wide, offsets, expected_lse);
  lse.assign(lse.size(), real{99});
  run(on, cuda::log_sums_of_segments(x, at, sums, {}), most_blocks);
  ASSERT_EQ(digest_of(lse), digest_of(expected_lse)) << where << ", logsumexp";
}

std::vector<index> any_lengths(index count, index most, std::uint64_t seed) {
  order::dice random(seed);
  std::vector<index> lengths;
  for (index s = 0; s < count; ++s) lengths.push_back(random(0, 3) == 0 ? 0 : random(0, most));
  return lengths;
}

const std::vector<index> edges = {33, 0, 1, 32, 1024, 31, 1025, 0, 2, 127, 129, 4096, 500, 4097, 9001, 5, 0};

}  // namespace

TEST(softmax_segments, of_every_length) {
  for (const kind k : {kind::plain, kind::special, kind::wide}) {
    for (auto [name, on] : emulated::machines(500, k == kind::plain && !order::small())) {
      expect_the_bits_of_seq<float>(on, k, edges, name + ", kind " + std::to_string(int(k)));
      if (HasFatalFailure()) return;
    }
  }
  const machine on(schedule::random, 3);
  expect_the_bits_of_seq<float>(on, kind::plain, {}, "no segment");
  expect_the_bits_of_seq<float>(on, kind::plain, {0}, "an empty one");
  expect_the_bits_of_seq<float>(on, kind::plain, {0, 0, 7, 0}, "a few");
}
TEST(softmax_segments, of_other_types) {
  const machine on(schedule::random, 3);
  expect_the_bits_of_seq<double>(on, kind::plain, edges, "double");
  expect_the_bits_of_seq<regroup::bfloat16>(on, kind::special, edges, "bfloat16");
  expect_the_bits_of_seq<regroup::float16, float>(on, kind::wide, edges, "float16 to float");
}
TEST(softmax_segments, many_on_any_grid) {
  const machine on(schedule::random, 4);
  expect_the_bits_of_seq<float>(on, kind::special, any_lengths(2000, 40, 1), "short ones");
  expect_the_bits_of_seq<float>(on, kind::plain, any_lengths(60, 3000, 2), "a mix", 2);
  expect_the_bits_of_seq<float>(on, kind::plain, any_lengths(400, 100, 3), "on one block", 1);
}
TEST(softmax_segments, past_two_sweeps) {
  if (order::small()) GTEST_SKIP() << "long segments";
  const machine on(schedule::random, 4);
  for (const kind k : {kind::plain, kind::special}) {
    expect_the_bits_of_seq<float>(on, k, {5, 65'536, 0, 65'537, 1025, 200'001, 3, 40'000}, "long ones among others");
  }
  expect_the_bits_of_seq<float>(on, kind::plain, {9'000'000, 70'000}, "one of two levels", 64);
}

TEST(softmax_segments, what_cannot_be) {
  std::vector<float> xs(6), ys(6), lse(2);
  std::vector<int> offsets = {0, 2, 6};
  const cuda::device_view<float> x(xs.data(), {6}), y(ys.data(), {6}), matrix(ys.data(), {2, 3});
  const cuda::device_view<int> at(offsets.data(), {3});
  const auto of = [&](const auto& in, const auto& out, const cuda::softmax_options<float>& options = {}) {
    cuda::normalise_segments<probability>(in, at, out, options, "softmax_segments");
  };
  of(x, y);
  EXPECT_THROW(of(matrix, matrix), regroup::shape_error);
  EXPECT_THROW(of(x, y, {.axis = 1}), regroup::shape_error);
  EXPECT_THROW(of(x, cuda::device_view<float>(ys.data(), {5})), regroup::shape_error);
  EXPECT_THROW(of(cuda::device_view<float>(xs.data(), {3}, {2}), cuda::device_view<float>(ys.data(), {3})),
               regroup::shape_error);
  EXPECT_THROW(of(x, y, {.logsumexp = cuda::device_view<float>(lse.data(), {1})}), regroup::shape_error);
  EXPECT_THROW(of(x, y, {.logsumexp = cuda::device_view<float>(ys.data(), {2})}), regroup::overlap_error);
  EXPECT_THROW(of(x, y, {.scale = std::numeric_limits<double>::infinity()}), regroup::argument_error);
  EXPECT_THROW(cuda::log_sums_of_segments(x, at, cuda::device_view<float>(xs.data(), {2}), {}), regroup::overlap_error);
  EXPECT_THROW(cuda::segments_of(x, cuda::device_view<int>(offsets.data(), {0})), regroup::offsets_error);
}

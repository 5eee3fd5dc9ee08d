// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp of rows that ranks cut have the bits of `seq` over the whole, and a rank writes its part
// and nothing beside it.
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <vector>

#include "../order/digest.hpp"
#include "parts.hpp"
#include "regroup/mpi/softmax.hpp"

namespace ranks_test {
namespace {

using order::digest_of;
using regroup::seq;

/// Short rows, rows of nothing or of fewer elements than ranks, more rows than go in one message, rows on both sides of the
/// length from which they are swept once, and columns.
std::vector<cut_array> cut_rows() {
  order::dice random(83);
  return {{{5, 9'001}, 1, random},  {{1, 65'536}, 1, random}, {{2, 65'537}, 1, random}, {{1, 200'000}, 1, random},
          {{2, 3}, 1, random},      {{4, 0}, 1, random},      {{0, 7}, 1, random},      {{1500, 20}, 1, random},
          {{3, 40, 50}, 2, random}, {{700, 6}, 0, random},    {{2, 300, 3}, 1, random}};
}

template <class T>
std::uint64_t bits(const std::vector<T>& x) {
  return digest_of(std::vector<regroup::widened<T>>(x.begin(), x.end()));
}

template <class T>
std::vector<T> numbers(order::kind kind, index n) {
  std::vector<T> xs;
  for (const float x : order::numbers<float>(kind, n, 7)) xs.push_back(static_cast<T>(x));
  return xs;
}
/// -inf but for up to nine places, far apart: a rank may hold nothing else of a row whose NaN, +inf or number another has.
template <class T>
std::vector<T> lone_numbers(index n) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<T> xs(static_cast<std::size_t>(n), static_cast<T>(-infinity));
  const float rare[] = {1.5f, infinity, std::numeric_limits<float>::quiet_NaN(), -0.0f};
  std::size_t kind = 0;
  for (std::size_t i = 0; i < xs.size(); i += 1 + xs.size() / 9) xs[i] = static_cast<T>(rare[kind++ % 4]);
  return xs;
}

template <class T>
void same_bits(const cut_array& a, const std::vector<T>& x) {
  const auto rows = static_cast<std::size_t>(a.extents[a.axis] == 0 ? 4 : a.size() / a.extents[a.axis]);
  const std::vector<T> before(x.size(), static_cast<T>(77.0f));
  std::vector<T> whole = before, got = before;
  std::vector<regroup::widened<T>> expected_lse(rows), lse(rows);
  const auto in = a.whole(x.data()), in_part = a.part(x.data());

  regroup::softmax(seq, in, a.whole(whole.data()), {.scale = 0.7, .axis = a.axis, .logsumexp = expected_lse});
  regroup::softmax(all(), in_part, a.part(got.data()), {.scale = 0.7, .axis = a.axis, .logsumexp = lse});
  EXPECT_EQ(bits(got), bits(a.with_part_of(whole, before))) << "softmax, " << a.name();
  EXPECT_EQ(bits(lse), bits(expected_lse)) << "its logsumexp, " << a.name();

  regroup::log_softmax(seq, in, a.whole(whole.data()), {.axis = a.axis});
  got = x;
  regroup::log_softmax(all(), a.part(got.data()), a.part(got.data()), {.axis = a.axis});
  EXPECT_EQ(bits(got), bits(a.with_part_of(whole, x))) << "log_softmax in place, " << a.name();

  regroup::logsumexp(seq, in, expected_lse, {.axis = a.axis});
  regroup::logsumexp(all(), in_part, lse, {.axis = a.axis});
  EXPECT_EQ(bits(lse), bits(expected_lse)) << "logsumexp, " << a.name();
}

TEST(softmax, of_floats) {
  for (const cut_array& a : cut_rows()) {
    same_bits(a, numbers<float>(order::kind::wide, a.size()));
    same_bits(a, lone_numbers<float>(a.size()));
  }
}
TEST(softmax, of_bfloat16) {
  for (const cut_array& a : cut_rows()) same_bits(a, numbers<regroup::bfloat16>(order::kind::plain, a.size()));
}
TEST(softmax, of_doubles) {
  for (const cut_array& a : cut_rows()) same_bits(a, numbers<double>(order::kind::special, a.size()));
}

TEST(softmax, with_wider_outputs) {
  order::dice random(89);
  const cut_array a({4, 5'000}, 1, random);
  const auto x = numbers<regroup::float16>(order::kind::plain, a.size());
  const std::vector<float> before(x.size(), 77.0f);
  auto whole = before, got = before;
  regroup::softmax(seq, a.whole(x.data()), a.whole(whole.data()));
  regroup::softmax(all(), a.part(x.data()), a.part(got.data()));
  EXPECT_EQ(digest_of(got), digest_of(a.with_part_of(whole, before)));
}

TEST(softmax, a_taker_of_logsumexps_is_called_once_a_row_on_every_rank) {
  const std::vector<float> x(60);
  std::vector<std::atomic<int>> calls(6);
  const auto take = [&](index row, float) { ++calls[static_cast<std::size_t>(row)]; };
  regroup::logsumexp(all(), view(x.data(), {6, 10}), take);
  for (const auto& n : calls) EXPECT_EQ(n, 1);
}

TEST(softmax, of_different_numbers_of_rows_is_refused_everywhere) {
  if (all().size() == 1) return;
  const index rows = all().rank() == 0 ? 3 : 2;
  const std::vector<float> x(static_cast<std::size_t>(rows * 10));
  std::vector<float> y(x.size());
  EXPECT_THROW(regroup::softmax(all(), view(x.data(), {rows, 10}), view(y.data(), {rows, 10})), regroup::shape_error);
  EXPECT_EQ(y, std::vector<float>(x.size()));
}

}  // namespace
}  // namespace ranks_test

// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax, logsumexp and cross_entropy of rows that ranks cut have the bits of `seq` over the whole, and a rank
// writes its part and nothing beside it.
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

template <class T>
void same_losses(const cut_array& a, const std::vector<T>& x) {
  using real = regroup::widened<T>;
  const index classes = a.extents[1];
  std::vector<std::int32_t> targets;
  for (index row = 0; row < a.extents[0]; ++row) {  // on every rank, and ignored
    targets.push_back(row % 7 == 3 || classes == 0 ? -100 : static_cast<std::int32_t>(row * 7919 % classes));
  }
  const auto rows = targets.size();
  const std::vector<T> before(x.size(), static_cast<T>(77.0f));
  std::vector<T> whole = before, got = before;
  std::vector<real> expected_losses(rows), losses(rows);
  const real expected = regroup::cross_entropy(
      seq, a.whole(x.data()), targets, {.gradient = a.whole(whole.data()), .losses = expected_losses, .scale = 0.7});
  const real loss = regroup::cross_entropy(all(), a.part(x.data()), targets,
                                           {.gradient = a.part(got.data()), .losses = losses, .scale = 0.7});
  EXPECT_EQ(bits(std::vector{loss}), bits(std::vector{expected})) << a.name();
  EXPECT_EQ(bits(losses), bits(expected_losses)) << "losses, " << a.name();
  EXPECT_EQ(bits(got), bits(a.with_part_of(whole, before))) << "gradient, " << a.name();
}

/// In place, summed; and without a gradient or losses.
void same_sums(const cut_array& a, const std::vector<float>& x) {
  const std::vector<std::uint8_t> targets(static_cast<std::size_t>(a.extents[0]), static_cast<std::uint8_t>(a.extents[1] / 2));
  const auto sum = regroup::loss_reduction::sum;
  std::vector<float> whole = x, got = x;
  const float expected = regroup::cross_entropy(seq, a.whole(whole.data()), targets,
                                                {.reduction = sum, .gradient = a.whole(whole.data())});
  EXPECT_EQ(regroup::cross_entropy(all(), a.part(got.data()), targets, {.reduction = sum}), expected) << a.name();
  regroup::cross_entropy(all(), a.part(got.data()), targets, {.reduction = sum, .gradient = a.part(got.data())});
  EXPECT_EQ(bits(got), bits(a.with_part_of(whole, x))) << a.name();
}

TEST(cross_entropy, of_logits_that_ranks_cut) {
  for (const cut_array& a : cut_rows()) {
    if (a.extents.size() != 2 || a.axis != 1) continue;
    same_losses(a, lone_numbers<float>(a.size()));
    same_losses(a, numbers<float>(order::kind::wide, a.size()));
    same_losses(a, numbers<regroup::float16>(order::kind::plain, a.size()));
    same_losses(a, numbers<double>(order::kind::special, a.size()));
  }
  order::dice random(97);
  for (const shape& extents : {shape{3, 7}, shape{30, 300}, shape{2, 9'001}}) {
    const cut_array a(extents, 1, random);
    same_sums(a, numbers<float>(order::kind::wide, a.size()));
  }
}

/// On every rank, also what only one has wrong: afterwards all can go on.
TEST(cross_entropy, refuses_wrong_targets_everywhere) {
  const bool is_first = all().rank() == 0;
  const std::vector<float> x(15);
  std::vector<float> gradient(x.size());
  const index classes = 5 * all().size();
  const auto of = [&](const std::vector<index>& targets, index ignore_index = -100) {
    const auto rows = static_cast<index>(targets.size());
    return regroup::cross_entropy(all(), view(x.data(), {rows, 5}), targets,
                                  {.ignore_index = ignore_index, .gradient = view(gradient.data(), {rows, 5})});
  };
  EXPECT_THROW(of({classes - 1, classes}), regroup::argument_error);
  EXPECT_THROW(of({classes - 1, -1}), regroup::argument_error);
  if (all().size() > 1) {
    EXPECT_THROW(of({0, is_first ? classes : 1}), regroup::argument_error);
    EXPECT_THROW(of({0, is_first ? 0 : 1}), regroup::argument_error);
    EXPECT_THROW(of({0, is_first ? 0 : -100}), regroup::argument_error);
    EXPECT_THROW(of({0, -100}, is_first ? -1 : -100), regroup::argument_error);
    EXPECT_THROW(of(std::vector<index>(is_first ? 3 : 2)), regroup::shape_error);
  }
  EXPECT_EQ(gradient, std::vector<float>(x.size()));
  EXPECT_GT(of({0, 1}), 0);
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

// SPDX-License-Identifier: Apache-2.0
// Cross-entropy against long double within the computed bound; its gradient, reductions, ignored rows, special values.
#include "regroup/algorithms/cross_entropy.hpp"

#include <gtest/gtest.h>

#include <span>

#include "order/cases.hpp"
#include "order/digest.hpp"
#include "softmax_reference.hpp"

namespace properties {
namespace {

using regroup::loss_reduction;

struct batch {
  index rows, classes;
  std::vector<float> x;
  std::vector<index> targets;
  [[nodiscard]] regroup::view<const float> logits() const { return {x.data(), {rows, classes}}; }
  [[nodiscard]] std::vector<float> row(index r) const {
    return {x.begin() + r * classes, x.begin() + (r + 1) * classes};
  }
};

batch batch_of(index rows, index classes, int kind) {
  batch b{rows, classes, as<float>(row_of_kind(kind, rows * classes, 21)), {}};
  order::dice random(5);
  for (index r = 0; r < rows; ++r) b.targets.push_back(random(0, classes - 1));
  return b;
}

}  // namespace

TEST(cross_entropy, losses_and_gradient_within_their_bounds) {
  for (const auto& [rows, classes] :
       {std::pair<index, index>{40, 1}, {40, 2}, {20, 10}, {7, 300}, {3, 30'000}, {2, 70'000}}) {
    for (const int kind : {0, 1, 2, 3}) {
      const batch b = batch_of(rows, classes, kind);
      std::vector<float> losses(static_cast<std::size_t>(rows));
      std::vector<float> gradient(b.x.size());
      const float sum = regroup::cross_entropy(regroup::par, b.logits(), b.targets,
                                               {.reduction = loss_reduction::sum,
                                                .gradient = regroup::view<float>(gradient.data(), {rows, classes}),
                                                .losses = losses});
      worst_ratio loss_worst;
      worst_ratio gradient_worst;
      long double total = 0;
      long double total_bound = 0;
      for (index r = 0; r < rows; ++r) {
        const auto at = static_cast<std::size_t>(r);
        const auto t = static_cast<std::size_t>(b.targets[at]);
        const softmax_reference<float> reference(b.row(r));
        const long double bound = reference.log_probability_bound<float>(t);
        loss_worst.see(losses[at], -reference.log_probability(t), bound);
        total -= reference.log_probability(t);
        total_bound += bound;
        for (std::size_t j = 0; j < static_cast<std::size_t>(classes); ++j) {
          const long double p = reference.probability(j) - (j == t ? 1 : 0);
          const long double rounded = j == t ? unit<float> * std::fabs(p) : 0;
          gradient_worst.see(gradient[at * static_cast<std::size_t>(classes) + j], p,
                             reference.probability_bound<float>(j) + second_order * rounded);
        }
      }
      EXPECT_LE(loss_worst.value(), 1) << classes << " kind " << kind;
      EXPECT_LE(gradient_worst.value(), 1) << classes << " kind " << kind;
      EXPECT_LE(std::fabs(sum - total), total_bound + unit<float> * std::fabs(total) * second_order);
    }
  }
}

/// log s + (M - x_t) keeps what logsumexp - x_t loses: at logits of 1e4 the latter is off by up to 6e-4.
TEST(cross_entropy, keeps_small_losses_at_large_logits) {
  const std::vector<float> x = {1e4f, 1e4f - 8, 1e4f - 9};
  const float loss = regroup::cross_entropy(regroup::seq, regroup::view<const float>(x.data(), {1, 3}), std::vector{0});
  EXPECT_NEAR(loss, std::log1p(std::exp(-8.0) + std::exp(-9.0)), 1e-7);
}

TEST(cross_entropy, is_minus_log_softmax_bitwise_with_any_threads) {
  const batch b = batch_of(50, 1000, 1);
  std::vector<float> log_p(b.x.size());
  regroup::log_softmax(regroup::seq, b.logits(), regroup::view<float>(log_p.data(), {b.rows, b.classes}));
  float first = 0;
  order::for_each_executor([&](const auto& ex, const std::string& name) {
    std::vector<float> losses(50);
    const float mean = regroup::cross_entropy(ex, b.logits(), b.targets, {.losses = losses});
    if (first == 0) first = mean;
    EXPECT_EQ(mean, first) << name;
    for (std::size_t r = 0; r < 50; ++r)
      EXPECT_EQ(losses[r], -log_p[r * 1000 + static_cast<std::size_t>(b.targets[r])]) << name;
  });
}

namespace {
/// Rows of logits with special values, some ignored, as contiguous rows and as columns, with a gradient apart and in place:
/// losses and gradients have the bits of each row alone.
template <class T>
void expect_bits_of_rows_alone(index classes) {
  using real = regroup::widened<T>;
  const index count = 41;
  order::dice random(static_cast<std::uint32_t>(classes));
  std::vector<T> x, across(static_cast<std::size_t>(count * classes));
  for (const float v : order::numbers<float>(order::kind::plain, count * classes, 3)) x.push_back(static_cast<T>(v));
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float v : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (int n = 0; n < 3; ++n) x[static_cast<std::size_t>(random(0, count * classes - 1))] = static_cast<T>(v);
  }
  std::vector<int> targets;
  for (index r = 0; r < count; ++r) targets.push_back(r % 5 == 2 ? -100 : static_cast<int>(random(0, classes - 1)));

  const regroup::view<T> rows(x.data(), {count, classes}), columns(across.data(), {count, classes}, {1, count});
  for (index i = 0; i < count * classes; ++i) columns(i / classes, i % classes) = x[static_cast<std::size_t>(i)];
  std::vector<T> alone(x.size());
  std::vector<real> alone_losses;
  const auto sum = loss_reduction::sum;
  for (index r = 0; r < count; ++r) {
    const regroup::view<T> g(alone.data() + r * classes, {1, classes});
    alone_losses.push_back(regroup::cross_entropy(regroup::seq, regroup::view<const T>(&rows(r, 0), {1, classes}),
                                                  std::vector{targets[static_cast<std::size_t>(r)]},
                                                  {.reduction = sum, .gradient = g, .scale = 0.75, .gradient_scale = 3}));
  }
  const auto as_reals = [&](const regroup::view<T>& g) {
    std::vector<real> all;
    for (index i = 0; i < count * classes; ++i) all.push_back(regroup::widen(g(i / classes, i % classes)));
    return all;
  };
  std::vector<T> gradient(x.size());
  const regroup::view<T> apart(gradient.data(), {count, classes});
  const regroup::cross_entropy_options<T, real> options{.reduction = sum, .scale = 0.75, .gradient_scale = 3};
  for (const auto& [logits, g] : {std::pair{rows, apart}, {columns, apart}, {columns, columns}, {rows, rows}}) {
    std::vector<real> losses(static_cast<std::size_t>(count)), without_gradient = losses;
    auto wanted = options;
    wanted.losses = without_gradient;
    regroup::cross_entropy(regroup::seq, logits, targets, wanted);
    wanted.losses = losses;
    wanted.gradient = g;
    regroup::cross_entropy(regroup::par, logits, targets, wanted);
    EXPECT_EQ(order::digest_of(losses), order::digest_of(alone_losses)) << classes;
    EXPECT_EQ(order::digest_of(without_gradient), order::digest_of(alone_losses)) << classes;
    EXPECT_EQ(order::digest_of(as_reals(g)), order::digest_of(std::vector<real>(alone.begin(), alone.end()))) << classes;
  }
}
}  // namespace

TEST(cross_entropy, a_row_has_the_same_bits_alone_and_in_any_batch) {
  for (const index classes : {1, 2, 3, 10, 17, 128, 192, 193, 500, 5000}) {
    expect_bits_of_rows_alone<float>(classes);
    expect_bits_of_rows_alone<regroup::float16>(classes);
    expect_bits_of_rows_alone<double>(classes);
  }
}

TEST(cross_entropy, ignored_rows_take_no_part) {
  batch b = batch_of(6, 10, 0);
  b.targets[1] = -100;
  b.targets[4] = -100;
  b.x[13] = std::numeric_limits<float>::quiet_NaN();  // in an ignored row
  std::vector<float> gradient(b.x.size(), 7);
  std::vector<float> losses(6, 7);
  const regroup::view<float> g(gradient.data(), {6, 10});
  const float mean = regroup::cross_entropy(regroup::par, b.logits(), b.targets, {.gradient = g, .losses = losses});
  EXPECT_EQ(losses[1], 0);
  EXPECT_EQ(losses[4], 0);
  for (index j = 0; j < 10; ++j) EXPECT_EQ(g(1, j), 0);
  double sum = 0;
  for (const float loss : losses) sum += static_cast<double>(loss);
  EXPECT_FLOAT_EQ(mean, static_cast<float>(sum / 4));
  double row_sum = 0;
  for (index j = 0; j < 10; ++j) row_sum += static_cast<double>(g(0, j));
  EXPECT_NEAR(row_sum, 0, 1e-7);

  const float other = regroup::cross_entropy(regroup::par, b.logits(), std::vector{3, 3, 3, 3, 3, 3},
                                             {.ignore_index = 3, .reduction = loss_reduction::sum});
  EXPECT_EQ(other, 0);  // of nothing
  std::vector<std::uint64_t> wrapped(6, 3);
  wrapped[5] = ~std::uint64_t{99};  // 2^64 - 100
  EXPECT_THROW(regroup::cross_entropy(regroup::par, b.logits(), wrapped), regroup::argument_error);
  EXPECT_THROW(regroup::cross_entropy(regroup::par, b.logits(), wrapped,
                                      {.ignore_index = std::numeric_limits<regroup::index>::max()}),
               regroup::argument_error);
  const std::vector<int> none(6, -100);
  EXPECT_TRUE(std::isnan(regroup::cross_entropy(regroup::par, b.logits(), none, {.gradient = g})));
  for (const float e : gradient) EXPECT_EQ(e, 0);
}

TEST(cross_entropy, gradient_in_place_and_of_the_mean) {
  const batch b = batch_of(6, 300, 1);
  std::vector<float> apart(b.x.size());
  std::vector<float> sums(b.x.size());
  std::vector<float> same = b.x;
  const auto as_view = [&](std::vector<float>& v) { return regroup::view<float>(v.data(), {b.rows, b.classes}); };
  const float one = regroup::cross_entropy(regroup::par, b.logits(), b.targets, {.gradient = as_view(apart)});
  const float two = regroup::cross_entropy(regroup::seq, as_view(same), b.targets, {.gradient = as_view(same)});
  EXPECT_EQ(one, two);
  EXPECT_EQ(apart, same);
  regroup::cross_entropy(regroup::seq, b.logits(), b.targets,
                         {.reduction = loss_reduction::sum, .gradient = as_view(sums)});
  for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(apart[i], sums[i] * (1.0f / 6));
}

/// d loss / d x_j by differences of the loss itself, in double, of logits with a scale.
TEST(cross_entropy, gradient_is_the_derivative) {
  std::vector<double> x = row_of_kind(0, 12, 3);
  const std::vector<short> targets = {1, 0, 3};
  std::vector<double> gradient(12);
  const auto loss = [&](double* g) {
    const regroup::view<double> v(x.data(), {3, 4});
    return g == nullptr ? regroup::cross_entropy(regroup::seq, v, targets, {.scale = -1.25})
                        : regroup::cross_entropy(regroup::seq, v, targets,
                                                 {.gradient = regroup::view<double>(g, {3, 4}), .scale = -1.25});
  };
  loss(gradient.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + 1e-5;
    const double above = loss(nullptr);
    x[i] = kept - 1e-5;
    const double below = loss(nullptr);
    x[i] = kept;
    EXPECT_NEAR(gradient[i], (above - below) / 2e-5, 1e-9);
  }
}

/// Of logits that the caller multiplied, rounding once: losses bitwise, and the gradient's factor is the scale.
TEST(cross_entropy, scaled_logits_are_the_logits_times_the_scale) {
  for (const index classes : {3, 300, 70'000}) {
    const batch b = batch_of(5, classes, 1);
    batch by_hand = b;
    for (float& x : by_hand.x) x *= 0.3f;
    std::vector<float> losses(5), losses_by_hand(5);
    std::vector<float> gradient(b.x.size()), gradient_by_hand(b.x.size());
    const auto as_view = [&](std::vector<float>& v) { return regroup::view<float>(v.data(), {5, classes}); };
    regroup::cross_entropy(regroup::par, b.logits(), b.targets,
                           {.reduction = loss_reduction::sum, .gradient = as_view(gradient), .losses = losses, .scale = 0.3f});
    regroup::cross_entropy(regroup::par, by_hand.logits(), b.targets,
                           {.reduction = loss_reduction::sum, .gradient = as_view(gradient_by_hand), .losses = losses_by_hand});
    EXPECT_EQ(losses, losses_by_hand);
    for (std::size_t i = 0; i < gradient.size(); ++i) ASSERT_EQ(gradient[i], gradient_by_hand[i] * 0.3f) << i;
  }
}

/// Shares of a mean over many rows are denormal in 16 bits; a loss scale brings them back.
TEST(cross_entropy, a_gradient_scale_keeps_16_bits_from_underflow) {
  const index rows = 4096;
  const index classes = 96;
  const std::vector<regroup::float16> x(static_cast<std::size_t>(rows * classes), regroup::float16(0));
  const std::vector<int> targets(static_cast<std::size_t>(rows), 3);
  std::vector<regroup::float16> gradient(x.size());
  const regroup::view<const regroup::float16> logits(x.data(), {rows, classes});
  const regroup::view<regroup::float16> g(gradient.data(), {rows, classes});
  const float plain = regroup::cross_entropy(regroup::par, logits, targets, {.gradient = g});
  EXPECT_GT(std::fabs(regroup::widen(g(0, 0)) * 96 * 4096 - 1), 0x1p-8);
  EXPECT_EQ(regroup::cross_entropy(regroup::par, logits, targets, {.gradient = g, .gradient_scale = 4096}), plain);
  for (index j = 0; j < classes; ++j) {
    EXPECT_EQ(regroup::widen(g(7, j)), regroup::widen(regroup::float16(1.0f / 96 - (j == 3 ? 1 : 0))));
  }
}

TEST(cross_entropy, refuses_scales_that_are_not_finite) {
  const batch b = batch_of(2, 3, 0);
  std::vector<float> gradient(6, 7);
  const regroup::view<float> g(gradient.data(), {2, 3});
  for (const double wrong : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), 1e39}) {
    EXPECT_THROW(regroup::cross_entropy(regroup::seq, b.logits(), b.targets, {.gradient = g, .scale = wrong}),
                 regroup::argument_error);
    EXPECT_THROW(regroup::cross_entropy(regroup::seq, b.logits(), b.targets, {.gradient = g, .gradient_scale = wrong}),
                 regroup::argument_error);
  }
  EXPECT_THROW(regroup::cross_entropy(regroup::seq, b.logits(), b.targets,
                                      {.gradient = g, .scale = 1e20, .gradient_scale = 1e20}),
               regroup::argument_error);
  EXPECT_EQ(gradient, std::vector<float>(6, 7));
}

TEST(cross_entropy, special_values) {
  const float inf = std::numeric_limits<float>::infinity();
  const float not_a_number = std::numeric_limits<float>::quiet_NaN();
  const auto loss = [](std::vector<float> x, int target) {
    return regroup::cross_entropy(regroup::seq, regroup::view<const float>(x.data(), {1, static_cast<index>(x.size())}),
                                  std::vector{target});
  };
  EXPECT_EQ(loss({3}, 0), 0);
  EXPECT_EQ(loss({-inf, 0}, 0), inf);
  EXPECT_EQ(loss({-inf, 0}, 1), 0);
  EXPECT_TRUE(std::isnan(loss({inf, 0}, 0)));
  EXPECT_TRUE(std::isnan(loss({inf, 0}, 1)));
  EXPECT_TRUE(std::isnan(loss({-inf, -inf}, 1)));
  EXPECT_TRUE(std::isnan(loss({not_a_number, 0}, 1)));
}

TEST(cross_entropy, ranks_targets_and_16_bits) {
  const batch b = batch_of(6, 10, 0);
  std::vector<float> losses(6);
  std::vector<float> folded(6);
  regroup::cross_entropy(regroup::par, b.logits(), b.targets, {.losses = losses});
  const std::vector<std::int32_t> narrow(b.targets.begin(), b.targets.end());
  regroup::cross_entropy(regroup::par, regroup::view<const float>(b.x.data(), {2, 3, 10}),
                         regroup::view<const std::int32_t>(narrow.data(), {2, 3}), {.losses = folded});
  EXPECT_EQ(losses, folded);
  auto others = b.targets;
  others[0] = 4;
  regroup::cross_entropy(regroup::par, b.logits(), others, {.losses = losses});
  const float only = regroup::cross_entropy(regroup::par, regroup::view<const float>(b.x.data(), {10}), std::vector{4},
                                            {.losses = regroup::view<float>(folded.data(), {1})});
  EXPECT_EQ(folded[0], losses[0]);
  EXPECT_EQ(only, losses[0]);

  const auto half = as<regroup::float16>(row_of_kind(0, 60, 21));
  std::vector<regroup::float16> gradient(60);
  const float mean =
      regroup::cross_entropy(regroup::par, regroup::view<const regroup::float16>(half.data(), {6, 10}), b.targets,
                             {.gradient = regroup::view<regroup::float16>(gradient.data(), {6, 10})});
  worst_ratio worst;
  long double sum = 0, sum_bound = 0;
  for (std::size_t r = 0; r < 6; ++r) {
    const auto t = static_cast<std::size_t>(b.targets[r]);
    const auto row = std::span(half).subspan(10 * r, 10);
    const softmax_reference<float> reference(std::vector(row.begin(), row.end()));
    for (std::size_t j = 0; j < 10; ++j) {
      const long double p = (reference.probability(j) - (j == t ? 1 : 0)) / 6;
      const long double in_float = reference.probability_bound<float>(j) / 6 + 3 * unit<float> * std::fabs(p);
      worst.see(gradient[10 * r + j], p, in_float + second_order * rounding<regroup::float16>(p));
    }
    sum -= reference.log_probability(t);
    sum_bound += reference.log_probability_bound<float>(t);
  }
  EXPECT_LE(worst.value(), 1);
  EXPECT_LE(std::fabs(mean - sum / 6), sum_bound / 6 + unit<float> * std::fabs(mean) * second_order);
}

}  // namespace properties

// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp against long double, each error as a fraction of the bound computed for its row: every
// short length, the edges of tiles and of the two orders, all kinds of rows, all element types.
#include <gtest/gtest.h>

#include "softmax_reference.hpp"

namespace properties {
namespace {

/// The worst ratios of all results of one row.
template <class X, class Out = X>
void see_row(const std::vector<X>& x, double scale, worst_ratio& p, worst_ratio& log_p, worst_ratio& lse) {
  using real = regroup::widened<X>;
  const softmax_reference<real> reference(x, scale);
  std::vector<Out> y(x.size());
  std::vector<real> out(1);
  regroup::softmax(regroup::seq, x, y, {.scale = scale, .logsumexp = out});
  lse.see(out[0], reference.logsumexp(), reference.logsumexp_bound());
  for (std::size_t j = 0; j < x.size(); ++j)
    p.see(y[j], reference.probability(j), reference.template probability_bound<Out>(j));
  regroup::log_softmax(regroup::seq, x, y, {.scale = scale});
  for (std::size_t j = 0; j < x.size(); ++j) {
    log_p.see(y[j], reference.log_probability(j), reference.template log_probability_bound<Out>(j));
  }
  out[0] = 0;
  regroup::logsumexp(regroup::seq, x, out, {.scale = scale});
  lse.see(out[0], reference.logsumexp(), reference.logsumexp_bound());
}

template <class X, class Out = X>
void within_bounds(const std::vector<index>& lengths, double scale = 1) {
  for (int kind = 0; kind < kinds; ++kind) {
    worst_ratio p;
    worst_ratio log_p;
    worst_ratio lse;
    for (const index n : lengths)
      see_row<X, Out>(as<X>(row_of_kind(kind, n, static_cast<std::uint64_t>(n))), scale, p, log_p, lse);
    EXPECT_LE(p.value(), 1) << "softmax, kind " << kind;
    EXPECT_LE(log_p.value(), 1) << "log_softmax, kind " << kind;
    EXPECT_LE(lse.value(), 1) << "logsumexp, kind " << kind;
    const std::string name = "kind_" + std::to_string(kind);
    testing::Test::RecordProperty(name + "_softmax", std::to_string(p.value()));
    testing::Test::RecordProperty(name + "_log_softmax", std::to_string(log_p.value()));
    testing::Test::RecordProperty(name + "_logsumexp", std::to_string(lse.value()));
  }
}

std::vector<index> short_lengths(index step = 1) {
  std::vector<index> lengths;
  for (index n = 1; n <= 300; n += step) lengths.push_back(n);
  return lengths;
}
const std::vector<index> edges = {1023, 4095, 4096, 4097, 8193, 40'000, 65'535, 65'536, 65'537, 69'633, 100'000};

}  // namespace

TEST(softmax_bounds, every_short_length_float) { within_bounds<float>(short_lengths()); }
TEST(softmax_bounds, every_short_length_double) { within_bounds<double>(short_lengths()); }
TEST(softmax_bounds, edges_float) { within_bounds<float>(edges); }
TEST(softmax_bounds, edges_double) { within_bounds<double>(edges); }
TEST(softmax_bounds, float16) { within_bounds<regroup::float16>(short_lengths(7)); }
TEST(softmax_bounds, bfloat16) { within_bounds<regroup::bfloat16>(short_lengths(7)); }
TEST(softmax_bounds, float16_into_float) { within_bounds<regroup::float16, float>(short_lengths(7)); }
TEST(softmax_bounds, float_into_double) { within_bounds<float, double>(short_lengths(7)); }
TEST(softmax_bounds, long_float16) { within_bounds<regroup::float16>({4097, 65'537}); }
TEST(softmax_bounds, scaled_float) { within_bounds<float>(short_lengths(7), 0.17677669529663687); }
TEST(softmax_bounds, scaled_by_a_negative_double) { within_bounds<double>(short_lengths(7), -3); }
TEST(softmax_bounds, scaled_long) { within_bounds<float>({4097, 65'537}, 0.1); }

/// x + shift is exact for these, so the weights have the same bits; and then the sum has.
TEST(softmax_translation, by_a_constant_that_rounds_nothing) {
  for (const index n : {5, 130, 4100, 70'000}) {
    order::dice random(static_cast<std::uint64_t>(n));
    std::vector<float> x;
    for (index i = 0; i < n; ++i) x.push_back(static_cast<float>(random(-512, 512)) / 32);
    std::vector<float> shifted;
    for (const float e : x) shifted.push_back(e + 1000);
    std::vector<float> y(x.size());
    std::vector<float> z(x.size());
    regroup::softmax(regroup::seq, x, y);
    regroup::softmax(regroup::seq, shifted, z);
    EXPECT_EQ(bits_of(y), bits_of(z)) << n;
    regroup::log_softmax(regroup::seq, x, y);
    regroup::log_softmax(regroup::seq, shifted, z);
    EXPECT_EQ(bits_of(y), bits_of(z)) << n;
  }
}

TEST(softmax_bounds, probabilities_sum_to_one_within_their_own_bounds) {
  for (const index n : {1, 3, 300, 5000, 70'000}) {
    const auto x = as<float>(row_of_kind(0, n, 5));
    const softmax_reference<float> reference(x);
    std::vector<float> y(x.size());
    regroup::softmax(regroup::seq, x, y);
    long double total = 0;
    long double bound = 0;
    for (std::size_t j = 0; j < y.size(); ++j) {
      total += static_cast<long double>(y[j]);
      bound += reference.probability_bound<float>(j);
    }
    EXPECT_LE(std::fabs(total - 1), bound) << n;
  }
}

}  // namespace properties

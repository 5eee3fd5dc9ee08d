// SPDX-License-Identifier: Apache-2.0
// Sixteen rows of a trained transformer's logits (examples/data/logits) against their float64 references, within the
// bound computed for each row.
#include <gtest/gtest.h>

#include "npy.hpp"
#include "regroup/algorithms/cross_entropy.hpp"
#include "softmax_reference.hpp"

namespace properties {

TEST(real_logits, logsumexp_and_cross_entropy_meet_their_references) {
  const auto x = example_data<float>("logits/logits.npy");
  const auto targets = example_data<std::int64_t>("logits/targets.npy");
  const auto lse = example_data<double>("logits/log_sum_exp.npy");
  const auto losses = example_data<double>("logits/cross_entropy.npy");
  const auto rows = static_cast<index>(targets.size());
  const auto classes = static_cast<index>(x.size()) / rows;
  ASSERT_EQ(classes, 30522);
  const regroup::view<const float> logits(x.data(), {rows, classes});
  std::vector<float> our_lse(lse.size());
  std::vector<float> our_losses(lse.size());
  regroup::logsumexp(regroup::par, logits, our_lse);
  const float mean = regroup::cross_entropy(regroup::par, logits, targets, {.losses = our_losses});
  worst_ratio lse_worst;
  worst_ratio loss_worst;
  double sum = 0;
  for (index r = 0; r < rows; ++r) {
    const auto at = static_cast<std::size_t>(r);
    const softmax_reference<float> reference(
        std::vector<float>(x.begin() + r * classes, x.begin() + (r + 1) * classes));
    EXPECT_NEAR(static_cast<double>(reference.logsumexp()), lse[at], 1e-13);
    const auto target = static_cast<std::size_t>(targets[at]);
    lse_worst.see(our_lse[at], lse[at], reference.logsumexp_bound());
    loss_worst.see(our_losses[at], losses[at], reference.log_probability_bound<float>(target));
    sum += losses[at];
  }
  EXPECT_LE(lse_worst.value(), 1);
  EXPECT_LE(loss_worst.value(), 1);
  EXPECT_NEAR(mean, sum / static_cast<double>(rows), 1e-5);
  RecordProperty("logsumexp", std::to_string(lse_worst.value()));
  RecordProperty("cross_entropy", std::to_string(loss_worst.value()));
}

TEST(real_logits, probabilities) {
  const auto x = example_data<float>("logits/logits.npy");
  const index classes = 30522;
  const index rows = static_cast<index>(x.size()) / classes;
  std::vector<float> y(x.size());
  regroup::softmax(regroup::par, regroup::view<const float>(x.data(), {rows, classes}),
                   regroup::view<float>(y.data(), {rows, classes}));
  worst_ratio worst;
  for (index r = 0; r < rows; r += 5) {
    const softmax_reference<float> reference(
        std::vector<float>(x.begin() + r * classes, x.begin() + (r + 1) * classes));
    for (std::size_t j = 0; j < static_cast<std::size_t>(classes); ++j) {
      worst.see(y[static_cast<std::size_t>(r * classes) + j], reference.probability(j),
                reference.probability_bound<float>(j));
    }
  }
  EXPECT_LE(worst.value(), 1);
  RecordProperty("softmax", std::to_string(worst.value()));
}

}  // namespace properties

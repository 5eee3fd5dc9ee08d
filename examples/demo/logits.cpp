// SPDX-License-Identifier: Apache-2.0
// (d) logsumexp and cross-entropy of 16 rows of a transformer's logits beside references in float64. A bit of error is
// log2(1 + error in units in the last place): 0 where the float is the one nearest to the truth or its neighbour at most.
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "demo.hpp"
#include "logit_bounds.hpp"
#include "regroup/algorithms/cross_entropy.hpp"
#include "regroup/algorithms/softmax.hpp"
#include "regroup/host/par.hpp"

namespace demo {
namespace {

double bits_of_error(float computed, double wanted) {
  const float nearest = static_cast<float>(wanted);
  const double ulp = static_cast<double>(std::nextafter(nearest, std::numeric_limits<float>::infinity())) -
                     static_cast<double>(nearest);
  return std::log2(1 + std::fabs(static_cast<double>(computed) - wanted) / ulp);
}

}  // namespace

void section_logits() {
  heading("(d) Real logits against float64: 16 rows of 30522");
  const auto logits = data<float>("logits/logits.npy");
  const auto targets = data<std::int64_t>("logits/targets.npy");
  const auto lse_wanted = data<double>("logits/log_sum_exp.npy");
  const auto loss_wanted = data<double>("logits/cross_entropy.npy");
  const auto rows = static_cast<std::size_t>(logits.extents[0]);

  std::vector<float> lse(rows), loss(rows);
  regroup::logsumexp(regroup::par, logits.view(), lse);
  const float mean =
      regroup::cross_entropy(regroup::par, logits.view(), targets.view(), {.losses = regroup::view<float>(loss)});

  std::printf("  %3s  %11s %10s %9s    %13s %10s %9s\n", "row", "logsumexp", "bits of", "of its", "cross-entropy",
              "bits of", "of its");
  std::printf("  %3s  %11s %10s %9s    %13s %10s %9s\n", "", "", "error", "bound", "", "error", "bound");
  double worst_lse = 0, worst_loss = 0, mean_wanted = 0, mean_bound = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto one = logits.view()[static_cast<regroup::index>(row)];
    const row_bounds bounds(std::vector<float>(one.data(), one.data() + one.size()));
    const double loss_bound = bounds.cross_entropy_bound(static_cast<std::size_t>(targets.values[row]));
    const double lse_ratio =
        std::fabs(static_cast<double>(lse[row]) - lse_wanted.values[row]) / bounds.logsumexp_bound();
    const double loss_ratio = std::fabs(static_cast<double>(loss[row]) - loss_wanted.values[row]) / loss_bound;
    std::printf("  %3zu  %11.6f %10.2f %9.3f    %13.6f %10.2f %9.3f\n", row, static_cast<double>(lse[row]),
                bits_of_error(lse[row], lse_wanted.values[row]), lse_ratio, static_cast<double>(loss[row]),
                bits_of_error(loss[row], loss_wanted.values[row]), loss_ratio);
    worst_lse = worse(worst_lse, lse_ratio);
    worst_loss = worse(worst_loss, loss_ratio);
    mean_wanted += loss_wanted.values[row] / static_cast<double>(rows);
    mean_bound += loss_bound / static_cast<double>(rows);
  }
  mean_bound += unit * mean_wanted;
  std::printf("  the mean loss is %.7f, in float64 %.7f\n", static_cast<double>(mean), mean_wanted);
  claim(worst_lse <= 1, "every logsumexp is within its bound");
  claim(worst_loss <= 1, "every cross-entropy is within its bound");
  claim(std::fabs(static_cast<double>(mean) - mean_wanted) <= mean_bound, "so is the mean of the losses");

  std::vector<float> alone(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    regroup::logsumexp(regroup::seq, logits.view()[static_cast<regroup::index>(row)],
                       [&](regroup::index, float y) { alone[row] = y; });
  }
  claim(alone == lse, "a row alone on one thread has the bits it has in the batch on all of them");
}

}  // namespace demo

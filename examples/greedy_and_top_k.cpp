// SPDX-License-Identifier: Apache-2.0
// The next token of three requests, two ways: the likeliest, and five to draw from with their probabilities. Positions are
// those in a row; ties go to the lowest, so that no batch, thread count or layout has a say.
#include <array>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  constexpr int requests = 3, vocabulary = 128'256;
  std::vector<float> memory(requests * vocabulary);
  std::mt19937 bits(1);
  std::normal_distribution<float> normal(0, 3);
  for (float& logit : memory) logit = normal(bits);
  const regroup::view<const float> logits(memory.data(), {requests, vocabulary});

  std::vector<regroup::indexed<float>> likeliest(requests);
  regroup::reduce_rows(regroup::par, logits, likeliest, regroup::argmax<float>{}, regroup::with_position{});

  std::vector<std::array<regroup::indexed<float>, 5>> five(requests);
  regroup::reduce_rows(regroup::par, logits, five, regroup::top_k<float, 5>{}, regroup::with_position{});

  std::vector<float> lse(requests);
  regroup::logsumexp(regroup::par, logits, lse);

  bool agree = true;
  for (std::size_t r = 0; r < requests; ++r) {
    std::printf("request %zu: token %lld, or one of", r, static_cast<long long>(likeliest[r].position));
    for (const auto& [logit, token] : five[r]) {
      std::printf(" %lld (%.3f)", static_cast<long long>(token), std::exp(logit - lse[r]));
    }
    std::printf("\n");
    agree &= five[r][0].position == likeliest[r].position;
  }
  return agree ? 0 : 1;
}

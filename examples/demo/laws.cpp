// SPDX-License-Identifier: Apache-2.0
// (e) What state do I need, how do two states combine, and is that associative? The average has such a state, (sum, count).
// The median has none. And a first attempt at (max, sum) looks right and is not: its identity combined with itself is NaN.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <limits>

#include "demo.hpp"
#include "regroup/check_laws.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/mean.hpp"

namespace demo {
namespace {

/// The median of the whole taken as the middle of the medians of two pieces.
struct median_of_medians {
  struct state {
    float middle;
    bool is_empty;
  };
  constexpr state identity() const { return {0, true}; }
  constexpr state lift(float x) const { return {x, false}; }
  constexpr state operator()(state a, state b) const {
    if (a.is_empty || b.is_empty) return a.is_empty ? b : a;
    return {(a.middle + b.middle) / 2, false};
  }
  constexpr float lower(state s) const { return s.middle; }
};

/// The softmax state as most people write it first: the largest x, and the sum of exp(x - max).
struct max_and_sum {
  struct state {
    float m;
    float s;
  };
  state identity() const { return {-std::numeric_limits<float>::infinity(), 0}; }
  state lift(float x) const { return {x, 1}; }
  state operator()(state a, state b) const {
    const float m = std::max(a.m, b.m);
    return {m, a.s * std::exp(a.m - m) + b.s * std::exp(b.m - m)};
  }
};

/// The first laws that fell, each with its smallest counterexample.
void print_fallen(const regroup::laws::report& report, int at_most) {
  int more = 0;
  for (const auto& finding : report.findings) {
    if (finding.result != regroup::laws::finding::outcome::falls) continue;
    if (at_most-- > 0)
      std::cout << finding;
    else
      ++more;
  }
  if (more > 0) std::cout << "         and " << more << " more\n";
  std::cout.flush();
}

}  // namespace

void section_laws() {
  heading("(e) The average, yes; the median, no; a beginner's operator, caught");
  const regroup::mean<double> average;
  const auto whole = average({1'234'567, 500'000'000}, {2'345'678, 500'000'000});
  std::printf("  two chunks of 500,000,000 with sums 1,234,567 and 2,345,678: %.0f over %lld, average %.9f\n",
              whole.sum, static_cast<long long>(whole.count), average.lower(whole));
  claim(whole.sum == 3'580'245 && whole.count == 1'000'000'000,
        "the average of chunks combines to 3,580,245 over 1,000,000,000");
  claim(regroup::check_laws<double>(average).passed(), "check_laws finds every law of the average to hold");

  std::printf(
      "\n  The medians of 1 2 3 and of 4 5 6, 2 and 5, have the right middle, 3.5. By luck, says check_laws:\n");
  const auto median = regroup::check_laws<float>(median_of_medians{});
  print_fallen(median, 1);
  claim(!median.passed(), "the median of medians is rejected");

  std::printf("\n  A beginner's (max, sum), with s = a.s exp(a.m - m) + b.s exp(b.m - m):\n");
  const auto beginner = regroup::check_laws<float>(max_and_sum{});
  print_fallen(beginner, 3);
  const auto* twice = beginner.find("identity + identity");
  claim(twice != nullptr && twice->result == regroup::laws::finding::outcome::falls,
        "check_laws catches identity + identity = NaN: exp(-inf - -inf)");
  const auto lawful = regroup::check_laws<float>(regroup::log_sum_exp<float>{});
  claim(lawful.passed(), "regroup's log_sum_exp, whose factor is 1 where the two maxima are equal, holds every law");
}

}  // namespace demo

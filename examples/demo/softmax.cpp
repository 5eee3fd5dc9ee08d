// SPDX-License-Identifier: Apache-2.0
// (c) One row of real logits, scaled up, through three ways to softmax in fp16 and fp32. The naive way overflows in exp or
// in its sum; the shifted ways cannot, since every exponent is <= 0. A sum kept in fp16 stalls all the same (2048 + 1 is
// 2048 there), so regroup widens 16-bit inputs and accumulates in fp32.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "demo.hpp"
#include "logit_bounds.hpp"
#include "regroup/algorithms/softmax.hpp"
#include "regroup/algorithms/softmax_baselines.hpp"
#include "regroup/host/par.hpp"

namespace demo {
namespace {

/// The sum of all probabilities, and the worst error of one in parts of its bound.
struct outcome {
  double total = 0;
  double ratio = 0;
  [[nodiscard]] bool is_finite() const { return std::isfinite(total); }
};

template <class Number>
outcome judge(const std::vector<Number>& x, const std::vector<Number>& p) {
  const row_bounds exact(x);
  outcome o;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double computed = regroup::widen(p[i]);
    const double wanted = exact.probability(i);
    const double stored = sizeof(Number) == 2 ? wanted * 0x1p-11 + 0x1p-25 : 0;  // rounded to fp16 when written
    o.total += computed;
    o.ratio = worse(o.ratio, std::fabs(computed - wanted) / (exact.probability_bound(i) + stored));
  }
  return o;
}

template <class Number>
std::vector<Number> scaled(const std::vector<float>& logits, float scale) {
  std::vector<Number> x;
  for (const float logit : logits) x.push_back(static_cast<Number>(logit * scale));
  return x;
}

/// One way to softmax, in both precisions.
struct way {
  outcome half, single;
};

template <class Softmax>
way run(const std::string& name, const std::vector<regroup::float16>& half, const std::vector<float>& single,
        const Softmax& softmax) {
  std::vector<regroup::float16> p16(half.size());
  std::vector<float> p32(single.size());
  softmax(half, p16);
  softmax(single, p32);
  const way w{judge(half, p16), judge(single, p32)};
  const auto total = [](const outcome& o) { return o.is_finite() ? text_of("%.6f", o.total) : std::string("NaN"); };
  std::printf("         %-32s %14s %14s\n", name.c_str(), total(w.half).c_str(), total(w.single).c_str());
  return w;
}

}  // namespace

void section_softmax() {
  heading("(c) Softmax of 30522 real logits, scaled up: where the naive way breaks");
  const auto all = data<float>("logits/logits.npy");
  const auto classes = all.extents[1];
  const auto highest = std::max_element(all.values.begin(), all.values.end());
  const auto first = all.values.begin() + (highest - all.values.begin()) / classes * classes;
  const std::vector<float> logits(first, first + classes);

  bool naive_as_foretold = true, safe_is_finite = true;
  double ratio16 = 0, ratio32 = 0;
  std::printf("  largest %-31s %14s %14s\n", "total probability", "in fp16", "in fp32");
  for (const float scale : {1.0f, 4.0f, 16.0f, 64.0f}) {
    const auto half = scaled<regroup::float16>(logits, scale);
    const auto single = scaled<float>(logits, scale);
    std::printf("  %6.2f (x %.0f)\n", static_cast<double>(*highest * scale), static_cast<double>(scale));
    const way naive = run("naive: exp(x) / sum exp(x)", half, single,
                          []<class X>(const X& x, X& p) { regroup::naive_softmax<typename X::value_type>(x, p); });
    const way three = run("three passes: max, sum, divide", half, single,
                          []<class X>(const X& x, X& p) { regroup::three_pass_softmax<typename X::value_type>(x, p); });
    const way online = run("online: max and sum together", half, single,
                           []<class X>(const X& x, X& p) { regroup::online_softmax<typename X::value_type>(x, p); });
    const way ours = run("regroup: online, sums in fp32", half, single,
                         [](const auto& x, auto& p) { regroup::softmax(regroup::par, x, p); });

    naive_as_foretold = naive_as_foretold && naive.half.is_finite() == (*highest * scale < 11.09f) &&
                        naive.single.is_finite() == (*highest * scale < 88.72f);
    for (const way& w : {three, online, ours}) {
      safe_is_finite = safe_is_finite && w.half.is_finite() && w.single.is_finite();
    }
    ratio16 = worse(ratio16, ours.half.ratio);
    ratio32 = worse(ratio32, ours.single.ratio);
  }
  std::printf("  (Sums kept in fp16 stall, whoever keeps them: there 2048 + 1 is 2048.)\n");
  claim(naive_as_foretold, "the naive way gives NaN just where exp overflows: above 11.09 in fp16, 88.72 in fp32");
  claim(safe_is_finite, "every way that subtracts the maximum stays finite");
  claim(ratio32 <= 1, "all probabilities of regroup's are within their bounds in fp32, at worst " +
                          text_of("%.3f", ratio32) + " of it");
  claim(ratio16 <= 1,
        "and in fp16, where rounding each to 11 bits is most of it, at worst " + text_of("%.3f", ratio16));
}

}  // namespace demo

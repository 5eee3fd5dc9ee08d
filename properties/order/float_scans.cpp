// SPDX-License-Identifier: Apache-2.0
// Scans of floating-point monoids have the bits of the naive transcription, and exact monoids' last result is reduce's.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cases.hpp"
#include "digest.hpp"
#include "reference.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

namespace {

using order::digest_of;
using order::kind;

template <class M, class X>
void same_bits(const M& m, const std::vector<X>& xs) {
  reference::operands<regroup::state_of<M>> states;
  for (const X& x : xs) states.emplace_back(regroup::lift(m, x));
  std::vector<regroup::answer_of<M>> inclusive;
  std::vector<regroup::answer_of<M>> exclusive;
  for (const auto& y : reference::inclusive_scan(m, states))
    inclusive.push_back(regroup::lower(m, y.value_or(m.identity())));
  for (const auto& y : reference::exclusive_scan(m, states))
    exclusive.push_back(regroup::lower(m, y.value_or(m.identity())));
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    std::vector<regroup::answer_of<M>> ys(xs.size());
    regroup::inclusive_scan(ex, xs, ys, m);
    EXPECT_EQ(digest_of(ys), digest_of(inclusive)) << name << ", n = " << xs.size();
    regroup::exclusive_scan(ex, xs, ys, m);
    EXPECT_EQ(digest_of(ys), digest_of(exclusive)) << name << ", exclusive, n = " << xs.size();
  });
}

template <class M, class Map>
void every_kind(const M& m, const Map& map) {
  for (const kind k : {kind::plain, kind::wide, kind::special}) {
    for (const std::int64_t n : {0, 1, 2, 31, 33, 129, 300, 4095, 4097, 30'000}) {
      const auto numbers = order::numbers<float>(k, n, static_cast<std::uint64_t>(n) + 2);
      std::vector<decltype(map(0.0f))> xs;
      for (const float x : numbers) xs.push_back(map(x));
      same_bits(m, xs);
    }
  }
}

}  // namespace

TEST(float_scans, plus) {
  every_kind(regroup::plus<float>{}, [](float x) { return x; });
}
TEST(float_scans, log_sum_exp) {
  every_kind(regroup::log_sum_exp<float>{}, [](float x) { return x; });
}
TEST(float_scans, affine) {
  every_kind(regroup::affine<float>{}, [](float x) { return regroup::affine_map<float>{x * 0.125f, 1 - x}; });
}

TEST(float_scans, the_last_of_an_exact_monoid_is_its_reduction) {
  for (const std::int64_t n : {1, 37, 4096, 4097, 50'000}) {
    const auto xs = order::numbers<float>(kind::wide, n, 5);
    std::vector<float> ys(xs.size());
    regroup::inclusive_scan(regroup::par, xs, ys, regroup::maximum<float>{});
    EXPECT_EQ(digest_of(ys.back()), digest_of(regroup::reduce(regroup::par, xs, regroup::maximum<float>{})));
    EXPECT_EQ(ys.back(), *std::max_element(xs.begin(), xs.end()));
  }
}

// SPDX-License-Identifier: Apache-2.0
// The same monoid objects in oneTBB's ordered algorithms, which suit non-commutative monoids too.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_reduce.h>
#include <oneapi/tbb/parallel_scan.h>

#include "../../examples/operators.hpp"
#include "regroup/regroup.hpp"

namespace interop {
namespace {

using range = tbb::blocked_range<std::size_t>;

template <class M, class X>
auto reduced(const M& m, const std::vector<X>& x) {
  const auto body = [&](const range& r, regroup::state_of<M> s) {
    for (std::size_t i = r.begin(); i != r.end(); ++i) s = m(std::move(s), regroup::lift(m, x[i]));
    return s;
  };
  return regroup::lower(m, tbb::parallel_reduce(range(0, x.size()), m.identity(), body, m));
}

template <class M, class X>
auto scanned(const M& m, const std::vector<X>& x) {
  std::vector<regroup::answer_of<M>> y(x.size());
  const auto body = [&](const range& r, regroup::state_of<M> s, bool is_final) {
    for (std::size_t i = r.begin(); i != r.end(); ++i) {
      s = m(std::move(s), regroup::lift(m, x[i]));
      if (is_final) y[i] = regroup::lower(m, s);
    }
    return s;
  };
  tbb::parallel_scan(range(0, x.size()), m.identity(), body, m);
  return y;
}

}  // namespace

TEST(tbb, reduce_and_scan_of_exact_monoids_are_ours) {
  std::vector<std::int64_t> x;
  for (std::int64_t i = 0; i < 100'000; ++i) x.push_back(i * 7919 % 2003 - 1001);
  const auto equal = [&](const auto& m) {
    EXPECT_EQ(reduced(m, x), regroup::reduce(regroup::par, x, m));
    std::vector<regroup::answer_of<std::remove_cvref_t<decltype(m)>>> y(x.size());
    regroup::inclusive_scan(regroup::par, x, y, m);
    EXPECT_EQ(scanned(m, x), y);
  };
  equal(regroup::plus<std::int64_t>{});
  equal(regroup::maximum<std::int64_t>{});
  equal(regroup::count{});
}

TEST(tbb, keeps_the_order_of_a_monoid_that_does_not_commute) {
  std::vector<int> x;
  for (int i = 0; i < 5000; ++i) x.push_back(i);
  EXPECT_EQ(reduced(examples::free_monoid<int>{}, x), x);
  std::vector<char> bits;
  for (int i = 0; i < 50'000; ++i) bits.push_back(i % 1000 != 7);
  EXPECT_EQ(reduced(examples::longest_run{}, bits), regroup::reduce(regroup::par, bits, examples::longest_run{}));
}

TEST(tbb, log_sum_exp) {
  std::vector<float> x;
  for (int i = 0; i < 100'000; ++i) x.push_back(static_cast<float>(i * 7919 % 2003) / 100);
  const regroup::log_sum_exp<float> m;
  const float bound = 1e5f * (1 + regroup::math::exp_error<float>)*0x1p-24f;
  EXPECT_NEAR(reduced(m, x), regroup::reduce(regroup::seq, x, m), bound);
  EXPECT_NEAR(scanned(m, x).back(), regroup::reduce(regroup::seq, x, m), bound);
}

}  // namespace interop

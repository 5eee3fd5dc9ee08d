// SPDX-License-Identifier: Apache-2.0
// Whatever threads compute, they round and flush as the one that asked for it, and afterwards as they did before.
#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>
#include <vector>

#include "regroup/regroup.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace regroup {
namespace {

/// Threads that round towards zero, as far as anybody can tell: the calling one does meanwhile.
struct towards_zero : host::threads<towards_zero> {
  static int concurrency() { return 3; }
  static void bulk(index n, const auto& f) {
    const int callers = std::fegetround();
    std::fesetround(FE_TOWARDZERO);
    for (index i = 0; i < n; ++i) f(i);
    EXPECT_EQ(std::fegetround(), FE_TOWARDZERO);
    std::fesetround(callers);
  }
};

/// Sums, prefixes and softmax of small numbers, whose sums are rounded and some of whose weights are denormal.
template <class Executor>
std::vector<float> results(const Executor& ex, float unit) {
  const index n = 40 * tile_elements;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (index i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = unit * static_cast<float>(1 + i * 7919 % 1000);
  std::vector<float> all{reduce(ex, x, plus<float>{}), reduce(ex, x, log_sum_exp<float>{})};
  std::vector<float> y(x.size());
  inclusive_scan(ex, x, y, plus<float>{});
  all.insert(all.end(), y.begin(), y.end());
  softmax(ex, view(std::as_const(x).data(), {40, tile_elements}), view(y.data(), {40, tile_elements}));
  all.insert(all.end(), y.begin(), y.end());
  return all;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// set() changes how this thread computes, and results; whatever threads there are, the same results.
template <class Set>
void expect_callers(const Set& set, float unit) {
  const parallel three = par.with_threads(3);
  const auto before = results(par, unit);
  EXPECT_TRUE(same(results(three, unit), before));
  std::fenv_t mine;
  std::fegetenv(&mine);
  set();
  const auto alone = results(seq, unit);
  const auto by_all = results(par, unit), by_three = results(three, unit), by_others = results(towards_zero{}, unit);
  std::fesetenv(&mine);
  EXPECT_FALSE(same(alone, before));
  EXPECT_TRUE(same(by_all, alone));
  EXPECT_TRUE(same(by_three, alone));
  EXPECT_TRUE(same(by_others, alone));
  EXPECT_TRUE(same(results(par, unit), before));
}

}  // namespace

TEST(environment, rounding) {
  expect_callers([] { std::fesetround(FE_UPWARD); }, 0.1f);
  expect_callers([] { std::fesetround(FE_TOWARDZERO); }, 0.1f);
}

#if defined(__x86_64__)
TEST(environment, denormals_flushed) {
  expect_callers([] { _mm_setcsr(_mm_getcsr() | 0x8040); }, 1e-42f);
}
#endif

}  // namespace regroup

// SPDX-License-Identifier: Apache-2.0
// Threads round and flush denormals as their caller does while they compute for it, and afterwards as they did before.
#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>
#include <span>
#include <utility>
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

/// Numbers whose sums are rounded.
std::vector<float> numbers(float unit, index n = 40 * tile_elements) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (index i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = unit * static_cast<float>(1 + i * 7919 % 1000);
  return x;
}
void append(std::vector<float>& all, const std::vector<float>& y) { all.insert(all.end(), y.begin(), y.end()); }

/// Sums and prefixes.
struct sums {
  template <class Executor>
  std::vector<float> operator()(const Executor& ex, float unit) const {
    const auto x = numbers(unit);
    std::vector<float> all{reduce(ex, x, plus<float>{}), reduce(ex, x, log_sum_exp<float>{})}, y(x.size());
    inclusive_scan(ex, x, y, plus<float>{});
    append(all, y);
    return all;
  }
};
/// A stream's sum, in two chunks.
struct streamed {
  template <class Executor>
  std::vector<float> operator()(const Executor& ex, float unit) const {
    const auto x = numbers(unit);
    accumulator sum{plus<float>{}};
    for (const auto chunk : {std::span(x).first(70'001), std::span(x).subspan(70'001)}) sum.push(ex, chunk);
    return {sum.value()};
  }
};
/// Softmax of rows.
struct probabilities {
  template <class Executor>
  std::vector<float> operator()(const Executor& ex, float unit) const {
    const auto x = numbers(unit);
    std::vector<float> y(x.size());
    softmax(ex, view(x.data(), {40, tile_elements}), view(y.data(), {40, tile_elements}));
    return y;
  }
};
/// The losses of rows, their mean and its gradient.
struct losses {
  template <class Executor>
  std::vector<float> operator()(const Executor& ex, float unit) const {
    const auto x = numbers(unit);
    std::vector<float> all(40), gradient(x.size());
    const view<float> to(gradient.data(), {40, tile_elements});
    all.push_back(cross_entropy(ex, view(x.data(), to.extents()), std::vector<int>(40, 7),
                                {.gradient = to, .losses = view<float>(all.data(), {40})}));
    append(all, gradient);
    return all;
  }
};
/// Attention of one query a head over many keys, which threads share, and of many queries.
struct attended {
  template <class Executor>
  std::vector<float> operator()(const Executor& ex, float unit) const {
    std::vector<float> all;
    for (const auto& [queries, keys] : {std::pair<index, index>{1, 3000}, {200, 70}}) {
      const shape e{2, queries, 16};
      const auto q = numbers(0.001f, 32 * queries), k = numbers(unit, 32 * keys);
      const view heads(k.data(), {2, keys, 16});
      std::vector<float> out(q.size());
      attention(ex, view(q.data(), e), dense(heads, heads), view(out.data(), e));
      append(all, out);
    }
    return all;
  }
};

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// set() changes how this thread computes, and what `work` gives; whatever threads there are, the same results.
template <class Set, class Work>
void expect_callers(const Set& set, const Work& work, float unit) {
  const parallel three = par.with_threads(3);
  const auto before = work(par, unit);
  EXPECT_TRUE(same(work(three, unit), before));
  std::fenv_t mine;
  std::fegetenv(&mine);
  set();
  const auto alone = work(seq, unit);
  const auto by_all = work(par, unit), by_three = work(three, unit), by_others = work(towards_zero{}, unit);
  std::fesetenv(&mine);
  EXPECT_FALSE(same(alone, before));
  EXPECT_TRUE(same(by_all, alone));
  EXPECT_TRUE(same(by_three, alone));
  EXPECT_TRUE(same(by_others, alone));
  EXPECT_TRUE(same(work(par, unit), before));
}
template <class Work>
void expect_callers_rounding(const Work& work) {
  expect_callers([] { std::fesetround(FE_UPWARD); }, work, 0.1f);
  expect_callers([] { std::fesetround(FE_TOWARDZERO); }, work, 0.1f);
}

}  // namespace

TEST(environment, rounding) { expect_callers_rounding(sums{}); }
TEST(environment, rounding_of_streams) { expect_callers_rounding(streamed{}); }
TEST(environment, rounding_of_softmax) { expect_callers_rounding(probabilities{}); }
TEST(environment, rounding_of_cross_entropy) { expect_callers_rounding(losses{}); }
TEST(environment, rounding_of_attention) { expect_callers_rounding(attended{}); }

#if defined(__x86_64__)
TEST(environment, denormals_flushed) {
  const auto flush = [] { _mm_setcsr(_mm_getcsr() | 0x8040); };
  expect_callers(flush, sums{}, 1e-42f);
  expect_callers(flush, streamed{}, 1e-42f);
  expect_callers(flush, probabilities{}, 0.1f);  // the weights of some
  expect_callers(flush, losses{}, 0.1f);
  expect_callers(flush, attended{}, 1e-42f);
}
#endif

}  // namespace regroup

// SPDX-License-Identifier: Apache-2.0
// An exception of a user's operator reaches the caller, from any verb and thread; every state is destroyed, and the executor
// can still be used.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operators.hpp"
#include "regroup/error.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "regroup/stream.hpp"

namespace {

using verbs::where;

template <class F>
void with_executors(const F& f) {
  f(regroup::seq);
  f(regroup::par);
  f(regroup::par.with_threads(7));
}

std::vector<int> with_a_bad_one(std::size_t n, std::size_t bad) {
  std::vector<int> xs(n, 1);
  xs[bad] = -1;
  return xs;
}

/// Calls all verbs that fold, with n elements of which one is bad; each must throw and leave nothing alive.
template <class M>
void every_verb(const M& m, const std::vector<int>& xs) {
  const auto n = static_cast<std::int64_t>(xs.size());
  const regroup::view<const int> rows(xs.data(), {n / 10, 10});
  const regroup::view<const int> long_rows(xs.data(), {2, n / 2});
  const std::vector<std::int64_t> offsets = {0, 3, n / 3, n / 3, n};
  const auto refuse = [&](const std::string& verb, const auto& call) {
    const auto before = verbs::alive.load();
    EXPECT_THROW(call(), verbs::refused) << verb;
    EXPECT_EQ(verbs::alive, before) << verb;
  };
  with_executors([&](const auto& ex) {
    std::vector<std::int64_t> out(xs.size());
    refuse("reduce", [&] { (void)regroup::reduce(ex, xs, m); });
    refuse("rows", [&] { regroup::reduce_rows(ex, rows, std::span(out).first(xs.size() / 10), m); });
    refuse("long rows", [&] { regroup::reduce_rows(ex, long_rows, std::span(out).first(2), m); });
    refuse("axes", [&] { regroup::reduce_axes(ex, rows, {0}, std::span(out).first(10), m); });
    refuse("segments", [&] { regroup::reduce_segments(ex, xs, offsets, std::span(out).first(4), m); });
    refuse("inclusive scan", [&] { regroup::inclusive_scan(ex, xs, out, m); });
    refuse("exclusive scan", [&] { regroup::exclusive_scan(ex, xs, out, m); });
    refuse("scan of segments", [&] { regroup::inclusive_scan_segments(ex, xs, offsets, out, m); });
    refuse("scan of rows", [&] {
      regroup::inclusive_scan_rows(ex, rows, regroup::view<std::int64_t>(out.data(), {n / 10, 10}), m);
    });
    refuse("accumulator", [&] {
      regroup::accumulator acc{m};
      acc.push(ex, xs);
      (void)acc.value();
    });
  });
}

}  // namespace

TEST(exceptions, from_lift) {
  for (const std::size_t bad : {0u, 137u, 29'999u}) {
    every_verb(verbs::fragile<false>{where::lift}, with_a_bad_one(30'000, bad));
    every_verb(verbs::fragile<true>{where::lift}, with_a_bad_one(30'000, bad));
  }
}

TEST(exceptions, from_combine) {
  for (const std::size_t bad : {0u, 137u, 29'990u}) {
    every_verb(verbs::fragile<false>{where::combine}, with_a_bad_one(30'000, bad));
    every_verb(verbs::fragile<true>{where::combine}, with_a_bad_one(30'000, bad));
  }
}

TEST(exceptions, from_lower) { every_verb(verbs::fragile<true>{where::lower}, std::vector<int>(30'000, 1)); }

TEST(exceptions, from_a_tile_lift) {
  const verbs::fragile_tile m{{where::tile}};
  const auto xs = with_a_bad_one(100'000, 70'001);
  with_executors([&](const auto& ex) {
    const auto before = verbs::alive.load();
    EXPECT_THROW((void)regroup::reduce(ex, xs, m), verbs::refused);
    EXPECT_EQ(verbs::alive, before);
    EXPECT_EQ(regroup::reduce(ex, xs, verbs::fragile_tile{}), 99'998);
    EXPECT_EQ(verbs::alive, before);
  });
}

TEST(exceptions, from_elements_projections_and_results) {
  const std::vector<int> xs(50'000, 1);
  const auto throwing = [](regroup::index i) {
    if (i == 31'234) throw verbs::refused();
    return 1;
  };
  with_executors([&](const auto& ex) {
    const auto before = verbs::alive.load();
    const verbs::fragile<true> m;
    EXPECT_THROW((void)regroup::reduce(ex, regroup::generate(50'000, throwing), m), verbs::refused);
    EXPECT_THROW((void)regroup::reduce(ex, xs, m, [](int) -> int { throw verbs::refused(); }), verbs::refused);
    EXPECT_THROW(regroup::reduce_rows(
                     ex, regroup::view<const int>(xs.data(), {500, 100}),
                     [&](regroup::index row, std::int64_t) { throwing(row == 499 ? 31'234 : 0); }, m),
                 verbs::refused);
    EXPECT_EQ(verbs::alive, before);
  });
}

TEST(exceptions, the_executor_works_on) {
  const auto xs = with_a_bad_one(200'000, 100'000);
  for (int repeat = 0; repeat < 20; ++repeat) {
    EXPECT_THROW((void)regroup::reduce(regroup::par, xs, verbs::fragile<true>{where::lift}), verbs::refused);
    EXPECT_EQ(regroup::reduce(regroup::par, xs, verbs::fragile<true>{}), 199'998);
  }
}

TEST(exceptions, inside_a_nested_call) {
  const auto xs = with_a_bad_one(20'000, 7);
  const auto element = [&](regroup::index) {
    return static_cast<int>(regroup::reduce(regroup::par, xs, verbs::fragile<true>{where::lift}));
  };
  EXPECT_THROW((void)regroup::reduce(regroup::par, regroup::generate(200, element), verbs::fragile<true>{}),
               verbs::refused);
}

TEST(exceptions, an_accumulator_whose_whole_tiles_throw_is_as_before_them) {
  for (const std::size_t bad : {0u, 4999u, 9000u}) {
    with_executors([&](const auto& ex) {
      regroup::accumulator acc{verbs::fragile<false>{where::lift}};
      acc.push(std::vector<int>(4096, 1));
      EXPECT_THROW(acc.push(ex, with_a_bad_one(3 * 4096, bad)), verbs::refused);
      EXPECT_EQ(acc.size(), 4096) << bad;
      EXPECT_EQ(acc.value(), 4096) << bad;
      acc.push(std::vector<int>(5000, 1));
      EXPECT_EQ(acc.value(), 9096) << bad;
    });
  }
}

/// Wherever a tile ends and whatever throws, what was pushed up to `next_position()` is there, and the rest can follow.
TEST(exceptions, an_accumulator_whose_push_throws_holds_a_prefix_and_goes_on) {
  constexpr regroup::index n = 5 * 4096;
  for (const regroup::index first : {0, 100}) {
    for (const regroup::index begun : {0, 100, 4096, 3 * 4096 - 1}) {
      for (const regroup::index bad : {0, 3995, 3996, 4095, 4096, 9000, 20479}) {
        for (const auto at : {where::lift, where::combine}) {
          with_executors([&](const auto& ex) {
            regroup::accumulator acc{verbs::fragile<false>{at}, first};
            acc.push(std::vector<int>(static_cast<std::size_t>(begun), 1));
            const auto xs = with_a_bad_one(n, static_cast<std::size_t>(bad));
            bool has_thrown = false;
            try {
              acc.push(ex, xs);
              (void)acc.value();
            } catch (const verbs::refused&) {
              has_thrown = true;
            }
            EXPECT_TRUE(has_thrown);
            ASSERT_GE(acc.size(), begun);
            if (acc.size() > begun + bad) return;  // the bad one waits in a tile that is not whole yet
            EXPECT_EQ(acc.value(), acc.size()) << first << " " << begun << " " << bad;
            EXPECT_EQ(acc.next_position(), first + acc.size());
            acc.push(ex, std::vector<int>(static_cast<std::size_t>(n), 1));
            EXPECT_EQ(acc.value(), acc.size());
          });
        }
      }
    }
  }
}

/// The same where whole tiles meet the nodes before them, by a combine that takes its operands by value.
TEST(exceptions, a_combine_that_throws_leaves_what_was_pushed_before) {
  struct joins {
    bool* fails;
    std::string identity() const { return ""; }
    std::string operator()(std::string a, const std::string& b) const {
      if (*fails && a.size() >= 4096) throw verbs::refused();
      return a += b;
    }
    std::string lift(char c) const { return std::string(1, c); }
  };
  bool fails = false;
  regroup::accumulator acc{joins{&fails}};
  const std::string tile(4096, 'a');
  acc.push(tile + tile + tile);
  fails = true;
  EXPECT_THROW(acc.push(tile), verbs::refused);
  fails = false;
  EXPECT_EQ(acc.size(), 3 * 4096);
  EXPECT_EQ(acc.value(), tile + tile + tile);
  acc.push(std::string("b") + tile);
  EXPECT_EQ(acc.value(), tile + tile + tile + "b" + tile);
}

/// Whichever combine of a merge throws, both accumulators are as they were, and merge to the same once none does.
TEST(exceptions, a_merge_that_throws_changes_nothing) {
  struct joins {
    int* left;  // combines before one throws
    std::string identity() const { return ""; }
    std::string operator()(const std::string& a, const std::string& b) const {
      if ((*left)-- == 0) throw verbs::refused();
      return a + b;
    }
    std::string lift(char c) const { return std::string(1, c); }
  };
  const std::string all(10 * 4096, 'a');
  for (const std::size_t cut : {std::size_t{4096}, std::size_t{5000}, std::size_t{3 * 4096}, all.size() - 107}) {
    for (const regroup::index first : {0, 100}) {
      int left = -1;
      regroup::accumulator a{joins{&left}, first}, b{joins{&left}, first + static_cast<regroup::index>(cut)};
      regroup::accumulator elsewhere{joins{&left}, 7};
      a.push(all.substr(0, cut));
      b.push(all.substr(cut));
      elsewhere.push(all.substr(cut));
      int throws = 0;
      for (int before = 0;; before = before * 2 + 1) {
        auto sum = a;
        left = before;
        try {
          sum.merge(b);
          break;
        } catch (const verbs::refused&) {
          ++throws;
        }
        left = -1;
        EXPECT_EQ(sum.size(), static_cast<regroup::index>(cut));
        EXPECT_EQ(sum.value(), all.substr(0, cut));
        sum.merge(b);
        EXPECT_EQ(sum.value(), all);
      }
      EXPECT_GT(throws, 0) << cut << " " << first;
      left = 0;
      EXPECT_THROW(a.merge(elsewhere), verbs::refused);
      left = -1;
      EXPECT_EQ(a.value(), all.substr(0, cut));
    }
  }
}

TEST(exceptions, nothing_leaks_when_nothing_is_thrown) {
  const std::vector<int> xs(30'000, 1);
  const auto before = verbs::alive.load();
  with_executors([&](const auto& ex) {
    std::vector<std::int64_t> out(xs.size());
    EXPECT_EQ(regroup::reduce(ex, xs, verbs::fragile<false>{}), 30'000);
    regroup::inclusive_scan(ex, xs, out, verbs::fragile<true>{});
    EXPECT_EQ(out.back(), 30'000);
    regroup::accumulator acc{verbs::fragile<true>{}, 17};
    for (int i = 0; i < 9; ++i) acc.push(ex, xs);
    auto copy = acc;
    copy = acc;
    regroup::accumulator tail{verbs::fragile<true>{}, 17 + 270'000};
    tail.push(xs);
    copy.merge(tail);
    EXPECT_EQ(copy.value(), 300'000);
  });
  EXPECT_EQ(verbs::alive, before);
}

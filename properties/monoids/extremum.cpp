// SPDX-License-Identifier: Apache-2.0
#include "regroup/monoids/extremum.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "fold.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/monoids/top_k.hpp"
#include "regroup/reduce.hpp"

namespace {
using namespace monoids;
using floats = std::vector<float>;
using placed = std::vector<regroup::indexed<float>>;
constexpr float inf = infinity<float>;
constexpr float none = not_a_number<float>;

placed at(const floats& xs, std::int64_t first = 0) {
  const regroup::enumerate number(xs.data(), first);
  placed made;
  for (std::size_t i = 0; i < xs.size(); ++i) made.push_back(number(static_cast<std::int64_t>(i)));
  return made;
}

struct row {
  floats xs;
  regroup::indexed<float> min, max;
};
const std::vector<row> table{
    {{}, {inf, -1}, {-inf, -1}},
    {{7}, {7, 0}, {7, 0}},
    {{2, 1, 3, 1, 3}, {1, 1}, {3, 2}},
    {{0, -0.0F}, {0, 0}, {0, 0}},
    {{-0.0F, 0}, {0, 0}, {0, 0}},
    {{1, none, 0, none, -inf}, {none, 1}, {none, 1}},
    {{none}, {none, 0}, {none, 0}},
    {{inf, inf}, {inf, 0}, {inf, 0}},
    {{-inf, -inf, -inf}, {-inf, 0}, {-inf, 0}},
    {{1e-45F, 0, -1e-45F}, {-1e-45F, 2}, {1e-45F, 0}},
};
}  // namespace

TEST(extremum, special_values) {
  for (const row& r : table) {
    EXPECT_TRUE(same(fold(regroup::argmin<float>{}, at(r.xs)), r.min)) << regroup::laws::text_of(r.xs);
    EXPECT_TRUE(same(fold(regroup::argmax<float>{}, at(r.xs)), r.max)) << regroup::laws::text_of(r.xs);
    placed reversed = at(r.xs);
    std::reverse(reversed.begin(), reversed.end());
    EXPECT_TRUE(same(fold(regroup::argmin<float>{}, reversed), r.min)) << "reversed";
    EXPECT_TRUE(same(fold(regroup::argmax<float>{}, reversed), r.max)) << "reversed";
  }
}

TEST(extremum, integers_and_large_positions) {
  const std::int64_t far = (std::int64_t{1} << 31) + 1;
  const auto low = fold(regroup::argmin<int>{}, std::vector<regroup::indexed<int>>{{4, far}, {4, far + 1}, {9, 0}});
  EXPECT_TRUE(same(low, regroup::indexed<int>{4, far}));
  const auto top = std::numeric_limits<int>::max();
  EXPECT_TRUE(
      same(fold(regroup::argmin<int>{}, std::vector<regroup::indexed<int>>{{top, 5}}), regroup::indexed<int>{top, 5}));
}

TEST(extremum, enumerate_numbers_memory) {
  const std::vector<regroup::float16> xs{regroup::float16(2.0F), regroup::float16(0.5F), regroup::float16(0.5F)};
  const auto [value, position] =
      regroup::reduce(regroup::seq, regroup::generate(3, regroup::enumerate(xs.data(), 10)), regroup::argmin<float>{});
  EXPECT_EQ(value, 0.5F);
  EXPECT_EQ(position, 11);
}

TEST(extremum, of_numbered_memory_is_that_of_its_elements) {
  const floats rare{3, none, -0.0F, 0, inf, -inf, -2, 1e-45F};
  std::mt19937 bits(7);
  const auto check = [&](const floats& xs, std::int64_t first) {
    const auto size = static_cast<std::int64_t>(xs.size());
    const auto numbered = regroup::generate(size, regroup::enumerate(xs.data(), first));
    const auto agree = [&](const auto& m) {
      EXPECT_TRUE(same(regroup::reduce(regroup::seq, numbered, m), fold(m, at(xs, first)))) << size << " from " << first;
    };
    agree(regroup::argmin<float>{});
    agree(regroup::argmax<float>{});
  };
  for (const std::size_t n : {1U, 2U, 3U, 10U, 32U, 33U, 63U, 64U, 65U, 127U, 129U, 4095U, 4096U, 4097U, 9001U}) {
    floats ties(n);
    floats last_is_rare(n);
    floats all_rare(n);
    for (std::size_t i = 0; i < n; ++i) {
      ties[i] = static_cast<float>(bits() % 4);
      last_is_rare[i] = static_cast<float>(bits() % 1000);
      all_rare[i] = rare[bits() % rare.size()];
    }
    check(ties, 0);
    check(all_rare, std::int64_t{1} << 40);
    for (const float x : rare) {
      last_is_rare.back() = x;
      check(last_is_rare, 7);
      check(floats(n, x), 7);
    }
  }
}

/// A tile as a device's threads hold it between them.
struct held_between_threads {
  [[nodiscard]] regroup::index size() const;
  regroup::indexed<float> operator[](regroup::index i) const;
  [[nodiscard]] int elements() const;
};
static_assert(!regroup::has_lift_tile<regroup::top_k<float, 3>, held_between_threads>, "sorting a tile is for a host");

TEST(top_k, order_and_ties) {
  const placed xs = at({1, 3, -0.0F, 3, none, inf, 0, none, -inf});
  const placed expected{{none, 4}, {none, 7}, {inf, 5}, {3, 1}, {3, 3}, {1, 0}, {-0.0F, 2}, {0, 6}, {-inf, 8}};
  for (std::int64_t k = 0; k <= 9; ++k) {
    EXPECT_TRUE(same(fold(regroup::top_k<float>{k}, xs), placed(expected.begin(), expected.begin() + k))) << k;
  }
  EXPECT_TRUE(same(fold(regroup::top_k<float>{20}, xs), expected));
  EXPECT_TRUE(same(fold(regroup::top_k<float>{3}, placed{}), placed{}));
  const auto fixed = fold(regroup::top_k<float, 3>{}, at({2, 5}));
  EXPECT_TRUE(same(placed(fixed.begin(), fixed.end()), placed{{5, 1}, {2, 0}, {-inf, -1}}));
  static_assert(std::is_trivially_copyable_v<regroup::state_of<regroup::top_k<float, 3>>>);
  EXPECT_THROW(regroup::top_k<float>{-1}, regroup::argument_error);
}

TEST(top_k, a_tile_is_the_fold_of_its_elements) {
  floats xs = special_values<float>();
  std::mt19937_64 draw(5);
  while (xs.size() < 1000) xs.push_back(static_cast<float>(draw() % 50));
  for (const std::int64_t k : {0, 1, 7, 999, 1000, 1001}) {
    const regroup::top_k<float> m{k};
    const placed elements = at(xs, 3);
    EXPECT_TRUE(same(regroup::host::leaf_of(m, elements.data(), 1000), state(m, elements))) << k;
  }
  const regroup::top_k<float, 5> m;
  const placed elements = at(xs);
  EXPECT_TRUE(same(regroup::host::leaf_of(m, elements.data(), 1000), state(m, elements)));
}
/// Over many tiles, each of which adds only what those before it do not exclude: numbered as they stand, where equal elements
/// are passed over, beside the same elements with their places in memory, in ascending order and in any.
TEST(top_k, of_what_is_numbered) {
  constexpr std::int64_t n = 30'000;
  std::mt19937_64 draw(7);
  for (const int kind : {0, 1, 2, 3, 4}) {
    floats xs(n);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const auto bits = draw();
      const floats rare{none, inf, -inf, 0.0F, -0.0F};
      xs[i] = kind == 0 ? static_cast<float>(bits % 100'000) : kind == 1 ? rare[bits % 5] : static_cast<float>(i);
      if (kind == 4) xs[i] = -xs[i];
      if (kind == 2) xs[i] = -inf;
      if (kind == 2 && bits % 1000 == 0) xs[i] = 3;
    }
    placed shuffled = at(xs);
    std::shuffle(shuffled.begin(), shuffled.end(), draw);
    placed sorted = at(xs);  // NaN, then larger values, then earlier places
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return std::isnan(a.value) ? !std::isnan(b.value) : a.value > b.value;
    });
    const auto numbered = regroup::generate(n, regroup::enumerate(xs.data()));
    const auto three = regroup::reduce(regroup::seq, numbered, regroup::top_k<float, 3>{});
    EXPECT_TRUE(same(placed(three.begin(), three.end()), placed(sorted.begin(), sorted.begin() + 3))) << kind;
    for (const std::int64_t k : {std::int64_t{1}, std::int64_t{3}, std::int64_t{60}, std::int64_t{1000}, std::int64_t{5000}, n}) {
      const placed expected(sorted.begin(), sorted.begin() + k);
      const regroup::top_k<float> m{k};
      EXPECT_TRUE(same(regroup::reduce(regroup::seq, numbered, m), expected)) << kind << ", " << k;
      EXPECT_TRUE(same(regroup::reduce(regroup::seq, at(xs), m), expected)) << kind << ", " << k;
      EXPECT_TRUE(same(regroup::reduce(regroup::seq, shuffled, m), expected)) << kind << ", " << k;
      EXPECT_TRUE(same(regroup::reduce(regroup::par.with_threads(2), numbered, m), expected)) << kind << ", " << k;
    }
  }
}

/// Segments of numbered memory: places in the whole, as of the elements copied.
TEST(extremum, of_segments_of_what_is_numbered) {
  floats xs(20'000);
  std::mt19937_64 draw(9);
  for (float& x : xs) x = static_cast<float>(draw() % 500);
  xs[4100] = xs[19'999] = none;
  const std::vector<int> offsets{0, 0, 1, 4100, 4200, 13'000, 20'000};
  placed numbered(6), copied(6);
  const regroup::argmax<float> m;
  regroup::reduce_segments(regroup::seq, regroup::generate(20'000, regroup::enumerate(xs.data(), 5)), offsets, numbered, m);
  regroup::reduce_segments(regroup::seq, at(xs, 5), offsets, copied, m);
  EXPECT_TRUE(same(numbered, copied));
  EXPECT_EQ(numbered[3].position, 4105);
  EXPECT_EQ(numbered[0].position, -1);
}

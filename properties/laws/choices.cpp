// SPDX-License-Identifier: Apache-2.0
// The generator and the shrinker themselves: every special value occurs, a seed repeats itself, shrunk values are ones that the
// generator can make, and states of any type are taken apart.
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <complex>
#include <concepts>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "holds.hpp"

namespace regroup::laws {
namespace {

std::vector<std::vector<double>> everything_made(std::uint64_t seed, bool special) {
  std::vector<std::vector<double>> made;
  search({.seed = seed, .cases = 300}, [&](const trial& t) {
    made.emplace_back();
    for (const auto& words : t.elements) {
      choices from(words, special);
      made.back().push_back(static_cast<double>(arbitrary<float>{}(from)));
    }
    return true;
  });
  return made;
}

TEST(choices, hold_every_trap) {
  int nan = 0, infinite = 0, minus_zero = 0, denormal = 0, huge = 0, empty = 0, near = 0;
  for (const auto& xs : everything_made(1, true)) {
    empty += xs.empty() ? 1 : 0;
    for (const double x : xs) {
      nan += std::isnan(x) ? 1 : 0;
      infinite += std::isinf(x) ? 1 : 0;
      minus_zero += x == 0 && std::signbit(x) ? 1 : 0;
      denormal += x != 0 && std::fabs(x) < 0x1p-126 ? 1 : 0;
      huge += std::isfinite(x) && std::fabs(x) > 1e37 ? 1 : 0;
      near += x != 1 && std::fabs(x - 1) < 1e-6 ? 1 : 0;
    }
  }
  for (const int seen : {nan, infinite, minus_zero, denormal, huge, empty, near}) EXPECT_GT(seen, 5);
}

TEST(choices, are_finite_where_asked) {
  for (const auto& xs : everything_made(1, false)) {
    for (const double x : xs) ASSERT_TRUE(std::isfinite(x));
  }
}

TEST(choices, repeat_with_the_seed) {
  EXPECT_TRUE(bitwise{}(everything_made(5, true), everything_made(5, true)));
  EXPECT_FALSE(bitwise{}(everything_made(5, true), everything_made(6, true)));
}

/// Whatever an element is made of varies: nothing is left empty, at zero or out.
TEST(choices, fill_every_member) {
  enum class colour : unsigned char {};
  struct inner {
    std::vector<float> numbers;
    std::array<int, 2> pair[2];
  };
  struct fixed {  // filled in place
    int number;
    fixed& operator=(const fixed&) = delete;
  };
  struct element {
    std::string text;
    inner in;
    fixed still;
    std::complex<double> z;
    std::optional<bfloat16> maybe;
    std::pair<colour, std::tuple<bool, std::vector<std::string>>> tagged;
  };
  int text = 0, numbers = 0, first = 0, last = 0, still = 0, real = 0, imag = 0;
  int maybe = 0, value = 0, tag = 0, flag = 0, deep = 0;
  search({.seed = 1, .cases = 300, .words = 40}, [&](const trial& t) {
    for (const auto& words : t.elements) {
      choices from(words, true);
      const element e = arbitrary<element>{}(from);
      text += !e.text.empty();
      numbers += !e.in.numbers.empty() && e.in.numbers.back() != 0;
      first += e.in.pair[0][0] != 0;
      last += e.in.pair[1][1] != 0;
      still += e.still.number != 0;
      real += e.z.real() != 0;
      imag += e.z.imag() != 0;
      maybe += e.maybe.has_value();
      value += e.maybe && widen(*e.maybe) != 0;
      tag += e.tagged.first != colour{};
      flag += std::get<bool>(e.tagged.second);
      const auto& words_of = std::get<1>(e.tagged.second);
      deep += !words_of.empty() && !words_of.back().empty();
    }
    return true;
  });
  for (const int seen : {text, numbers, first, last, still, real, imag, maybe, value, tag, flag, deep}) EXPECT_GT(seen, 5);
}

TEST(choices, shrink_to_small_numbers) {
  const auto sum_below = [](double limit) {
    return [limit](const trial& t) {
      double sum = 0;
      for (const auto& words : t.elements) {
        choices from(words, false);
        sum += arbitrary<double>{}(from);
      }
      return sum < limit;
    };
  };
  const auto found = search({}, sum_below(3)).counterexample;
  ASSERT_TRUE(found);
  ASSERT_EQ(found->elements.size(), 1u);
  choices from(found->elements[0], false);
  EXPECT_EQ(arbitrary<double>{}(from), 3);
}

TEST(choices, stay_inside_their_generator) {
  struct largest {
    int identity() const { return 0; }
    int operator()(int a, int b) const { return a > 13 && b > 13 ? 0 : std::max(a, b); }
  };
  const auto multiples = [](laws::choices& from) { return 7 * from.integer(0, 9); };
  const report r = check_laws(largest{}, multiples, algebra_options{});
  EXPECT_TRUE(falls(r, "associativity"));
  EXPECT_NE(r.find("associativity")->counterexample.find("14"), std::string::npos) << r;
}

TEST(choices, of_integers_reach_both_ends) {
  std::set<int> seen;
  for (std::uint64_t word = 0; word < 2000; ++word) {
    const std::vector<std::uint64_t> words{word};
    choices from(words, true);
    seen.insert(from.integer<int>());
    choices bounded(words, true);
    const int x = bounded.integer(-3, 5);
    ASSERT_TRUE(x >= -3 && x <= 5);
    choices positive(words, true);
    ASSERT_GE(positive.integer<unsigned>(4, 9), 4u);
  }
  for (const int x : {0, 1, -1, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    EXPECT_TRUE(seen.contains(x)) << x;
  }
}

struct saturating_sum {
  int identity() const { return 0; }
  int operator()(int a, int b) const { return std::min(a + b, 100); }
};
TEST(choices, of_rapidcheck_and_of_samples) {
  EXPECT_TRUE(is_rejected(check_laws(saturating_sum{}, rc::gen::inRange(-99, 99), algebra_options{})));
  EXPECT_TRUE(is_rejected(check_laws(saturating_sum{}, std::vector<int>{0, 1, 60, -60}, algebra_options{})));
  EXPECT_TRUE(holds(check_laws(saturating_sum{}, std::vector<int>{0, 1, 2}, algebra_options{})));
}

TEST(choices, reports_are_readable) {
  const report r = check_laws(saturating_sum{}, integers<int>{-99, 99}, algebra_options{.seed = 3});
  std::ostringstream text;
  text << r;
  EXPECT_NE(text.str().find("FALLS  associativity"), std::string::npos) << r;
  EXPECT_NE(text.str().find("seed 3"), std::string::npos) << r;
  EXPECT_NE(text.str().find("bound 0 (bitwise)"), std::string::npos) << r;
  EXPECT_NE(text.str().find("((a b) c) d = "), std::string::npos) << r;
}

struct range_of_anything {
  struct state {
    double low, high;
  };
  template <std::convertible_to<double> X>
  state lift(const X& x) const {
    return {static_cast<double>(x), static_cast<double>(x)};
  }
  state identity() const { return {1, -1}; }
  state operator()(state a, state b) const { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }
};
TEST(choices, of_elements_nobody_named) {
  EXPECT_EQ(check_laws(log_sum_exp<float>{}, algebra_options{.cases = 1}).element, "float");
  EXPECT_EQ(check_laws(plus<double>{}, algebra_options{.cases = 1}).element, "double");
  EXPECT_EQ(check_laws(moments<float>{}, algebra_options{.cases = 1}).element, "float");
  EXPECT_EQ(check_laws(fanout{count{}, moments<double>{}}, algebra_options{.cases = 1}).element, "double");
  static_assert(!detail::element_is_known<range_of_anything>);
}

// Taking apart. --------------------------------------------------------------------------------------------------

struct mixed {
  float a[3];
  double b;
  std::vector<int> c;
  std::optional<bool> d;
  std::string e;
};
struct derived : mixed {};

TEST(members, are_found_in_order) {
  EXPECT_EQ(text_of(mixed{{1, -0.0f, 0.1f}, NAN, {3, 4}, true, "ab"}), "([1, -0, 0.1], nan, [3, 4], true, \"ab\")");
  EXPECT_TRUE(members::is_transparent<mixed>);
  EXPECT_FALSE(members::is_transparent<derived>);
  EXPECT_EQ(image_of(mixed{{1, 2, 3}, 4, {5, 6}, {}, "x"}).size(), 1u + 3 + 1 + 1 + 2 + 1 + 1 + 1);
}

TEST(members, compare_by_bits_with_one_nan) {
  EXPECT_TRUE(bitwise{}(std::pair(NAN, 1), std::pair(-NAN, 1)));
  EXPECT_FALSE(bitwise{}(std::pair(0.0, 1), std::pair(-0.0, 1)));
  EXPECT_FALSE(bitwise{}(std::vector<float>{1}, std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace regroup::laws

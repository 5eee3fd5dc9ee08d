// SPDX-License-Identifier: Apache-2.0
// States and elements of any kind: strings, classes without a default, records with projections, borrowed values.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operators.hpp"
#include "regroup/error.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "regroup/stream.hpp"

namespace {

template <class F>
void with_executors(const F& f) {
  f(regroup::seq);
  f(regroup::par.with_threads(3));
}

struct city {
  std::string name;
  double people;
  [[nodiscard]] std::string_view initial() const { return std::string_view(name).substr(0, 1); }
};

/// The first element, of 2 KiB: a tile of them has no room on a stack.
struct first_of {
  struct state {
    bool some;
    std::array<double, 256> value;
  };
  state identity() const { return {}; }
  state lift(const std::array<double, 256>& x) const { return {true, x}; }
  state operator()(const state& a, const state& b) const { return a.some ? a : b; }
  double lower(const state& s) const { return s.value[255]; }
};

struct largest {
  std::optional<double> identity() const { return {}; }
  std::optional<double> lift(double x) const { return x; }
  std::optional<double> operator()(std::optional<double> a, std::optional<double> b) const {
    return !a ? b : !b ? a : std::max(*a, *b);
  }
};

/// A polynomial in a variable of run-time value: the operator carries a parameter.
struct digits {
  struct state {
    std::uint64_t value, power;
  };
  std::uint64_t base;
  constexpr state identity() const { return {0, 1}; }
  constexpr state lift(int d) const { return {static_cast<std::uint64_t>(d), base}; }
  constexpr state operator()(state a, state b) const { return {a.value * b.power + b.value, a.power * b.power}; }
  constexpr std::uint64_t lower(state s) const { return s.value; }
};

struct sum {
  static constexpr bool is_commutative = true;
  double identity() const { return -0.0; }
  double operator()(double a, double b) const { return a + b; }
};

/// A state with a base: a structured binding cannot take it apart.
struct counted {
  int count;
};
struct counted_sum : counted {
  double sum;
};
struct total {
  static constexpr bool is_commutative = true;
  counted_sum identity() const { return {{0}, -0.0}; }
  counted_sum lift(double x) const { return {{1}, x}; }
  counted_sum operator()(counted_sum a, counted_sum b) const { return {{a.count + b.count}, a.sum + b.sum}; }
};

/// A state of more numbers than are taken apart, in arrays side by side.
struct sums_of_digits {
  struct state {
    float odd[3];
    float counts[40];
  };
  state identity() const { return {}; }
  state lift(int x) const {
    state s{};
    s.odd[x % 3] = static_cast<float>(x % 2);
    s.counts[x % 40] = 1;
    return s;
  }
  state operator()(state a, const state& b) const {
    for (int i = 0; i < 3; ++i) a.odd[i] += b.odd[i];
    for (int i = 0; i < 40; ++i) a.counts[i] += b.counts[i];
    return a;
  }
};

struct any_set {
  static constexpr bool is_commutative = true;
  bool identity() const { return false; }
  bool operator()(bool a, bool b) const { return a || b; }
};

}  // namespace

TEST(states, long_arrays_side_by_side) {
  std::vector<int> xs(12'000);
  for (int i = 0; i < 12'000; ++i) xs[static_cast<std::size_t>(i)] = i;
  with_executors([&](const auto& ex) {
    const auto s = regroup::reduce(ex, xs, sums_of_digits{});
    for (const float odd : s.odd) EXPECT_EQ(odd, 2000);
    for (const float count : s.counts) EXPECT_EQ(count, 300);
  });
}

TEST(states, strings_keep_order) {
  std::string letters;
  std::vector<std::string> words;
  for (int i = 0; i < 9000; ++i) {
    words.push_back(std::to_string(i) + ",");
    letters += words.back();
  }
  with_executors([&](const auto& ex) {
    EXPECT_EQ(regroup::reduce(ex, words, verbs::join{}), letters);
    EXPECT_EQ(regroup::reduce(ex, letters, verbs::join{}), letters);
    std::vector<std::string> prefixes(300);
    regroup::inclusive_scan(ex, std::span(words).first(300), prefixes, verbs::join{});
    EXPECT_EQ(prefixes.back(), letters.substr(0, prefixes.back().size()));
    EXPECT_EQ(prefixes[2], "0,1,2,");
    regroup::exclusive_scan(ex, std::span(words).first(300), prefixes, verbs::join{});
    EXPECT_EQ(prefixes[0], "");
    EXPECT_EQ(prefixes[2], "0,1,");
    std::vector<std::string> rows(90);
    regroup::reduce_rows(ex, regroup::view<const std::string>(words.data(), {90, 100}), rows, verbs::join{});
    EXPECT_EQ(rows[1].substr(0, 8), "100,101,");
    std::vector<std::string> columns(100);
    regroup::reduce_axes(ex, regroup::view<const std::string>(words.data(), {90, 100}), {0}, columns, verbs::join{});
    EXPECT_EQ(columns[7].substr(0, 10), "7,107,207,");
  });
  regroup::accumulator acc{verbs::join{}, 4000};
  for (const auto& w : words) acc.push_one(w);
  EXPECT_EQ(acc.value(), letters);
}

TEST(states, elements_of_two_kilobytes) {
  std::vector<std::array<double, 256>> xs(5000);
  for (std::size_t i = 0; i < xs.size(); ++i) xs[i].fill(static_cast<double>(i) + 1);
  with_executors([&](const auto& ex) {
    EXPECT_EQ(regroup::reduce(ex, xs, first_of{}), 1);
    std::vector<double> ys(xs.size());
    regroup::inclusive_scan(ex, xs, ys, first_of{});
    EXPECT_EQ(ys, std::vector<double>(xs.size(), 1));
  });
}

TEST(states, borrowed_and_optional) {
  const std::vector<std::string> words = {"fold", "regroup", "monoid", "lattice", "tile"};
  with_executors([&](const auto& ex) {
    EXPECT_EQ(regroup::reduce(ex, words, verbs::longest_word{}), "regroup");
    EXPECT_EQ(regroup::reduce(ex, std::vector<double>{}, largest{}), std::nullopt);
    EXPECT_EQ(regroup::reduce(ex, std::vector<double>{3, 9, 2}, largest{}), 9);
  });
}

TEST(states, records_with_projections) {
  const std::vector<city> cities = {{"Basel", 1.5}, {"Bergen", 2.5}, {"Lund", 4}};
  with_executors([&](const auto& ex) {
    EXPECT_EQ(regroup::reduce(ex, cities, sum{}, &city::people), 8);
    EXPECT_EQ(regroup::reduce(ex, cities, verbs::join{}, &city::name), "BaselBergenLund");
    EXPECT_EQ(regroup::reduce(ex, cities, verbs::longest_word{}, &city::initial), "B");
    std::vector<double> ys(3);
    regroup::inclusive_scan(ex, cities, ys, sum{}, &city::people);
    EXPECT_EQ(ys, (std::vector<double>{1.5, 4, 8}));
    std::vector<std::string> initials(3);
    std::vector<double> totals(3);
    const auto runs = regroup::reduce_by_key(ex, std::vector<std::string>{"B", "B", "L"}, cities, initials, totals,
                                             sum{}, &city::people);
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(initials[1], "L");
    EXPECT_EQ(totals[0], 4);
    const std::deque<city> deque(cities.begin(), cities.end());
    EXPECT_EQ(regroup::reduce(ex, deque, sum{}, [](const city& c) { return 2 * c.people; }), 16);
  });
}

TEST(states, an_operator_with_a_parameter) {
  std::vector<int> ds(10'000);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < ds.size(); ++i) {
    ds[i] = static_cast<int>(i * 31 % 7);
    value = value * 7 + static_cast<std::uint64_t>(ds[i]);
  }
  with_executors([&](const auto& ex) {
    EXPECT_EQ(regroup::reduce(ex, ds, digits{7}), value);
    regroup::accumulator acc{digits{7}};
    acc.push(ex, ds);
    EXPECT_EQ(acc.value(), value);
  });
}

TEST(states, with_a_base) {
  const std::vector<double> xs(5000, 0.5);
  with_executors([&](const auto& ex) {
    const counted_sum all = regroup::reduce(ex, xs, total{});
    EXPECT_EQ(all.count, 5000);
    EXPECT_EQ(all.sum, 2500);
  });
}

/// A member that is made of anything hides from those who count members.
struct of_anything {
  int value = 0;
  of_anything() = default;
  template <class T>
  of_anything(const T&) {}  // NOLINT: implicit on purpose
};
struct number_and_anything {
  struct state {
    int sum;
    of_anything last;
    double half;
  };
  static state identity() { return {}; }
  static state lift(int x) { return {x, {}, x / 2.0}; }
  state operator()(const state& a, const state& b) const { return {a.sum + b.sum, b.last, a.half + b.half}; }
  static double lower(const state& s) { return s.sum + s.half; }
};
static_assert(regroup::members::count<number_and_anything::state>() == 0);
TEST(states, with_a_member_that_is_made_of_anything) {
  const std::vector<int> xs(5000, 2);
  with_executors([&](const auto& ex) { EXPECT_EQ(regroup::reduce(ex, xs, number_and_anything{}), 15'000); });
}

TEST(states, bools_chars_and_bit_references) {
  std::vector<bool> bits(5000);
  with_executors([&](const auto& ex) {
    bits[4321] = false;
    EXPECT_FALSE(regroup::reduce(ex, bits, any_set{}));
    bits[4321] = true;
    EXPECT_TRUE(regroup::reduce(ex, bits, any_set{}));
  });
}

/// Adds to its left argument where it may, and returns that.
struct joining {
  static constexpr bool is_exact = true;
  std::string identity() const { return {}; }
  std::string lift(char c) const { return {c}; }
  std::string&& operator()(std::string&& a, const std::string& b) const { return std::move(a += b); }
  std::string operator()(const std::string& a, const std::string& b) const { return a + b; }
};
TEST(states, a_combine_that_returns_its_argument) {
  std::string all;
  for (int i = 0; i < 20'000; ++i) all += static_cast<char>('a' + i * 7919 % 26);
  const std::vector<char> xs(all.begin(), all.end());
  with_executors([&](const auto& ex) { EXPECT_EQ(regroup::reduce(ex, xs, joining{}), all); });
  regroup::accumulator<joining, char> acc{joining{}};
  acc.push(xs);
  EXPECT_EQ(acc.value(), all);
}

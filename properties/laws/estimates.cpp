// SPDX-License-Identifier: Apache-2.0
// Operators without an error_bound, judged by an estimate of what rounding may do. Operators that are wrong only where numbers
// are equal fail, since a branch is not rounding; correct ones that round in their own way pass. And states that are compared
// by more than the members of an aggregate.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "holds.hpp"

namespace regroup::laws {
namespace {

constexpr float nothing = -std::numeric_limits<float>::infinity();

template <class M, class Generate>
void always_falls(const M& m, const Generate& generate) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_TRUE(is_rejected(check_laws(m, generate, algebra_options{.cases = 400, .seed = seed}))) << "seed " << seed;
  }
}
template <class M, class Generate>
void always_holds(const M& m, const Generate& generate) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_TRUE(holds(check_laws(m, generate, algebra_options{.cases = few, .seed = seed}))) << "seed " << seed;
  }
}

/// Equal keys have the average of what they bring: averages of averages are not that of all.
struct tie_average {
  struct state {
    float key, value;
  };
  static constexpr bool is_commutative = true;
  state identity() const { return {nothing, 0}; }
  state lift(state x) const { return x; }
  state operator()(state a, state b) const {
    if (a.key == nothing) return b;
    if (b.key == nothing) return a;
    if (a.key == b.key) return {a.key, (a.value + b.value) / 2};
    return a.key > b.key ? a : b;
  }
};
TEST(estimates, equal_keys_averaged) {
  always_falls(tie_average{}, [](choices& from) {
    const auto key = static_cast<float>(from.integer(1, 9));
    return tie_average::state{key, static_cast<float>(from.integer(0, 9))};
  });
}

struct skip_equal {
  double identity() const { return -0.0; }
  double operator()(double a, double b) const { return a == b ? a : a + b; }
};
TEST(estimates, equal_numbers_skipped) { always_falls(skip_equal{}, integers<int>{1, 9}); }
template <class Half>
struct skip_equal_halves {
  Half identity() const { return Half(-0.0f); }
  Half lift(float x) const { return Half(x); }
  Half operator()(Half a, Half b) const { return widen(a) == widen(b) ? a : Half(widen(a) + widen(b)); }
};
TEST(estimates, equal_halves_skipped) {
  const auto scores = [](choices& from) { return static_cast<float>(from.integer(1, 9)); };
  always_falls(skip_equal_halves<float16>{}, scores);
  always_falls(skip_equal_halves<bfloat16>{}, scores);
}

/// A sum of exponentials that drops a sum where two maxima are equal: falls under folds, where states of many elements meet.
struct drops_at_ties {
  struct state {
    float m, s;
  };
  static constexpr bool is_commutative = true;
  state identity() const { return {nothing, 0}; }
  state lift(float x) const { return {x, x == nothing ? 0.0f : 1.0f}; }
  state operator()(state a, state b) const {
    if (a.m == b.m) return {a.m, std::max(a.s, b.s)};
    const auto [low, high] = a.m < b.m ? std::pair(a, b) : std::pair(b, a);
    return {high.m, high.s + low.s * std::exp(low.m - high.m)};
  }
  float lower(state s) const { return s.m + std::log(s.s); }
};
TEST(estimates, equal_maxima_dropped) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto scores = [](choices& from) { return static_cast<float>(from.integer(1, 9)); };
    EXPECT_FALSE(check_laws(drops_at_ties{}, scores, law_options{.cases = few, .seed = seed}).passed()) << "seed " << seed;
  }
}

/// A sum and what rounding took from it (Neumaier 1974): a state holds its own rounding.
struct neumaier {
  struct state {
    double sum, lost;
  };
  static constexpr bool is_commutative = true;
  state identity() const { return {-0.0, 0}; }
  state lift(double x) const { return {x, 0}; }
  state operator()(state a, state b) const {
    const double sum = a.sum + b.sum;
    const double lost = std::fabs(a.sum) >= std::fabs(b.sum) ? (a.sum - sum) + b.sum : (b.sum - sum) + a.sum;
    return {sum, a.lost + b.lost + lost};
  }
  double lower(state s) const { return s.sum + s.lost; }
};
struct loses_twice : neumaier {
  state operator()(state a, state b) const {
    const state s = neumaier::operator()(a, b);
    return {s.sum, s.lost + a.lost};
  }
};
TEST(estimates, what_rounding_took) {
  always_holds(neumaier{}, arbitrary<double>{});
  always_holds(neumaier{}, reals<double>{-10, 10});
  EXPECT_FALSE(check_laws(loses_twice{}, reals<double>{-10, 10}, algebra_options{}).passed());
}

/// A bin by a product that rounds: its lift is only right to nearest, as which it is called. The bins are summed with what
/// rounding took, so that how a combine rounds is asked too.
struct weights_by_bin {
  struct state {
    std::array<neumaier::state, 10> bins;
  };
  neumaier sum;
  state identity() const {
    state s;
    s.bins.fill(sum.identity());
    return s;
  }
  state lift(float x) const {
    state s = identity();
    s.bins.at(static_cast<std::size_t>(x * 10)) = sum.lift(x);
    return s;
  }
  state operator()(const state& a, const state& b) const {
    state s = a;
    for (std::size_t i = 0; i < s.bins.size(); ++i) s.bins[i] = sum(s.bins[i], b.bins[i]);
    return s;
  }
};
TEST(estimates, a_lift_rounds_to_nearest) {
  const std::vector<float> samples = {std::nextafter(1.0f, 0.0f), 0.1f, 0.7f, 0.05f, 0.3333f};
  always_holds(weights_by_bin{}, one_of<float>{samples});
}

/// What lower does to a state may jump: the states of the sum are within their bounds.
struct in_cents {
  double identity() const { return -0.0; }
  double operator()(double a, double b) const { return a + b; }
  double lower(double sum) const { return std::round(100 * sum) / 100; }
};
TEST(estimates, answers_that_jump) {
  always_holds(in_cents{}, [](choices& from) { return 0.005 * static_cast<double>(from.integer(-300, 300)); });
}

/// The logarithm of a sum's size: where two groupings leave 0 and a little, the answers are infinitely far apart.
template <class Real>
struct log_size {
  static constexpr bool is_commutative = true;
  constexpr Real identity() const { return 0; }
  constexpr Real operator()(Real a, Real b) const { return a + b; }
  Real lower(Real s) const { return std::log(std::fabs(s)); }
};
TEST(estimates, answers_that_are_infinite_at_a_place) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_TRUE(holds(check_laws<double>(log_size<double>{}, law_options{.seed = seed}))) << "seed " << seed;
    EXPECT_TRUE(holds(check_laws<float>(log_size<float>{}, law_options{.seed = seed}))) << "seed " << seed;
  }
}

/// Answers of other kinds, made of a sum that rounds: they jump as well.
struct sum_of_doubles {
  double identity() const { return -0.0; }
  double operator()(double a, double b) const { return a + b; }
};
struct is_positive : sum_of_doubles {
  bool lower(double s) const { return s > 0; }
};
struct in_whole : sum_of_doubles {
  int lower(double s) const { return std::fabs(s) < 1e9 ? static_cast<int>(s) : 0; }
};
struct in_text : sum_of_doubles {
  std::string lower(double s) const {
    char text[400];
    std::snprintf(text, sizeof text, "%.3f", s);
    return text;
  }
};
struct inverse : sum_of_doubles {
  std::optional<double> lower(double s) const { return s == 0 ? std::nullopt : std::optional(1 / s); }
};
TEST(estimates, answers_that_are_no_reals) {
  always_holds(is_positive{}, arbitrary<double>{});
  always_holds(in_whole{}, [](choices& from) { return 0.1 * static_cast<double>(from.integer(-30, 30)); });
  always_holds(in_text{}, arbitrary<double>{});
  always_holds(inverse{}, arbitrary<double>{});
}
/// Or are made wrongly: what rounding does not explain falls, whatever its kind.
struct games_in_text {
  int identity() const { return 0; }
  int operator()(int a, int b) const { return a == 0 ? b : b == 0 ? a : a == b ? a + 1 : std::max(a, b); }
  std::string lower(int s) const { return std::to_string(s); }
};
TEST(estimates, answers_of_a_wrong_combine) { always_falls(games_in_text{}, integers<int>{0, 1}); }

/// A product of min-plus matrices: minima carry the infinity of a sum that overflows into finite neighbours.
struct min_plus {
  using state = std::array<float, 4>;
  state identity() const {
    const float none = std::numeric_limits<float>::infinity();
    return {0, none, none, 0};
  }
  state operator()(const state& a, const state& b) const {
    return {std::min(a[0] + b[0], a[1] + b[2]), std::min(a[0] + b[1], a[1] + b[3]), std::min(a[2] + b[0], a[3] + b[2]),
            std::min(a[2] + b[1], a[3] + b[3])};
  }
};
TEST(estimates, an_overflow_that_spreads) { always_holds(min_plus{}, arbitrary<min_plus::state>{}); }

/// An operator that remembers is no law's, and no note's.
struct counts_its_calls {
  mutable int calls = 0;
  int identity() const { return 0; }
  int operator()(int a, int b) const {
    if (a == 0 || b == 0) return a + b;
    return a + b + (++calls % 7 == 0 ? 1 : 0);
  }
};
TEST(estimates, what_depends_on_more) {
  const report r = check_laws(counts_its_calls{}, integers<int>{1, 9}, algebra_options{.cases = 400});
  EXPECT_FALSE(r.passed());
  for (const finding& f : r.findings) EXPECT_TRUE(f.result != finding::outcome::note) << f;
}

template <class Number>
struct sum_of {
  static constexpr bool is_commutative = true;
  Number identity() const { return Number(-0.0f); }
  Number lift(float x) const { return Number(x); }
  Number operator()(Number a, Number b) const { return add(a, b); }

 private:
  static std::complex<double> add(std::complex<double> a, std::complex<double> b) { return a + b; }
  template <class Half>
  static Half add(Half a, Half b) {
    return Half(widen(a) + widen(b));
  }
};
TEST(estimates, complex_numbers_and_halves) {
  always_holds(sum_of<std::complex<double>>{}, reals<float>{-10, 10});
  always_holds(sum_of<bfloat16>{}, reals<float>{-10, 10});
  always_holds(sum_of<float16>{}, reals<float>{-10, 10});
}

/// The elements of an unordered container come as they will.
struct word_count {
  using state = std::unordered_map<std::string, double>;
  static constexpr bool is_commutative = true;
  state identity() const { return {}; }
  state lift(int x) const { return {{std::string(1, static_cast<char>('a' + x)), 0.1 * x}}; }
  state operator()(state a, const state& b) const {
    for (const auto& [word, count] : b) a[word] += count;
    return a;
  }
};
struct halves_words : word_count {
  state operator()(state a, const state& b) const {
    for (const auto& [word, count] : b) a[word] = a[word] / 2 + count;
    return a;
  }
};
TEST(estimates, unordered_containers) {
  always_holds(word_count{}, integers<int>{0, 9});
  EXPECT_FALSE(check_laws(halves_words{}, integers<int>{0, 9}, algebra_options{}).passed());
}

/// A range that holds more than its elements, as its own == knows.
struct bins : std::vector<int> {
  long total = 0;
  friend bool operator==(const bins&, const bins&) = default;
};
struct sketch {
  bins identity() const { return {}; }
  bins lift(int x) const {
    bins one;
    one.push_back(x);
    one.total = x;
    return one;
  }
  bins operator()(bins a, const bins& b) const {
    a.insert(a.end(), b.begin(), b.end());
    a.total -= b.total;
    return a;
  }
  int lower(const bins& b) const { return static_cast<int>(b.size()); }
};
TEST(estimates, ranges_that_hold_more) {
  const report r = check_laws(sketch{}, integers<int>{1, 9}, algebra_options{});
  EXPECT_TRUE(falls(r, "associativity"));
  EXPECT_EQ(r.find("associativity")->difference, "not ==, though their elements are");
}

class hidden {
 public:
  explicit hidden(double x) : x_(x) {}
  friend bool operator==(const hidden&, const hidden&) = default;
  friend hidden operator+(hidden a, hidden b) { return hidden(a.x_ + b.x_); }

 private:
  double x_;
};
struct sum_of_hidden {
  hidden identity() const { return hidden(-0.0); }
  hidden lift(double x) const { return hidden(x); }
  hidden operator()(hidden a, hidden b) const { return a + b; }
};
TEST(estimates, what_cannot_be_taken_apart) {
  const report r = check_laws(sum_of_hidden{}, reals<double>{-10, 10}, algebra_options{});
  EXPECT_TRUE(falls(r, "associativity"));
  EXPECT_EQ(r.find("associativity")->difference,
            "not ==, all that there is to ask a type that cannot be taken apart into numbers");
}

struct how_many {
  static constexpr bool is_exact = true;
  long identity() const { return 0; }
  long lift(double) const { return 1; }
  long operator()(long a, long b) const { return a + b; }
  double lower(long n) const { return static_cast<double>(n); }
};
TEST(estimates, a_reference_in_integers) {
  const auto size = [](std::span<const double> xs) { return xs.size(); };
  EXPECT_TRUE(holds(check_laws(how_many{}, reals<double>{-1, 1}, algebra_options{}, size)));
  const auto more = [](std::span<const double> xs) { return xs.size() + 1; };
  EXPECT_TRUE(falls(check_laws(how_many{}, reals<double>{-1, 1}, algebra_options{}, more), "fold = reference"));
}

/// Fallen without NaN, infinities or a sign of zero is fallen, whichever search has found it: no note is of plain numbers.
TEST(estimates, notes_are_of_special_elements) {
  struct left_of_ties : tie_average {
    state operator()(state a, state b) const { return b.key > a.key ? b : a; }
  };
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const report r = check_laws(left_of_ties{}, algebra_options{.seed = seed});
    EXPECT_FALSE(r.passed());
    for (const finding& f : r.findings) {
      const std::string& with = f.counterexample;
      const bool is_special = with.find("nan") != with.npos || with.find("inf") != with.npos || with.find("-0") != with.npos;
      EXPECT_TRUE(f.result != finding::outcome::note || is_special) << f;
    }
  }
}

struct two_sums {
  struct state {
    double x, y;
  };
  state identity() const { return {-0.0, -0.0}; }
  state lift(double x) const { return {x, -x}; }
  state operator()(state a, state b) const { return {a.x + b.x, a.y + b.y}; }
  std::vector<double> error_bound(std::span<const double>, index) const { return {1e-9}; }
};
TEST(estimates, a_bound_for_every_real) { EXPECT_THROW(check_laws(two_sums{}), argument_error); }
struct of_less_than_no_error : sum_of_doubles {
  double error_bound(std::span<const double>, index) const { return -1; }
};
TEST(estimates, a_bound_of_0_or_more) {
  EXPECT_THROW(check_laws<double>(of_less_than_no_error{}, algebra_options{}), argument_error);
}

/// A tile lift that is wrong for some lengths that nothing is at the edge of.
struct wrong_at_some_lengths {
  static constexpr bool is_commutative = true;
  long identity() const { return 0; }
  long operator()(long a, long b) const { return a + b; }
  long lift_tile(const auto& tile) const {
    long sum = 0;
    for (index i = 0; i < tile.size(); ++i) sum += tile[i];
    return tile.size() > 900 && tile.size() < 4000 ? sum + 1 : sum;
  }
};
TEST(estimates, lengths_between_edges) {
  EXPECT_FALSE(check_laws(wrong_at_some_lengths{}, integers<long>{0, 9}, law_options{.cases = 1000}).passed());
}

}  // namespace
}  // namespace regroup::laws

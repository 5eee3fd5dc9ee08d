// SPDX-License-Identifier: Apache-2.0
// Operators that are not monoids, or not the monoid that they claim to be. Each is rejected by a counterexample of at most four
// elements, which the test prints.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "holds.hpp"
#include "max_sum.hpp"
#include "regroup/monoids/extremum.hpp"

namespace regroup::laws {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

algebra_options algebra() { return {.cases = few}; }

/// The middle of a sorted list forgets the list.
struct median {
  using state = std::optional<double>;
  static constexpr bool is_commutative = true;
  state identity() const { return {}; }
  state lift(double x) const { return x; }
  state operator()(state a, state b) const {
    if (!a) return b;
    if (!b) return a;
    return (*a + *b) / 2;
  }
};
TEST(negative_controls, median) { EXPECT_TRUE(falls(check_laws(median{}, algebra()), "associativity")); }

struct subtraction {
  double identity() const { return 0; }
  double operator()(double a, double b) const { return a - b; }
};
TEST(negative_controls, subtraction) {
  EXPECT_TRUE(falls(check_laws(subtraction{}, algebra()), "associativity"));
  EXPECT_TRUE(falls(check_laws(subtraction{}, algebra()), "identity on the left"));
}

struct adds_squares {
  double identity() const { return 0; }
  double operator()(double a, double b) const { return a + b * b; }
};
TEST(negative_controls, adds_squares) { EXPECT_TRUE(falls(check_laws(adds_squares{}, algebra()), "associativity")); }

struct mean_without_count {
  static constexpr bool is_commutative = true;
  float identity() const { return 0; }
  float operator()(float a, float b) const { return (a + b) / 2; }
};
TEST(negative_controls, mean_without_count) {
  EXPECT_TRUE(falls(check_laws(mean_without_count{}, algebra()), "associativity"));
  EXPECT_TRUE(is_rejected(check_laws(mean_without_count{}, {.cases = few})));
}

/// Of equal values the right one wins here, the left one there: not commutative as declared.
struct argmax_without_ties {
  static constexpr bool is_commutative = true;
  indexed<float> identity() const { return {-infinity, -1}; }
  indexed<float> lift(indexed<float> x) const { return x; }
  indexed<float> operator()(indexed<float> a, indexed<float> b) const { return a.value > b.value ? a : b; }
};
struct somewhere {
  indexed<float> operator()(choices& from) const { return {arbitrary<float>{}(from), from.integer<index>(0, 9)}; }
};
TEST(negative_controls, argmax_without_ties) {
  EXPECT_TRUE(falls(check_laws(argmax_without_ties{}, somewhere{}, algebra()), "commutativity"));
  EXPECT_TRUE(falls(check_laws(argmax_without_ties{}, somewhere{}, algebra()), "any order"));
}

TEST(negative_controls, exp_of_nothing_minus_nothing) {
  const report r = check_laws(obvious_max_sum{}, algebra());
  EXPECT_TRUE(falls(r, "identity + identity"));
  EXPECT_EQ(r.find("identity + identity")->left, "(-inf, nan)");
}

/// A published operator's identity: two of nothing count as two.
struct identity_of_one : max_sum {
  state identity() const { return {-infinity, 1}; }
};
TEST(negative_controls, identity_of_one) {
  EXPECT_TRUE(falls(check_laws(identity_of_one{}, algebra()), "identity + identity"));
}

/// Just as associative as the right one.
struct opposite_affine {
  affine_map<float> identity() const { return {1, 0}; }
  affine_map<float> operator()(affine_map<float> a, affine_map<float> b) const {
    return {a.a * b.a, a.a * b.b + a.b};  // applies b first
  }
};
struct recurrence {
  affine_map<double> operator()(std::span<const affine_map<float>> xs) const {
    affine_map<double> all{1, 0};
    for (const auto& x : xs) {
      const auto a = static_cast<double>(x.a);
      all = {a * all.a, a * all.b + static_cast<double>(x.b)};
    }
    return all;
  }
};
TEST(negative_controls, opposite_affine) {
  const auto generate = [](choices& from) {
    const reals<float> number{-9, 9};
    const float a = number(from);
    return affine_map<float>{a, number(from)};
  };
  EXPECT_TRUE(holds(check_laws(opposite_affine{}, generate, algebra())));
  EXPECT_TRUE(falls(check_laws(opposite_affine{}, generate, algebra(), recurrence{}), "fold = reference"));
}

struct saturating_sum {
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  int identity() const { return 0; }
  int operator()(int a, int b) const {
    using limits = std::numeric_limits<int>;
    const std::int64_t sum = std::int64_t{a} + b;
    return static_cast<int>(std::clamp<std::int64_t>(sum, limits::min(), limits::max()));
  }
};
TEST(negative_controls, saturating_sum) {
  EXPECT_TRUE(falls(check_laws(saturating_sum{}, algebra()), "associativity"));
  EXPECT_TRUE(falls(check_laws(saturating_sum{}, algebra()), "any tree"));
}

/// (max, sum) whose sums are added without the correction: lawful as a monoid, of another answer.
struct without_correction : obvious_max_sum {
  state operator()(state a, state b) const { return {std::max(a.m, b.m), a.s + b.s}; }
};
struct long_log_sum_exp {
  double operator()(std::span<const float> xs) const {
    double sum = 0;
    for (const float x : xs) sum += std::exp(static_cast<double>(x) - 50);
    return std::log(sum) + 50;
  }
};
TEST(negative_controls, without_correction) {
  const reals<float> generate{-99, 99};
  EXPECT_TRUE(falls(check_laws(without_correction{}, generate, algebra(), long_log_sum_exp{}), "fold = reference"));
}

/// The correction of one side only.
struct half_corrected : obvious_max_sum {
  state operator()(state a, state b) const {
    const float m = std::max(a.m, b.m);
    return {m, a.s * (a.m == m ? 1 : std::exp(a.m - m)) + b.s};
  }
};
TEST(negative_controls, half_corrected) { EXPECT_TRUE(is_rejected(check_laws(half_corrected{}, algebra()))); }

/// Counts its combines, so the same inputs do not give the same bits.
struct impure {
  mutable int calls = 0;
  int identity() const { return 0; }
  int operator()(int a, int b) const { return ++calls % 3 == 0 ? a : a + b; }
};
TEST(negative_controls, impure) { EXPECT_TRUE(is_rejected(check_laws(impure{}, integers<int>{-9, 9}, algebra()))); }

/// A tile lift that forgets the rescale's other half: only the second family sees it.
struct wrong_tile : plus<float> {
  template <class Tile>
  float lift_tile(const Tile& tile) const {
    return tile.size() > 1 ? tile.fold(plus<float>{}) * 2 : tile[0];
  }
};
TEST(negative_controls, wrong_tile) {
  EXPECT_TRUE(falls(check_laws<float>(wrong_tile{}, {.cases = few}), "tile lift = fold of its elements"));
}

/// Forgets what is left of a tile after the last whole pack: an element that came before, too, would not be missed.
struct without_a_tail : maximum<float> {
  float lift_tile(const auto& tile) const {
    float m = identity();
    for (index i = 0; i < std::max<index>(tile.size() / 8 * 8, 1); ++i) m = (*this)(m, static_cast<float>(tile[i]));
    return m;
  }
};
TEST(negative_controls, without_a_tail) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_FALSE(check_laws<float>(without_a_tail{}, {.cases = few, .seed = seed}).passed()) << "seed " << seed;
  }
}

/// Leaves out of a tile what those before it outweigh, and what equals that too, which the others would count.
struct wrong_lift_tiles {
  struct state {
    int top, times;
  };
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  state identity() const { return {std::numeric_limits<int>::min(), 0}; }
  state lift(int x) const { return {x, 1}; }
  state operator()(state a, state b) const { return a.top == b.top ? state{a.top, a.times + b.times} : a.top > b.top ? a : b; }
  state lift_tile(const auto& tile) const {
    state s = identity();
    for (index i = 0; i < tile.size(); ++i) s = (*this)(s, lift(tile[i]));
    return s;
  }
  state lift_tiles(const auto& each) const {
    state before = identity();
    each([&](const auto& tile) {
      const state s = lift_tile(tile);
      if (s.top > before.top) before = s;
    });
    return before;
  }
};
TEST(negative_controls, wrong_lift_tiles) {
  EXPECT_TRUE(falls(check_laws(wrong_lift_tiles{}, integers<int>{0, 9}, {.cases = few}), "lift of tiles = lifts of each"));
}

/// Counts what it appends from nothing: only the law of `append` sees it, and what folds lanes.
struct wrong_append : plus<int> {
  int append(index n, int s, int x) const { return n == 1 ? x : s + x; }
};
TEST(negative_controls, wrong_append) {
  EXPECT_TRUE(falls(check_laws<int>(wrong_append{}, {.cases = few}), "append = combine with a lift"));
}

/// A large number in the identity is no overflow that would excuse the NaN beside it.
struct max_sum_least {
  struct state {
    float max, sum, least;
  };
  static constexpr bool is_commutative = true;
  state identity() const { return {-infinity, 0, std::numeric_limits<float>::max()}; }
  state lift(float x) const { return {x, 1, x}; }
  state operator()(state a, state b) const {
    const float m = std::max(a.max, b.max);
    return {m, a.sum * std::exp(a.max - m) + b.sum * std::exp(b.max - m), std::min(a.least, b.least)};
  }
  float lower(state s) const { return s.max + std::log(s.sum); }
};
TEST(negative_controls, a_bug_beside_a_large_identity) {
  EXPECT_TRUE(falls(check_laws<float>(max_sum_least{}, algebra()), "identity + identity"));
}

/// What no case could ask is not said to hold.
struct acos_of_least {
  double identity() const { return 1; }
  double operator()(double a, double b) const { return std::min(a, b); }
  double lower(double s) const { return std::acos(s); }
};
TEST(negative_controls, a_reference_that_nothing_was_held_to) {
  const report r = check_laws(acos_of_least{}, std::vector{1.0}, law_options{.cases = few}, [](auto) { return 42.0; });
  ASSERT_NE(r.find("fold = reference"), nullptr);
  EXPECT_NE(r.find("fold = reference")->result, finding::outcome::holds) << r;
}

/// A sum whose calls are counted by the threads that make them.
struct watched : plus<std::int64_t> {
  static inline std::mutex one_at_a_time;
  static inline std::set<std::thread::id> threads;
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    thread_local const bool is_new = [] {
      const std::lock_guard lock(one_at_a_time);
      return threads.insert(std::this_thread::get_id()).second;
    }();
    static_cast<void>(is_new);
    return a + b;
  }
};
TEST(negative_controls, threads_are_really_used) {
  EXPECT_TRUE(check_laws<std::int64_t>(watched{}).passed());
  EXPECT_GT(watched::threads.size(), 1U);
}

}  // namespace
}  // namespace regroup::laws

// SPDX-License-Identifier: Apache-2.0
// States of every kind: integers, arrays, infinities with a meaning, strings, vectors, classes with nothing public but ==.
#include <algorithm>
#include <string>
#include <vector>

#include "holds.hpp"

namespace regroup::laws {
namespace {

struct longest_run {
  struct state {
    int prefix, suffix, best, length;
  };
  constexpr state identity() const { return {}; }
  constexpr state lift(char b) const {
    const int one = b != 0 ? 1 : 0;
    return {one, one, one, 1};
  }
  constexpr state operator()(state a, state b) const {
    return {a.prefix == a.length ? a.length + b.prefix : a.prefix,
            b.suffix == b.length ? b.length + a.suffix : b.suffix, std::max({a.best, b.best, a.suffix + b.prefix}),
            a.length + b.length};
  }
  constexpr int lower(state s) const { return s.best; }
};
TEST(states, longest_run) { EXPECT_TRUE(holds(check_laws(longest_run{}))); }

struct matrix_product {
  struct state {
    float a[2][2];
  };
  state identity() const { return {{{1, 0}, {0, 1}}}; }
  state operator()(const state& x, const state& y) const {
    state z{};
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) z.a[i][j] = x.a[i][0] * y.a[0][j] + x.a[i][1] * y.a[1][j];
    }
    return z;
  }
};
TEST(states, matrices) { EXPECT_TRUE(holds(check_laws(matrix_product{}))); }

struct min_plus {
  struct state {
    double a[2][2];
  };
  static constexpr double far = std::numeric_limits<double>::infinity();
  state identity() const { return {{{0, far}, {far, 0}}}; }
  state operator()(const state& x, const state& y) const {
    state z{};
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) z.a[i][j] = std::min(x.a[i][0] + y.a[0][j], x.a[i][1] + y.a[1][j]);
    }
    return z;
  }
};
TEST(states, shortest_paths) { EXPECT_TRUE(holds(check_laws(min_plus{}))); }

struct concatenation {
  std::string identity() const { return {}; }
  std::string operator()(std::string a, const std::string& b) const { return a + b; }
};
TEST(states, strings) { EXPECT_TRUE(holds(check_laws(concatenation{}))); }

struct polynomial {  // coefficients of a run-time degree
  std::vector<double> identity() const { return {}; }
  std::vector<double> operator()(std::vector<double> a, const std::vector<double>& b) const {
    if (a.size() < b.size()) a.resize(b.size(), -0.0);
    for (std::size_t i = 0; i < b.size(); ++i) a[i] += b[i];
    return a;
  }
};
TEST(states, vectors) { EXPECT_TRUE(holds(check_laws(polynomial{}))); }

/// A class that shows nothing but ==.
struct closed {
  class state {
   public:
    state() = default;
    explicit state(int x) : x_(x) {}
    bool operator==(const state&) const = default;
    [[nodiscard]] state larger(const state& other) const { return x_ < other.x_ ? other : *this; }

   private:
    int x_ = std::numeric_limits<int>::min();
  };
  state identity() const { return {}; }
  state lift(int x) const { return state(x); }
  state operator()(const state& a, const state& b) const { return a.larger(b); }
};
TEST(states, states_without_members) { EXPECT_TRUE(holds(check_laws(closed{}))); }

}  // namespace
}  // namespace regroup::laws

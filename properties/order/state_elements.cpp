// SPDX-License-Identifier: Apache-2.0
// Elements that are states themselves, of any number of words, whose words are moved apart before they are combined: they are
// folded in the same order as other elements, at any length, wherever they lie.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "reference.hpp"
#include "regroup/host/columns.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/members.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

namespace {

using regroup::members::tie;

template <class T>
struct two {
  T a, b;
};
template <class T>
struct three {
  T a, b, c;
};
template <class T>
struct four {
  T a, b, c, d;
};
template <class T>
struct eight {
  T a, b, c, d, e, f, g, h;
};
struct six_of_several_types {
  float a;
  std::int32_t b;
  std::uint32_t c;
  float d, e;
  std::int32_t f;
};
struct number_and_position {
  float a;
  std::int64_t b;
};
struct three_of_several_sizes {  // each at the beginning of eight bytes
  std::int64_t a;
  std::int32_t b;
  double c;
};
struct two_in_one_word {
  std::int32_t a, b;
  double c;
};
struct beside_padding {  // that has no name
  char a, b;
  int : 32;
  int c;
};
#pragma pack(push, 2)
struct packed {
  char a;
  std::int32_t b;
};
#pragma pack(pop)
struct over_two_words {
  packed p;
  std::int32_t c, d;
};
static_assert(regroup::host::words_of<two_in_one_word>() == 1);
static_assert(regroup::host::words_of<beside_padding>() == 1 && regroup::host::words_of<over_two_words>() == 1);

/// Mixes every member of the left state with another of the right one: neither associative nor commutative, so that every tree
/// has a state of its own. The identity, and nothing else, begins with 0. Members are whole numbers that a float has.
template <class State>
struct mixing {
  static constexpr bool is_exact = true;
  State identity() const { return {}; }
  State operator()(State left, State right) const {
    State mixed = right;
    const auto x = tie(left), y = tie(right), z = tie(mixed);
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      constexpr std::size_t n = sizeof...(K);
      const bool mixes = left.a != 0;
      ((std::get<K>(z) = mixes ? mix(std::get<K>(x), std::get<(K + 1) % n>(y), 2 * K + 3, K == 0)
                               : std::get<K>(y)),
       ...);
    }
    (std::make_index_sequence<regroup::members::count<State>()>{});
    return mixed;
  }

 private:
  template <class X, class Y>
  static X mix(X x, Y y, std::uint64_t factor, std::uint64_t odd) {
    const auto bits = static_cast<std::uint32_t>(x) * 0x9e3779b1u ^ static_cast<std::uint32_t>(y * static_cast<Y>(factor));
    return static_cast<X>((bits >> 12 & 0xfffff) | odd);
  }
};

/// The same, told how many elements a state has, which its member c says.
template <class State>
struct appending : mixing<State> {
  State operator()(State left, State right) const {
    State both = mixing<State>::operator()(left, right);
    both.c = left.c + right.c;
    return both;
  }
  State append(std::int64_t n, State s, State x) const {
    State more = (*this)(s, x);
    more.b += static_cast<decltype(s.b)>(n != static_cast<std::int64_t>(s.c));
    return more;
  }
};

template <class State>
bool same(const State& left, const State& right) {
  return tie(left) == tie(right);
}
template <class State>
bool same(const std::vector<State>& ys, const reference::operands<State>& expected) {
  if (ys.size() != expected.size()) return false;
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (!same(ys[i], expected[i].value_or(State{}))) return false;
  }
  return true;
}

/// n elements at the ends of tiles, of pieces and of what a vector has of these, and anywhere.
template <class State>
std::vector<State> some(std::uint64_t seed) {
  const auto pieces = *rc::gen::element(0, 1, 4, 8, 16, 128, 150);
  const auto more = *rc::gen::inRange(-2, 35);
  std::vector<State> xs(static_cast<std::size_t>(std::max(0, 32 * pieces + more)));
  const auto number = [&seed] { return (seed = seed * 6364136223846793005u + 1) >> 44; };
  for (auto& x : xs) {
    std::apply([&](auto&... part) { ((part = static_cast<std::remove_cvref_t<decltype(part)>>(number())), ...); }, tie(x));
    x.a = static_cast<decltype(x.a)>(number() | 1);
  }
  return xs;
}

template <class M, class State>
void expect_order(const M& m, std::vector<State> xs) {
  const reference::operands<State> operands(xs.begin(), xs.end());
  const State all = reference::reduce(m, operands).value_or(State{});
  const std::deque<State> apart(xs.begin(), xs.end());
  RC_ASSERT(same(regroup::reduce(regroup::par, xs, m), all));
  RC_ASSERT(same(regroup::reduce(regroup::seq, apart, m), all));

  auto expected = reference::inclusive_scan(m, operands);
  std::vector<State> ys(xs.size());
  regroup::inclusive_scan(regroup::par, xs, ys, m);
  RC_ASSERT(same(ys, expected));
  regroup::inclusive_scan(regroup::seq, apart, ys, m);
  RC_ASSERT(same(ys, expected));
  ys = xs;
  regroup::inclusive_scan(regroup::seq, ys, ys, m);
  RC_ASSERT(same(ys, expected));
  expected = reference::exclusive_scan(m, operands);
  regroup::exclusive_scan(regroup::par, xs, xs, m);
  RC_ASSERT(same(xs, expected));
}

template <class State>
class state_elements : public testing::Test {};
using states = testing::Types<two<std::uint32_t>, three<float>, six_of_several_types, eight<std::int32_t>, two<double>,
                              four<std::uint64_t>, number_and_position, three_of_several_sizes>;
TYPED_TEST_SUITE(state_elements, states);

TYPED_TEST(state_elements, fold_in_the_order_of_any_others) {
  static_assert(regroup::host::words_of<TypeParam>() == regroup::index{regroup::members::count<TypeParam>()});
  EXPECT_TRUE(rc::check("reduce, and scans there and in place, are the reference's", [](std::uint64_t seed) {
    expect_order(mixing<TypeParam>{}, some<TypeParam>(seed));
  }));
}

TEST(state_elements_appended, are_told_how_many_there_are) {
  using state = three<std::uint32_t>;
  EXPECT_TRUE(rc::check("of any length", [](std::uint64_t seed) {
    auto xs = some<state>(seed);
    for (auto& x : xs) x.c = 1;
    expect_order(appending<state>{}, xs);
  }));
}

}  // namespace

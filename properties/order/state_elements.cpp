// SPDX-License-Identifier: Apache-2.0
// Elements that are states themselves, of as many words as you like, which no longer stand side by side when they are combined:
// the order of any others, at any length, wherever they lie.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <deque>
#include <type_traits>
#include <vector>

#include "reference.hpp"
#include "regroup/host/columns.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/members.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

namespace {

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
struct five {
  T a, b, c, d, e;
};
template <class T>
struct eight {
  T a, b, c, d, e, f, g, h;
};

/// Mixes every member of the left state with another of the right one: neither associative nor commutative, so that every tree
/// has a state of its own. The identity, and nothing else, begins with 0.
template <class State>
struct mixing {
  static constexpr bool is_exact = true;
  State identity() const { return {}; }
  State operator()(State left, State right) const {
    using regroup::members::tie;
    State mixed = right;
    const auto x = tie(left), y = tie(right), z = tie(mixed);
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      constexpr std::size_t n = sizeof...(K);
      const bool mixes = left.a != 0;
      ((std::get<K>(z) = mixes ? std::get<K>(x) * 0x9e3779b1u ^ std::get<(K + 1) % n>(y) * (2 * K + 3) : std::get<K>(y)), ...);
    }
    (std::make_index_sequence<regroup::members::count<State>()>{});
    mixed.a |= 1;
    return mixed;
  }
};

template <class State>
bool same(const State& left, const State& right) {
  return regroup::members::tie(left) == regroup::members::tie(right);
}
template <class State>
bool same(const std::vector<State>& ys, const reference::operands<State>& expected) {
  if (ys.size() != expected.size()) return false;
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (!same(ys[i], expected[i].value_or(State{}))) return false;
  }
  return true;
}

template <class State>
class state_elements : public testing::Test {};
using states = testing::Types<two<std::uint32_t>, three<std::uint32_t>, four<std::uint32_t>, five<std::uint32_t>,
                              eight<std::uint32_t>, two<std::uint64_t>, three<std::uint64_t>, four<std::uint64_t>,
                              five<std::uint64_t>>;
TYPED_TEST_SUITE(state_elements, states);

TYPED_TEST(state_elements, fold_in_the_order_of_any_others) {
  using member = decltype(TypeParam::a);
  static_assert(regroup::host::words_of<TypeParam>() == regroup::index{sizeof(TypeParam) / sizeof(member)});
  const mixing<TypeParam> m;
  const bool holds = rc::check("reduce, and scans there and in place, are the reference's", [&](std::uint64_t seed) {
    // Ends of tiles, of pieces and of what a vector has of these, and anything.
    const auto n = *rc::gen::map(
        rc::gen::tuple(rc::gen::element(0, 1, 4, 8, 16, 128, 150), rc::gen::inRange(0, 70), rc::gen::inRange(-2, 3)),
        [](const auto& cut) { return std::max(0, 32 * std::get<0>(cut) + std::get<1>(cut) % 35 + std::get<2>(cut)); });
    std::vector<TypeParam> xs(static_cast<std::size_t>(n));
    for (auto& x : xs) {
      std::apply([&](auto&... part) { ((part = static_cast<member>((seed = seed * 6364136223846793005u + 1) >> 20)), ...); },
                 regroup::members::tie(x));
      x.a |= 1;
    }
    const reference::operands<TypeParam> operands(xs.begin(), xs.end());
    RC_ASSERT(same(regroup::reduce(regroup::par, xs, m), reference::reduce(m, operands).value_or(TypeParam{})));
    const std::deque<TypeParam> apart(xs.begin(), xs.end());
    RC_ASSERT(same(regroup::reduce(regroup::seq, apart, m), reference::reduce(m, operands).value_or(TypeParam{})));

    auto expected = reference::inclusive_scan(m, operands);
    std::vector<TypeParam> ys(xs.size());
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
  });
  EXPECT_TRUE(holds);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Floating-point monoids, whose bits depend on the tree: every executor gives the bits of the naive transcription, with
// zeros of both signs, denormals, infinities and NaN among the elements. All NaNs are one.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cases.hpp"
#include "digest.hpp"
#include "reference.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/reduce.hpp"
#include "regroup/stream.hpp"

namespace {

using order::digest_of;
using order::kind;
using regroup::state_of;

template <class M, class X>
reference::operands<state_of<M>> lifted(const M& m, const std::vector<X>& xs) {
  reference::operands<state_of<M>> states;
  for (const X& x : xs) states.emplace_back(regroup::lift(m, x));
  return states;
}

template <class M, class X>
reference::operand<state_of<M>> transcribed(const M& m, const std::vector<X>& xs, std::int64_t first) {
  auto states = lifted(m, xs);
  states.insert(states.begin(), static_cast<std::size_t>(first), std::nullopt);
  return reference::reduce(m, states);
}

/// log_sum_exp's tile: the maximum's leaf, then plus's leaf over the weights.
template <class Real>
reference::operand<state_of<regroup::log_sum_exp<Real>>> transcribed(const regroup::log_sum_exp<Real>& m,
                                                                     const std::vector<Real>& xs, std::int64_t first) {
  const auto lift_tile = [](const std::vector<Real>& tile) -> state_of<regroup::log_sum_exp<Real>> {
    const regroup::maximum<Real> max;
    const Real top = *reference::lane_leaf(max, lifted(max, tile)) + Real(0);
    reference::operands<Real> weights;
    for (const Real x : tile) {
      const Real none = -std::numeric_limits<Real>::infinity();
      weights.push_back(x == none ? Real(0) : x == top ? Real(1) : regroup::math::decay(x - top));
    }
    return {top, *reference::lane_leaf(regroup::plus<Real>{}, weights)};
  };
  reference::operands<Real> positions(static_cast<std::size_t>(first));
  positions.insert(positions.end(), xs.begin(), xs.end());
  return reference::reduce_tiles(m, positions, lift_tile);
}

template <class M, class X>
std::uint64_t bits(const M& m, const std::vector<X>& xs, std::int64_t first = 0) {
  return digest_of(regroup::lower(m, transcribed(m, xs, first).value_or(m.identity())));
}

constexpr kind kinds[] = {kind::plain, kind::wide, kind::special};

template <class X>
struct as_it_is {
  std::vector<X> operator()(kind k, std::int64_t n) const {
    return order::numbers<X>(k, n, static_cast<std::uint64_t>(n) + 1);
  }
};
struct as_maps {
  std::vector<regroup::affine_map<float>> operator()(kind k, std::int64_t n) const {
    std::vector<regroup::affine_map<float>> maps;
    for (const float x : as_it_is<float>{}(k, n)) maps.push_back({x * 0.125f, 1 - x});
    return maps;
  }
};

template <class M, class Elements>
void every_way(const M& m, const Elements& elements) {
  for (const kind k : kinds) {
    for (const std::int64_t n : {0, 1, 2, 31, 33, 127, 129, 300, 1000, 4095, 4096, 4097, 12'321, 50'000}) {
      const auto xs = elements(k, n);
      const auto expected = bits(m, xs);
      order::for_some_executors([&](const auto& ex, const std::string& name) {
        EXPECT_EQ(digest_of(regroup::reduce(ex, xs, m)), expected) << name << ", n = " << n << ", kind " << int(k);
      });
      for (const std::int64_t first : {77, 4090}) {
        regroup::accumulator<M, typename decltype(elements(k, n))::value_type> acc{m, first};
        acc.push(xs);
        EXPECT_EQ(digest_of(acc.value()), bits(m, xs, first)) << "from " << first << ", n = " << n;
      }
    }
    for (const std::int64_t n : {1, 5, 37, 130, 300, 4100}) {
      constexpr std::int64_t rows = 21;
      const auto xs = elements(k, rows * n);
      std::vector<regroup::answer_of<M>> by_rows(rows);
      std::vector<regroup::answer_of<M>> by_columns(rows);
      using element = const typename decltype(elements(k, n))::value_type;
      regroup::reduce_rows(regroup::par, regroup::view<element>(xs.data(), {rows, n}), by_rows, m);
      regroup::reduce_rows(regroup::par, regroup::view<element>(xs.data(), {rows, n}, {1, rows}), by_columns, m);
      for (std::int64_t r = 0; r < rows; ++r) {
        auto column = std::vector(xs.begin(), xs.begin() + n);
        for (std::int64_t i = 0; i < n; ++i)
          column[static_cast<std::size_t>(i)] = xs[static_cast<std::size_t>(i * rows + r)];
        const auto at = static_cast<std::size_t>(r);
        EXPECT_EQ(digest_of(by_rows[at]), bits(m, std::vector(xs.begin() + r * n, xs.begin() + (r + 1) * n)))
            << "row " << r << " of " << n;
        EXPECT_EQ(digest_of(by_columns[at]), bits(m, column)) << "column " << r << " of " << n;
      }
    }
  }
}

}  // namespace

TEST(floats, plus) { every_way(regroup::plus<float>{}, as_it_is<float>{}); }
TEST(floats, log_sum_exp) { every_way(regroup::log_sum_exp<float>{}, as_it_is<float>{}); }
TEST(floats, moments) { every_way(regroup::moments<double>{}, as_it_is<double>{}); }
TEST(floats, affine) { every_way(regroup::affine<float>{}, as_maps{}); }

// SPDX-License-Identifier: Apache-2.0
// Every shipped monoid over special and random elements: the identity, commutativity and exactness, bitwise.
#include <span>

#include "../../examples/operators.hpp"
#include "fold.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/compensated.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/monoids/fanout.hpp"
#include "regroup/monoids/histogram.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/mean.hpp"
#include "regroup/monoids/minmax.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/monoids/scaled_product.hpp"
#include "regroup/monoids/softmax_mean.hpp"
#include "regroup/monoids/top_k.hpp"

namespace {

using namespace monoids;

constexpr auto as_is = [](auto x, std::int64_t) { return x; };
constexpr auto as_integer = [](double x, std::int64_t i) {
  return x >= -100 && x <= 100 ? static_cast<int>(x) : static_cast<int>(-i << 26);
};
constexpr auto as_indexed = [](auto x, std::int64_t i) {
  return regroup::indexed<decltype(x)>{x, i % 40};
};  // some twice

template <class Real>
void expect_real_monoids() {
  const auto xs = elements<Real>(as_is);
  expect_bitwise_laws(regroup::plus<Real>{}, xs);
  expect_bitwise_laws(regroup::multiplies<Real>{}, xs);
  expect_bitwise_laws(regroup::scaled_product<Real>{}, xs);
  expect_bitwise_laws(regroup::minimum<Real>{}, xs);
  expect_bitwise_laws(regroup::maximum<Real>{}, xs);
  expect_bitwise_laws(regroup::minmax<Real>{}, xs);
  expect_bitwise_laws(regroup::mean<Real>{}, xs);
  expect_bitwise_laws(regroup::moments<Real>{}, xs);
  expect_bitwise_laws(regroup::log_sum_exp<Real>{}, xs);
  expect_bitwise_laws(regroup::compensated_plus<Real>{}, xs);
  expect_bitwise_laws(regroup::histogram<Real>{-20, 20, 7}, xs);
  expect_bitwise_laws(regroup::fanout{regroup::count{}, regroup::moments<Real>{}, regroup::minimum<Real>{}}, xs);
  const auto placed = elements<Real>(as_indexed);
  expect_bitwise_laws(regroup::argmin<Real>{}, placed);
  expect_bitwise_laws(regroup::argmax<Real>{}, placed);
  expect_bitwise_laws(regroup::top_k<Real>{3}, placed);
  expect_bitwise_laws(regroup::top_k<Real>{0}, placed);
  expect_bitwise_laws(regroup::top_k<Real, 4>{}, placed);
}

}  // namespace

TEST(bitwise_laws, float_monoids) { expect_real_monoids<float>(); }
TEST(bitwise_laws, double_monoids) { expect_real_monoids<double>(); }

TEST(bitwise_laws, affine) {
  // every pair of special coefficients: infinite, NaN or negative a, -0 as b
  const auto values = special_values<float>();
  std::vector<regroup::affine_map<float>> maps;
  for (const float a : values) {
    for (const float b : values) maps.push_back({a, b});
  }
  expect_bitwise_laws(regroup::affine<float>{}, maps);
  expect_bitwise_laws(regroup::affine<double>{}, maps);
  expect_bitwise_laws(regroup::affine<int>{}, elements<double>([](double x, std::int64_t i) {
                        return regroup::affine_map<int>{as_integer(x, i), as_integer(x, i + 9)};
                      }));
}

TEST(bitwise_laws, softmax_mean) {
  using pair = regroup::fixed_vector<float, 2>;
  const auto key = [](float x, std::int64_t i) {
    const auto values = special_values<float>();
    const auto value = [&](std::int64_t k) { return values[static_cast<std::size_t>(k) % values.size()]; };
    return regroup::scored<float, pair>{x, {value(5 * i), value(3 * i + 1)}};
  };
  expect_bitwise_laws(regroup::softmax_mean<float, pair>{}, elements<float>(key));
  expect_bitwise_laws(regroup::softmax_mean<double>{.d = 2}, elements<float>(key));
}

TEST(bitwise_laws, integers_and_truth) {
  const auto xs = elements<double>(as_integer);
  expect_bitwise_laws(regroup::plus<int>{}, xs);
  expect_bitwise_laws(regroup::multiplies<int>{}, xs);
  expect_bitwise_laws(regroup::multiplies<unsigned short>{}, xs);
  expect_bitwise_laws(regroup::plus<std::int64_t>{}, xs);
  expect_bitwise_laws(regroup::minimum<int>{}, xs);
  expect_bitwise_laws(regroup::maximum<std::uint8_t>{}, xs);
  expect_bitwise_laws(regroup::minmax<int>{}, xs);
  expect_bitwise_laws(regroup::bit_and<int>{}, xs);
  expect_bitwise_laws(regroup::bit_or<unsigned>{}, xs);
  expect_bitwise_laws(regroup::bit_xor<signed char>{}, xs);
  expect_bitwise_laws(regroup::any{}, xs);
  expect_bitwise_laws(regroup::all{}, xs);
  expect_bitwise_laws(regroup::count{}, xs);
  expect_bitwise_laws(regroup::argmax<int>{}, elements<double>([](double x, std::int64_t i) {
                        return regroup::indexed<int>{as_integer(x, i), i};
                      }));
}

TEST(bitwise_laws, example_operators) {
  expect_bitwise_laws(examples::longest_run{},
                      std::vector<bool>{true, true, false, true, false, false, true, true, true});
  expect_bitwise_laws(examples::free_monoid<int>{}, std::vector<int>{3, 1, 4});
  expect_bitwise_laws(examples::min_plus{}, std::vector<examples::min_plus::state>{
                                                {1, 2, 3, 4}, {0, -0.0, infinity<double>, 5}, {-1, 7, 2, -0.0}});
  expect_bitwise_laws(examples::recorder{}, std::vector<int>{1, 2, 3});  // the identity; it is not associative
}

// SPDX-License-Identifier: Apache-2.0
// Composition of affine maps does not commute, so these tests also fix which operand is applied first, by a reference.
#include "holds.hpp"

namespace regroup::laws {
namespace {

/// The recurrence itself, from the left, at 0 and at 1: b, then a + b.
template <class T>
struct recurrence {
  affine_map<double> operator()(std::span<const affine_map<T>> xs) const {
    long double a = 1;
    long double b = 0;
    for (const affine_map<T>& x : xs) {
      a *= static_cast<long double>(x.a);
      b = static_cast<long double>(x.a) * b + static_cast<long double>(x.b);
    }
    return {static_cast<double>(a), static_cast<double>(b)};
  }
};

TEST(affine_maps, in_float) { EXPECT_TRUE(holds(check_laws<affine_map<float>>(affine<float>{}, strictly()))); }
TEST(affine_maps, in_double) { EXPECT_TRUE(holds(check_laws<affine_map<double>>(affine<double>{}, strictly()))); }
TEST(affine_maps, of_integers) { EXPECT_TRUE(holds(check_laws<affine_map<int>>(affine<int>{}, strictly()))); }
TEST(affine_maps, are_the_recurrence) {
  const auto tame = [](choices& from) {
    const reals<float> number{-4, 4};
    const float a = number(from);
    return affine_map<float>{a, number(from)};
  };
  EXPECT_TRUE(holds(check_laws(affine<float>{}, tame, strictly(), recurrence<float>{})));
}

}  // namespace
}  // namespace regroup::laws

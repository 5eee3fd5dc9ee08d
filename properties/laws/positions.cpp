// SPDX-License-Identifier: Apache-2.0
// Monoids that remember an element's position, and counts in bins. All are exact.
#include "holds.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/monoids/histogram.hpp"
#include "regroup/monoids/top_k.hpp"

namespace regroup::laws {
namespace {

/// Values that often tie, at positions that often tie as well: a stream may show an element twice.
template <class T>
struct anywhere {
  indexed<T> operator()(choices& from) const { return {arbitrary<T>{}(from), from.integer<index>(0, 20)}; }
};

TEST(positions, argmin_and_argmax) {
  EXPECT_TRUE(holds(check_laws(argmin<float>{}, anywhere<float>{}, strictly())));
  EXPECT_TRUE(holds(check_laws(argmax<double>{}, anywhere<double>{}, strictly())));
  EXPECT_TRUE(holds(check_laws(argmax<int>{}, anywhere<int>{}, strictly())));
}
TEST(positions, top_k) {
  EXPECT_TRUE(holds(check_laws(top_k<float, 3>{}, anywhere<float>{}, strictly())));
  EXPECT_TRUE(holds(check_laws(top_k<double>{5}, anywhere<double>{}, strictly())));
}
TEST(positions, top_none) { EXPECT_TRUE(holds(check_laws(top_k<int>{0}, anywhere<int>{}, strictly()))); }
TEST(positions, histogram) {
  EXPECT_TRUE(holds(check_laws<float>(histogram<float>{-1, 3, 7}, strictly())));
  EXPECT_TRUE(holds(check_laws<double>(histogram<double>{0, 1, 3}, strictly())));
}

}  // namespace
}  // namespace regroup::laws

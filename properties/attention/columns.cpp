// SPDX-License-Identifier: Apache-2.0
// A column of the output has the same bits whatever columns are folded beside it, for any number of queries: it does not matter
// how many packs of columns a kernel takes at a time.
#include "cases.hpp"

namespace {

using cases::index;
using cases::slice;
using cases::tensor;
using regroup::dense;
using regroup::view;

template <class T>
class columns_of : public testing::Test {};
using types = testing::Types<float, double, regroup::float16, regroup::bfloat16>;
TYPED_TEST_SUITE(columns_of, types);

/// Not in fixed point, where a row of values has one scale for all of its columns.
template <class T>
tensor<T> attend(const view<const T>& q, const view<const T>& k, const view<const T>& v) {
  tensor<T> out({q.extent(0), q.extent(1), v.extent(2)});
  regroup::attention(regroup::seq, q, dense(k, v), out.view(), {.narrow_weights = cases::narrows()});
  return out;
}

TYPED_TEST(columns_of, any_neighbours) {
  using T = TypeParam;
  constexpr index keys = 150, d = 20, widest = 200;
  const tensor<T> k = cases::normal<T>({1, keys, d}, 1), v = cases::normal<T>({1, keys, widest}, 2);
  for (const index queries : {1, 2, 3, 5, 8, 12, 13, 40}) {
    const tensor<T> q = cases::normal<T>({1, queries, d}, 3);
    const tensor<T> all = attend<T>(q.view(), k.view(), v.view());
    for (const index width : {1, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 80, 96, 112, 127, 128, 144, 176, 192}) {
      const tensor<T> some = attend<T>(q.view(), k.view(), slice(v.view(), 2, 0, width));
      EXPECT_TRUE(cases::same_bits<T>(some.view(), slice(all.view(), 2, 0, width)))
          << queries << " queries, " << width << " columns";
    }
  }
}

}  // namespace

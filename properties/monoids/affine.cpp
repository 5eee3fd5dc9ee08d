// SPDX-License-Identifier: Apache-2.0
#include "regroup/monoids/affine.hpp"

#include "fold.hpp"

namespace {
using namespace monoids;
using map = regroup::affine_map<float>;
constexpr float inf = infinity<float>;
constexpr float none = not_a_number<float>;

struct row {
  std::vector<map> maps;
  map answer;
};
const std::vector<row> table{
    {{}, {1, 0}},
    {{{2, -0.0F}}, {2, 0}},      // an answer's b is never -0
    {{{2, 1}, {3, 4}}, {6, 7}},  // 3 (2 x + 1) + 4: the first map is applied first
    {{{3, 4}, {2, 1}}, {6, 9}},
    {{{0, 5}, {7, 1}}, {0, 36}},  // a reset forgets
    {{{inf, 1}, {1, 1}}, {inf, 2}},
    {{{1, 1}, {inf, 1}}, {inf, inf}},
    {{{1, 0}, {inf, 1}}, {inf, none}},   // inf 0: no identity, an element with b = +0
    {{{1, -0.0F}, {inf, 1}}, {inf, 1}},  // the identity as an element
    {{{none, 1}, {1, 1}}, {none, 2}},
    {{{1, none}, {0, 1}}, {0, none}},
    {{{1e-45F, 0}, {0.5F, 1}}, {0, 1}},
};
}  // namespace

TEST(affine, special_values) {
  for (const row& r : table)
    EXPECT_TRUE(same(fold(regroup::affine<float>{}, r.maps), r.answer)) << regroup::laws::text_of(r.maps);
}

TEST(affine, is_the_recurrence) {
  std::mt19937_64 draw(2);
  std::vector<regroup::affine_map<int>> maps;
  for (int i = 0; i < 100; ++i) maps.push_back({static_cast<int>(draw()), static_cast<int>(draw())});
  int x = 12345;
  for (const auto& m : maps) x = m(x);
  const auto all = fold(regroup::affine<int>{}, maps);
  EXPECT_EQ(all(12345), x);  // exact: integers wrap
}

TEST(affine, of_long_doubles_keeps_the_sign_of_zero) {
  using map = regroup::affine_map<long double>;
  const regroup::affine<long double> m;
  EXPECT_EQ(m(map{2, 3}, map{4, 5}).b, 17);
  EXPECT_TRUE(std::signbit(m(m.identity(), map{1, -0.0L}).b));
  EXPECT_FALSE(std::signbit(m(m.identity(), map{1, 0.0L}).b));
}

TEST(affine, converts_elements) {
  EXPECT_TRUE(
      same(fold(regroup::affine<double>{}, std::vector<map>{{2, 1}, {3, 4}}), regroup::affine_map<double>{6, 7}));
}

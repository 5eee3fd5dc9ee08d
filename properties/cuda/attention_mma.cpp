// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores, emulated by the documented layouts, of every type: values within the bound of attention by
// definition; the same bits alone, in a batch, in prefill and decode, with any grid, plan and pages; special values.
// (An emulated product rounds once; how a real one rounds is not documented. So the bits are not those of a device.)
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <set>

#include "../attention/reference.hpp"
#include "folds.hpp"
#include "mma_problem.hpp"

namespace {

using cases::slice;
using cases::tensor;
using emulated::machine;
using emulated::on_device;
using emulated::schedule;
using regroup::bfloat16;
using regroup::causal;
using regroup::float16;
using regroup::index;
using regroup::view;
using tensor_cores::attend;
using tensor_cores::problem;
namespace cuda = regroup::cuda;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

template <class T>
struct attention_mma : testing::Test {};
using types = testing::Types<float, float16, bfloat16>;
TYPED_TEST_SUITE(attention_mma, types);

TYPED_TEST(attention_mma, within_the_bound) {
  using T = TypeParam;
  struct extents {
    index heads, key_heads, queries, keys, d, dv;
  };
  cases::worst_ratio worst;
  for (const extents& e :
       {extents{1, 1, 1, 1, 1, 1}, {2, 1, 40, 130, 33, 20}, {1, 1, 5, 1100, 64, 65}, {1, 1, 3, 70, 130, 128}}) {
    const problem<T> p(e.heads, e.key_heads, e.queries, e.keys, e.d, e.dv);
    const auto got = attend(p, causal{});
    for (index h = 0; h < e.heads; ++h) {
      for (index i = 0; i < e.queries; ++i) {
        const index kh = h / (e.heads / e.key_heads);
        const auto see = [&](index j, auto&) { return j <= i + e.keys - e.queries; };
        const auto scale = static_cast<long double>(1 / std::sqrt(static_cast<float>(e.d)));
        const auto expected =
            cases::define(cases::keys_of(p.q.view()[0][h][i], p.k.view()[0][kh], p.v.view()[0][kh], scale, see), e.d, e.dv,
                          0x1p-24, 0x1p-24, 0, cases::narrow_weight_u<T>, cases::of_tensor_cores<T>(true));
        const index row = h * e.queries + i;
        worst.add(expected, got.out.values.data() + row * e.dv, got.lse.values[static_cast<std::size_t>(row)]);
      }
    }
  }
  EXPECT_GT(worst.ratio, 0);
  EXPECT_LE(worst.ratio, 1);
  this->RecordProperty("worst_part_of_the_bound", std::to_string(worst.ratio));
}

TYPED_TEST(attention_mma, scores_as_large_as_they_come) {  // whose frame, times log2 e, would round by more than weights do
  using T = TypeParam;
  for (const float size : {300.0f, std::same_as<T, float16> ? 4e4f : 1e15f}) {  // times keys of the same
    problem<T> p(1, 1, 5, 70, 16, 8);
    for (T& x : p.q.values) x = T(float(x) * size / 3);
    for (T& x : p.k.values) x = T(float(x) * size / 3);
    const auto got = attend(p);
    cases::worst_ratio worst;
    for (index i = 0; i < 5; ++i) {
      const auto expected =
          cases::define(cases::keys_of<T>(p.q.view()[0][0][i], p.k.view()[0][0], p.v.view()[0][0], 0.25L,
                                          [](index, auto&) { return true; }),
                        16, 8, 0x1p-24, 0x1p-24, 0, cases::narrow_weight_u<T>, cases::of_tensor_cores<T>(true));
      worst.add(expected, got.out.values.data() + i * 8, got.lse.values[static_cast<std::size_t>(i)]);
    }
    EXPECT_LE(worst.ratio, 1) << size;
    for (const float x : got.out.values) EXPECT_TRUE(std::isfinite(x)) << size;
  }
}

TYPED_TEST(attention_mma, no_batch_grid_or_schedule_changes_a_bit) {
  if (order::small()) GTEST_SKIP() << "the memory is the same";
  using T = TypeParam;
  constexpr index heads = std::same_as<T, bfloat16> ? 4 : 2;  // for time
  const problem<T> p(heads, heads / 2, 35, 1100, 16, 9);
  const auto all = attend(p, causal{});
  for (auto [name, on] : emulated::machines()) EXPECT_TRUE(same_bits(attend(p, causal{}, on, 3), all)) << name;
  for (const index h : {index{0}, heads - 1}) {
    const auto head = [&](const tensor<T>& x, index of) { return x.view()[0][of]; };
    const auto alone = attend<T>(machine(), head(p.q, h), head(p.k, h / 2), head(p.v, h / 2), causal{});
    EXPECT_TRUE(cases::same_bits<float>(alone.out.view(), all.out.view()[0][h]));
    for (const index i : {0, 13, 34}) {  // decode: the keys up to the query's own
      const index known = 1100 - 34 + i;
      const auto one = attend<T>(machine(), slice(head(p.q, h), 0, i, i + 1), slice(head(p.k, h / 2), 0, 0, known),
                                 slice(head(p.v, h / 2), 0, 0, known), causal{});
      EXPECT_TRUE(cases::same_bits<float>(one.out.view(), slice(all.out.view()[0][h], 0, i, i + 1))) << i;
      EXPECT_TRUE(cases::same_bits<float>(one.lse.view(), slice(all.lse.view()[0][h], 0, i, i + 1))) << i;
    }
  }
}

TYPED_TEST(attention_mma, pages) {
  using T = TypeParam;
  struct sizes {
    index queries, d, dv;
  };
  // Rows of whole pieces of 16 bytes, and two panels of columns; two halves of rows that overlap, and a value apart.
  const index heads = order::small() ? 1 : 2;
  for (const auto& [queries, d, dv] : {sizes{5, 8, 72}, sizes{5, 136, 72}, sizes{130, 64, 64}}) {
    problem<T> p(heads, heads, queries, 210, d, dv);
    if (queries > 5) p.v.view()(0, heads - 1, 77, 3) = T(infinity);
    std::vector<int> table(30);
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), std::mt19937(3));
    tensor<T> k({30, heads, 7, d}), v({30, heads, 7, dv});
    for (index j = 0; j < 210; ++j) {
      const index page = table[static_cast<std::size_t>(j / 7)];
      for (index h = 0; h < heads; ++h) {
        for (index c = 0; c < d; ++c) k.view()(page, h, j % 7, c) = p.k.view()(0, h, j, c);
        for (index c = 0; c < dv; ++c) v.view()(page, h, j % 7, c) = p.v.view()(0, h, j, c);
      }
    }
    machine on;
    const cuda::device_view<const int> pages_of(table.data(), {1, 30});
    const auto got = emulated::attend<T, float, regroup::no_mask, cuda::tensor_arithmetic>(
        on, p.q.view(), cuda::paged(on_device(k), on_device(v), pages_of));
    EXPECT_TRUE(same_bits(got, attend(p))) << d;
  }
}

struct every_third {
  constexpr float operator()(float s, index, index, index query, index key) const {
    return (key + query) % 3 == 0 ? float{regroup::hidden} : s;
  }
};

TYPED_TEST(attention_mma, a_hidden_key_is_the_identity_whatever_it_holds) {
  using T = TypeParam;
  const problem<T> clean(1, 1, 6, 140, 8, 16);
  const auto expected = attend(clean, every_third{});
  for (const float x : {not_a_number, infinity, -infinity, 3e38f}) {
    for (const bool keys_too : {false, true}) {
      problem<T> spoilt = clean;
      for (const index j : {3, 63, 66, 138}) {
        for (index c = 0; c < 16; c += 4) spoilt.v.view()(0, 0, j, c) = T(x);
        for (index c = 0; keys_too && c < 8; ++c) spoilt.k.view()(0, 0, j, c) = T(x);
      }
      const auto got = attend(spoilt, every_third{});
      for (const index i : {0, 3}) {  // to these queries all of them are hidden
        EXPECT_TRUE(cases::same_bits<float>(got.out.view()[0][0][i], expected.out.view()[0][0][i])) << x;
        EXPECT_EQ(cases::bits(got.lse.view()(0, 0, i)), cases::bits(expected.lse.view()(0, 0, i))) << x;
      }
      if (x != 3e38f && !keys_too) {
        for (const index i : {1, 2, 4, 5}) {
          EXPECT_FALSE(std::isfinite(got.out.view()(0, 0, i, 4))) << x;
          EXPECT_EQ(cases::bits(got.out.view()(0, 0, i, 5)), cases::bits(expected.out.view()(0, 0, i, 5))) << x;
        }
      }
      if (order::small()) return;
    }
  }
}

TYPED_TEST(attention_mma, rows_have_the_bits_of_fewer) {  // in halves, beside what is not finite and rows far from 0
  using T = TypeParam;
  for (const index dv : {64, 128}) {  // halves that overlap, and that take turns
    problem<T> all(1, 1, 130, 200, 64, dv), few(1, 1, 6, 200, 64, dv);
    for (const index j : {3, 66, 199}) all.v.view()(0, 0, j, j % dv) = T(j == 66 ? not_a_number : infinity);
    few.k = all.k;
    few.v = all.v;
    constexpr index first = 61;  // rows of either half
    for (index i = 0; i < 6; ++i) {
      for (index c = 0; c < 64; ++c) few.q.view()(0, 0, i, c) = all.q.view()(0, 0, first + i, c);
    }
    for (const index i : {first - 8, first + 5 + 8}) {  // whose scores pass 2^16, in the lanes of rows that have few
      for (index c = 0; c < 64; ++c) {
        all.q.view()(0, 0, i, c) = T(std::copysign(40000.0f, regroup::widen(all.k.view()(0, 0, 10, c))));
      }
    }
    const auto got = attend(all), alone = attend(few);
    for (index i = 0; i < 6; ++i) {
      EXPECT_TRUE(cases::same_bits<float>(got.out.view()[0][0][first + i], alone.out.view()[0][0][i])) << i << ", " << dv;
      EXPECT_EQ(cases::bits(got.lse.view()(0, 0, first + i)), cases::bits(alone.lse.view()(0, 0, i))) << i << ", " << dv;
    }
    if (order::small()) return;
  }
}

TYPED_TEST(attention_mma, infinite_scores_and_no_visible_key) {
  using T = TypeParam;
  problem<T> p(1, 1, 3, 70, 4, 5);
  for (index c = 0; c < 4; ++c) p.q.view()(0, 0, 0, c) = T(1.0f);
  for (index c = 0; c < 4; ++c) p.k.view()(0, 0, 7, c) = T(infinity);
  const auto got = attend(p);
  EXPECT_EQ(got.lse.view()(0, 0, 0), infinity);
  for (index c = 0; c < 5; ++c) EXPECT_TRUE(std::isnan(got.out.view()(0, 0, 0, c)));
  for (index c = 0; c < 4; ++c) p.k.view()(0, 0, 7, c) = T(-infinity);  // as if it were hidden
  const auto lower = attend(p);
  const auto hidden = attend(p, [](auto s, index, index, index, index key) { return key == 7 ? -infinity : s; });
  EXPECT_TRUE(cases::same_bits<float>(lower.out.view()[0][0][0], hidden.out.view()[0][0][0]));
  const auto none = attend(p, [](float, index, index, index, index) { return float{regroup::hidden}; });
  for (const float x : none.out.values) EXPECT_EQ(cases::bits(x), cases::bits(0.0f));
  for (const float x : none.lse.values) EXPECT_EQ(x, -infinity);
}

TEST(attention_mma_of_float, numbers_that_do_not_fit_two_tf32) {
  constexpr float most = std::numeric_limits<float>::max();
  problem<float> p(1, 1, 3, 70, 4, 5);
  for (float& x : p.q.values) x = 1e-38f;
  for (index c = 0; c < 4; ++c) p.k.view()(0, 0, 65, c) = c % 2 == 0 ? most : -most;
  p.k.view()(0, 0, 3, 1) = most;  // a score of 3.4
  p.v.view()(0, 0, 64, 2) = -most;
  const auto got = attend(p);
  cases::worst_ratio worst;
  for (index i = 0; i < 3; ++i) {
    const auto e = cases::define(cases::keys_of<float>(p.q.view()[0][0][i], p.k.view()[0][0], p.v.view()[0][0], 0.5L,
                                                       [](index, auto&) { return true; }),
                                 4, 5, 0x1p-24, 0x1p-24, 0, 0, cases::of_tensor_cores<float>(true));
    worst.add(e, got.out.values.data() + 5 * i, got.lse.view()(0, 0, i));
  }
  EXPECT_LE(worst.ratio, 1);
}

/// The same numbers where no row is whole pieces of 16 bytes.
template <class T>
regroup::view<const T> misplaced(const regroup::view<const T>& x, std::vector<T>& memory) {
  const index rows = x.extent(2), columns = x.extent(3), step = columns + 1;
  memory.assign(static_cast<std::size_t>(x.extent(0) * x.extent(1) * rows * step + 1), T(not_a_number));
  const regroup::view<T> y(memory.data() + 1, x.extents(), {x.extent(1) * rows * step, rows * step, step, 1});
  for (index h = 0; h < x.extent(1); ++h) {
    for (index j = 0; j < rows; ++j) {
      for (index c = 0; c < columns; ++c) y(0, h, j, c) = x(0, h, j, c);
    }
  }
  return {y.data(), y.extents(), y.strides()};
}

TEST(attention_mma_of_16_bits, where_elements_stand_changes_no_bit) {  // copied in pieces, or one by one
  using T = bfloat16;
  struct extents {
    index queries, keys, d, dv;
  };
  for (const extents& e : {extents{3, 1, 8, 8}, {2, 64, 64, 64}, {2, 65, 72, 64}, {70, 130, 40, 136}, {1, 129, 136, 72},
                           {1, 70, 200, 24}, {2, 1030, 16, 8}}) {
    if (order::small() && e.queries * e.keys > 1000) continue;
    problem<T> p(2, 1, e.queries, e.keys, e.d, e.dv);
    p.v.view()(0, 0, e.keys - 1, e.dv - 1) = T(infinity);
    std::vector<T> k, v;
    const auto k_at = misplaced<T>(p.k.view(), k), v_at = misplaced<T>(p.v.view(), v);
    const auto expected = attend<T>(machine(), p.q.view(), k_at, v_at, causal{});
    EXPECT_TRUE(same_bits(attend(p, causal{}), expected)) << e.d << ", " << e.dv;
    EXPECT_TRUE(same_bits(attend<T>(machine(), p.q.view(), k_at, p.v.view(), causal{}), expected)) << e.d << ", " << e.dv;
  }
}

TEST(attention_mma_of_16_bits, a_key_far_below_is_no_hidden_one) {  // and meets infinity with a weight of 0
  using T = bfloat16;
  for (const bool has_far_partner : {false, true}) {
    problem<T> p(1, 1, 16, 70, 64, 64);
    for (index i = 0; i < 16; ++i) p.q.view()(0, 0, i, 0) = T(i == 0 ? 1.7e19f : 0.0f);
    for (index j = 0; j < 70; ++j) p.k.view()(0, 0, j, 0) = T(j == 5 ? -1.7e19f : 0.0f);  // of row 0 -2.9e38
    for (index c = 1; c < 64; ++c) {
      if (has_far_partner) p.q.view()(0, 0, 8, c) = T(std::copysign(40000.0f, regroup::widen(p.k.view()(0, 0, 10, c))));
    }
    p.v.view()(0, 0, 5, 3) = T(infinity);
    machine on;
    const auto got = emulated::attend<T, float, regroup::no_mask, cuda::tensor_arithmetic>(
        on, std::as_const(p).q.view(), cuda::dense(on_device(std::as_const(p).k), on_device(std::as_const(p).v)),
        cuda::attention_options<regroup::no_mask>{.scale = 1.0f});
    EXPECT_TRUE(std::isnan(got.out.view()(0, 0, 0, 3))) << has_far_partner;
    EXPECT_FALSE(std::isfinite(got.out.view()(0, 0, 8, 3))) << has_far_partner;
  }
}

/// Eight lanes at a time, 16 bytes each, have all of the 32 banks.
template <class Leaf>
void expect_no_conflicts() {
  const auto expect_all_banks = [](const auto& place) {
    for (int first = 0; first < 32; first += 8) {
      unsigned banks = 0;
      for (int lane = first; lane < first + 8; ++lane) banks |= 0xfu << place(lane) * 4 % 32;
      EXPECT_EQ(banks, ~0u) << place(first);
    }
  };
  std::set<int> places;
  for (const cuda::mma_buffer& of : {Leaf::q_rows(), Leaf::k_rows(0), Leaf::k_rows(1), Leaf::v_rows(0), Leaf::v_rows(1)}) {
    for (int row = 0; row < of.rows; row += 8) {
      for (int piece = 0; piece < Leaf::pieces; ++piece) {
        expect_all_banks([&](int lane) { return of.place(row + lane % 8, piece); });
        for (int i = 0; i < 8; ++i) EXPECT_TRUE(places.insert(of.place(row + i, piece)).second);
      }
      expect_all_banks([&](int lane) { return of.place(row + lane / Leaf::pieces, lane % Leaf::pieces); });  // as it is staged
    }
  }
  EXPECT_EQ(*places.begin(), 0);
  EXPECT_EQ(*places.rbegin(), static_cast<int>(places.size()) - 1);
  EXPECT_EQ(static_cast<int>(places.size()), Leaf::held);
}
TEST(attention_mma_of_16_bits, no_bank_of_shared_memory_is_asked_twice) {
  expect_no_conflicts<cuda::mma16_leaf<bfloat16, regroup::no_mask, cuda::mma_shape<8>>>();
  expect_no_conflicts<cuda::mma16_leaf<bfloat16, regroup::no_mask, cuda::mma_shape<16>>>();
  expect_no_conflicts<cuda::mma16_leaf<bfloat16, regroup::no_mask, cuda::mma_shape<8, 2>>>();
  expect_no_conflicts<cuda::mma16_leaf<bfloat16, regroup::no_mask, cuda::mma_shape<16, 2>>>();
}

}  // namespace

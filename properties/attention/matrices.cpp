// SPDX-License-Identifier: Apache-2.0
// What AMX's products of bfloat16 compute (src/attention_tile_v4_amx.cpp), compared bit by bit with scalar code. It is observed
// in the score of a single key, which is its logsumexp, and in sums of values under equal weights.
#include <cstring>

#include "cases.hpp"

namespace {

using cases::index;
using regroup::bfloat16;
using regroup::par;
using regroup::view;

bool has_matrices() { return cases::is_on({"x86-64-v4-amx"}); }

float flushed(float x) { return std::abs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }
float widened(bfloat16 x) { return flushed(widen(x)); }

/// sum + a b over 32 terms at a time: even and odd ones in chains of their own.
template <class A, class B>
float product(index n, const A& a, const B& b, float sum) {
  for (index first = 0; first < n; first += 32) {
    float chain[2] = {0, 0};
    for (index i = first; i < std::min(n, first + 32); ++i) chain[i % 2] = flushed(std::fma(a(i), b(i), chain[i % 2]));
    sum = flushed(sum + flushed(chain[0] + chain[1]));
  }
  return sum;
}

TEST(matrices, a_score_is_two_chains_over_32_columns) {
  if (!has_matrices()) GTEST_SKIP() << "for the target x86-64-v4-amx";
  for (const index d : {1, 2, 15, 31, 32, 33, 64, 80, 128, 200}) {
    for (const double width : {1.0, 0x1p-62, 0x1p+60}) {  // products about 1, about the smallest normal number, huge
      const auto q = cases::normal<bfloat16>({1, 50, d}, static_cast<unsigned>(d), width);
      const auto k = cases::normal<bfloat16>({1, 1, d}, static_cast<unsigned>(d) + 1, width);
      const auto v = cases::normal<bfloat16>({1, 1, 3}, 3);
      for (const float scale : {1.0f, 0.125f, 0.3f, -0.7f}) {
        const auto found = cases::attend<bfloat16>(par, q.view(), dense(k.view(), v.view()), {.scale = scale});
        for (index i = 0; i < 50; ++i) {
          const float s = product(
              d, [&](index c) { return widened(k.values[static_cast<std::size_t>(c)]); },
              [&](index c) { return widened(q.values[static_cast<std::size_t>(i * d + c)]); }, 0.0f);
          ASSERT_EQ(found.lse.values[static_cast<std::size_t>(i)], s * scale) << "d " << d << ", query " << i;
        }
      }
    }
  }
}

TEST(matrices, values_are_summed_in_two_chains_over_32_keys) {
  if (!has_matrices()) GTEST_SKIP() << "for the target x86-64-v4-amx";
  for (const index keys : {1, 2, 16, 32, 64, 128, 512, 1024}) {
    for (const index queries : {1, 17, 40}) {
      const cases::tensor<bfloat16> q({1, queries, 8});
      const auto k = cases::normal<bfloat16>({1, keys, 8}, 1);
      for (const index dv : {1, 16, 33, 64}) {
        const auto v = cases::normal<bfloat16>({1, keys, dv}, static_cast<unsigned>(dv));
        const auto found = cases::attend<bfloat16, float>(par, q.view(), dense(k.view(), v.view()));
        for (index i = 0; i < queries * dv; ++i) {
          const float sum = product(
              keys, [](index) { return 1.0f; },
              [&](index j) { return widened(v.values[static_cast<std::size_t>(j * dv + i % dv)]); }, 0.0f);
          ASSERT_EQ(found.out.values[static_cast<std::size_t>(i)], sum / static_cast<float>(keys))
              << keys << " keys, query " << i / dv << ", column " << i % dv;
        }
      }
    }
  }
}

}  // namespace

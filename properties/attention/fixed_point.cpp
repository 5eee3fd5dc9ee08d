// SPDX-License-Identifier: Apache-2.0
// The contract of attention in fixed point against its transcription (fixed_point.hpp), for shapes, masks and rows of any
// finite size. Bitwise.
#include "fixed_point.hpp"

namespace {

using namespace fixed_points;
using cases::index;

template <class T>
class fixed_point : public where_it_is<T> {};
TYPED_TEST_SUITE(fixed_point, types);

TYPED_TEST(fixed_point, lengths_around_every_edge) {
  unsigned seed = 1;
  for (const index keys : {1, 2, 3, 63, 64, 65, 127, 1023, 1024, 1025, 2049, 2500}) {
    for (const index queries : {1, 5, 33}) compare(problem<TypeParam>({1, 1, queries, keys, 5, 3}, seed += 3));
    compare(problem<TypeParam>({1, 1, 3, keys, 64, 32}, seed += 3));
  }
}

TYPED_TEST(fixed_point, queries_around_the_width_of_a_block) {
  unsigned seed = 200;
  for (const index queries : {1, 2, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 70, 129}) {
    compare(problem<TypeParam>({2, 1, queries, 130, 24, 17}, seed += 3));
  }
}

TYPED_TEST(fixed_point, extents_of_heads_and_values) {
  unsigned seed = 300;
  for (const index d : {1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 64, 65, 80, 128}) {
    for (const index queries : {1, 5, 40}) {
      compare(problem<TypeParam>({1, 1, queries, 100, d, 6}, seed += 3));
      compare(problem<TypeParam>({1, 1, queries, 100, 6, d}, seed += 3));
      compare(problem<TypeParam>({1, 1, queries, 70, d, d}, seed += 3));
    }
  }
}

TYPED_TEST(fixed_point, grouped_heads) {
  for (const index queries : {1, 5, 16, 40}) {
    compare(problem<TypeParam>({6, 2, queries, 200, 20, 12}, 400));
    compare(problem<TypeParam>({4, 4, queries, 200, 20, 12}, 410));
    compare(problem<TypeParam>({33, 1, queries, 90, 8, 8}, 420));
  }
}

TYPED_TEST(fixed_point, scores_that_spread_so_that_maxima_grow) {
  compare(problem<TypeParam>({2, 2, 40, 2500, 16, 6}, 500, 4));
  compare(problem<TypeParam>({2, 1, 5, 2500, 33, 7}, 510, 4));
  problem<TypeParam> rising({1, 1, 40, 1500, 8, 5}, 520);  // in every tile, by far and by little
  for (index i = 0; i < 40; ++i) rising.q.view()(0, i, 0) = TypeParam(i % 2 == 0 ? 2.0f : 0.01f);
  for (index j = 0; j < 1500; ++j) rising.k.view()(0, j, 0) = TypeParam(static_cast<float>(j) / 16);
  compare(rising);
}

TYPED_TEST(fixed_point, causal) {
  const regroup::attention_mask bottom_right = regroup::causal{};
  compare(problem<TypeParam>({2, 1, 70, 1100, 8, 5}, 600), bottom_right, causal_from(1100 - 70));
  compare(problem<TypeParam>({2, 2, 70, 50, 33, 5}, 610), bottom_right, causal_from(50 - 70));  // the first see nothing
  compare(problem<TypeParam>({2, 1, 70, 1100, 8, 5}, 620), regroup::causal{.corner = regroup::top_left},
          causal_from(0));
  compare(problem<TypeParam>({2, 1, 5, 1030, 8, 5}, 630), bottom_right, causal_from(1030 - 5));
  compare(problem<TypeParam>({1, 1, 200, 200, 16, 16}, 640), bottom_right, causal_from(0));
}

TYPED_TEST(fixed_point, windows_begin_inside_tiles) {
  for (const index left : {0, 10, 64, 101}) {
    compare(problem<TypeParam>({2, 1, 70, 1300, 8, 5}, 650), regroup::window{left, 0},
            [&](float s, index, index i, index j) {
              const index centre = i + 1300 - 70;
              return j <= centre && j >= centre - left ? s : -infinity;
            });
  }
}

TYPED_TEST(fixed_point, masks_of_any_kind) {
  compare(
      problem<TypeParam>({2, 2, 9, 300, 8, 5}, 700),
      [](auto score, index, index head, index query, index key) {
        return (key + query) % 3 == head ? score : regroup::hidden;
      },
      [](float s, index h, index i, index j) { return (j + i) % 3 == h ? s : -infinity; });
  std::vector<char> seen(2300, 0);  // whole tiles and leaves are hidden
  for (std::size_t j = 0; j < seen.size(); ++j) seen[j] = j % 5 == 0 && j / 128 % 2 == 0 && j / 1024 != 1;
  const auto bias = cases::normal<float>({2, 40, 1}, 3, 5);
  compare(problem<TypeParam>({2, 2, 40, 2300, 8, 5}, 710),
          regroup::boolean(view<const char>(seen)) & regroup::additive(bias.view()),
          [&](float s, index h, index i, index j) {
            return seen[static_cast<std::size_t>(j)] ? s + bias.view()(h, i, 0) : -infinity;
          });
}

TYPED_TEST(fixed_point, scales_and_lengths) {
  const problem<TypeParam> p({2, 1, 40, 1300, 17, 9}, 800);
  for (const float scale : {1.0f, 0.3f, -0.7f, 0.0f}) {
    compare(p, p.answer({.scale = scale}), everything, scale, 1300);
  }
  for (const int known : {1, 64, 77, 1030}) {
    const std::vector<int> lengths = {known};
    const auto got = cases::attend<TypeParam, float>(par, p.q.view(), dense(p.k.view(), p.v.view(), lengths),
                                                     {.scale = 0.25, .mask = regroup::causal{}});
    compare(p, got, causal_from(known - 40), 0.25f, known);
  }
}

TYPED_TEST(fixed_point, rows_of_zeros) {
  for (const index queries : {1, 5, 40}) {
    problem<TypeParam> p({2, 1, queries, 1200, 8, 5}, 900);
    for (const index i : {0, 7, 16, 39}) {
      if (i < queries) fill(p.q, i, 0);
    }
    for (const index j : {0, 1, 64, 77, 128, 1199}) fill(p.k, j, j % 2 == 0 ? 0.0f : -0.0f);
    for (const index j : {0, 3, 65, 78, 1198}) fill(p.v, j, 0);
    for (index j = 128; j < 192; ++j) fill(p.v, j, 0);  // a tile that adds nothing
    for (index j = 1024; j < 1088; ++j) fill(p.k, j, 0);
    compare(p);
    compare(p, regroup::causal{}, causal_from(1200 - queries));
  }
  for (int which = 0; which < 3; ++which) {
    problem<TypeParam> p({1, 1, 40, 100, 8, 5}, 910);
    tensor<TypeParam>& x = which == 0 ? p.q : which == 1 ? p.k : p.v;
    std::ranges::fill(x.values, TypeParam(0.0f));
    compare(p);
  }
}

TYPED_TEST(fixed_point, rows_of_very_different_sizes) {
  for (const index queries : {5, 40}) {
    problem<TypeParam> p({1, 1, queries, 300, 9, 7}, 950);
    for (index j = 0; j < 300; ++j) {
      multiply(p.v, j, std::ldexp(1.0f, static_cast<int>(j * 7 % 19) - 9));
      multiply(p.k, j, std::ldexp(1.0f, static_cast<int>(j * 5 % 13) - 11));
    }
    for (index i = 0; i < queries; ++i) multiply(p.q, i, std::ldexp(1.0f, static_cast<int>(i * 5 % 11) - 9));
    compare(p);
  }
}

}  // namespace

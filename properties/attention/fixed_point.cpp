// SPDX-License-Identifier: Apache-2.0
// Attention in fixed point (attention_options::fixed_point) against a naive transcription of its contract: one query
// at a time, one key at a time, sums of integers in 64 bits. Bitwise; then its error on inputs that are hard for it.
#include <functional>
#include <iostream>
#include <optional>

#include "reference.hpp"

namespace {

using cases::index;
using cases::tensor;
using regroup::dense;
using regroup::par;
using regroup::view;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr index leaf_keys = 1024, tile_keys = 64;

using mean = regroup::softmax_mean<float>;
using state = std::optional<mean::state>;

state perfect(const mean& m, const std::vector<state>& leaves, std::size_t first, std::size_t count) {
  if (first >= leaves.size()) return std::nullopt;
  if (count == 1) return leaves[first];
  const state a = perfect(m, leaves, first, count / 2);
  const state b = perfect(m, leaves, first + count / 2, count / 2);
  return a && b ? state(m(*a, *b)) : a ? a : b;
}

/// A row as integers times a scale, if it has them, and as numbers.
struct row {
  std::vector<float> numbers;
  std::vector<std::int32_t> integers;
  float scale = 0;
  bool is_fixed = true;
};

/// x / size in units of 1 / most.
row rounded(std::vector<float> x, float size, float most) {
  row r;  // of zeros
  r.integers.assign(x.size(), 0);
  r.numbers = std::move(x);
  if (std::ranges::all_of(r.numbers, [](float number) { return number == 0; })) return r;
  r.is_fixed = size >= 0x1p-45f && size <= 0x1p+45f;
  if (!r.is_fixed) return r;
  const float factor = most / size;
  for (std::size_t c = 0; c < r.numbers.size(); ++c) {
    r.integers[c] = static_cast<std::int32_t>(std::nearbyint(r.numbers[c] * factor));
  }
  r.scale = size / most;
  return r;
}

template <class T>
std::vector<float> widened(const view<const T>& x) {
  std::vector<float> numbers;
  for (index c = 0; c < x.extent(0); ++c) numbers.push_back(widen(x(c)));
  return numbers;
}

/// A row of Q or K, by its norm: 16 chains of fma, halved.
template <class T>
row of_norm(const view<const T>& x) {
  std::vector<float> numbers = widened(x);
  float chain[16] = {};
  for (std::size_t c = 0; c < numbers.size(); ++c) chain[c % 16] = std::fma(numbers[c], numbers[c], chain[c % 16]);
  for (std::size_t h = 8; h > 0; h /= 2) {
    for (std::size_t i = 0; i < h; ++i) chain[i] += chain[i + h];
  }
  return rounded(std::move(numbers), std::sqrt(chain[0]), 32766);
}

/// A row of V, by its largest element.
template <class T>
row of_size(const view<const T>& x) {
  std::vector<float> numbers = widened(x);
  float size = 0;
  for (const float number : numbers) size = regroup::math::max(size, std::abs(number));
  return rounded(std::move(numbers), size, 16383);
}

/// All rows of one head.
template <class T, class Round>
std::vector<row> rows_of(const view<const T>& x, const Round& round) {
  std::vector<row> rows;
  for (index j = 0; j < x.extent(0); ++j) rows.push_back(round(x[j]));
  return rows;
}

/// The exact sum, which 32 bits hold.
float narrowed(std::int64_t sum) {
  EXPECT_EQ(sum, static_cast<std::int32_t>(sum));
  return static_cast<float>(sum);
}

float score_of(const row& q, const row& k, float scale) {
  if (!q.is_fixed || !k.is_fixed) {
    float s = 0;
    for (std::size_t c = 0; c < q.numbers.size(); ++c) s = std::fma(q.numbers[c] * scale, k.numbers[c], s);
    return s;
  }
  std::int64_t sum = 0;
  for (std::size_t c = 0; c < q.integers.size(); ++c) sum += std::int64_t{q.integers[c]} * k.integers[c];
  return (narrowed(sum) * k.scale) * (q.scale * scale);
}

/// e^x, x <= 0.
float weight(float x) {
  const float z = x * 0x1.715476p+0f;
  const float f = std::floor(z);
  float r = z - f;
  if (r + f > z) r = std::nextafter(r, 0.0f);  // rounded down, as vreduceps does; r + f is exact
  float p = std::fma(r, 0x1.b7f74cp-7f, 0x1.abf85ep-5f);
  p = std::fma(p, r, 0x1.ee2452p-3f);
  p = std::fma(p, r, 0x1.62d6c6p-1f);
  p = std::fma(p, r, 1.0f);
  return std::ldexp(p, static_cast<int>(std::max(f, -1000.0f)));
}

/// O = O factor + the weighted values of a tile. `score[j]` is -inf where key j is hidden; w is its weight, below m.
void add_values(const std::vector<float>& score, const std::vector<float>& w, const row* v, float m, float factor,
                std::vector<float>& o) {
  std::vector<float> p;
  float most = 0;
  float chain[2] = {0, 0};
  for (std::size_t j = 0; j < score.size(); ++j) {
    p.push_back(w[j] * v[j].scale);
    most = std::max(most, p[j]);
    chain[j % 2] += p[j];
  }
  const float units = std::floor(most / std::max(most * (1 / 32766.0f), (chain[0] + chain[1]) * (1 / 131000.0f)));
  const float unit = most / units;
  const float g = units / most;
  for (std::size_t c = 0; c < o.size(); ++c) {
    float& x = o[c];
    if (factor != 1) x *= factor;
    std::int64_t sum = 0;
    for (std::size_t j = 0; j < score.size() && unit > 0x1p-110f; ++j) {
      if (score[j] == -infinity) continue;
      const auto odd = [&] { return static_cast<std::int32_t>(std::nearbyint(std::fma(p[j], g * 65536, 32768.0f))); };
      const std::int32_t rounded_p = j % 2 == 0 ? static_cast<std::int32_t>(std::nearbyint(p[j] * g)) : odd() >> 16;
      sum += std::int64_t{rounded_p} * v[j].integers[c];
    }
    if (unit > 0x1p-110f) x = std::fma(narrowed(sum), unit, x);
    for (std::size_t j = 0; j < score.size(); ++j) {
      if (score[j] == -infinity || v[j].is_fixed) continue;
      x = std::fma(score[j] == m ? 1.0f : regroup::math::decay(score[j] - m), v[j].numbers[c], x);
    }
  }
}

struct result {
  std::vector<float> out;
  float lse;
};

/// `masked(score, key)` is the score after masks, -inf where the key is hidden.
result fold(const row& q, const std::vector<row>& k, const std::vector<row>& v, index dv, float scale,
            const std::function<float(float, index)>& masked) {
  const mean m{dv};
  std::vector<float> scores;
  for (std::size_t j = 0; j < k.size(); ++j) scores.push_back(masked(score_of(q, k[j], scale), static_cast<index>(j)));
  const std::vector<float> nothing(static_cast<std::size_t>(dv), not_a_number);
  if (std::ranges::any_of(scores, [](float s) { return s != s; })) return {nothing, not_a_number};
  if (std::ranges::find(scores, infinity) != scores.end()) return {nothing, infinity};
  std::vector<state> leaves;
  const auto keys = static_cast<index>(k.size());
  for (index leaf = 0; leaf < keys; leaf += leaf_keys) {
    float highest = -infinity;
    float l = 0;
    std::vector<float> o(static_cast<std::size_t>(dv), 0.0f);
    for (index tile = leaf; tile < std::min(keys, leaf + leaf_keys); tile += tile_keys) {
      const std::vector<float> score(scores.begin() + tile, scores.begin() + std::min(keys, tile + tile_keys));
      const float top = std::max(highest, *std::ranges::max_element(score));
      if (top == -infinity) continue;
      float factor = 1;
      if (top > highest) {
        factor = highest == -infinity ? 0.0f : regroup::math::decay(highest - top);
        l *= factor;
        highest = top;
      }
      std::vector<float> w;
      for (const float s : score) {
        w.push_back(s == -infinity ? 0.0f : weight(s - highest));
        l += w.back();
      }
      add_values(score, w, v.data() + tile, highest, factor, o);
    }
    leaves.push_back(highest == -infinity ? state() : state(mean::state{highest, l, {o}}));
  }
  const auto whole =
      perfect(m, leaves, 0, std::bit_ceil(std::max<std::size_t>(leaves.size(), 1))).value_or(m.identity());
  const auto answer = m.lower(whole);
  return {{answer.begin(), answer.end()}, regroup::log_sum_exp<float>{}.lower({whole.m, whole.l})};
}

struct extents {
  index heads, key_heads, queries, keys, d, dv;
};

template <class T>
struct problem {
  extents s;
  tensor<T> q, k, v;
  problem(const extents& e, unsigned seed, double width = 1)
      : s(e),
        q(cases::normal<T>({s.heads, s.queries, s.d}, seed, width)),
        k(cases::normal<T>({s.key_heads, s.keys, s.d}, seed + 1, width)),
        v(cases::normal<T>({s.key_heads, s.keys, s.dv}, seed + 2)) {}
  template <class Out = float>
  [[nodiscard]] cases::answer<T, Out> answer(const regroup::attention_options& options = {}) const {
    return cases::attend<T, Out>(par, q.view(), dense(k.view(), v.view()), options);
  }
};

/// Row j of every head: all of it, or every step-th number.
template <class T>
void fill(tensor<T>& x, index j, float value, index step = 1) {
  for (index h = 0; h < x.extents[0]; ++h) {
    for (index c = 0; c < x.extents[2]; c += step) x.view()(h, j, c) = T(value);
  }
}
template <class T>
void multiply(tensor<T>& x, index j, float factor) {
  for (index h = 0; h < x.extents[0]; ++h) {
    for (index c = 0; c < x.extents[2]; ++c) x.view()(h, j, c) = T(widen(x.view()(h, j, c)) * factor);
  }
}

using masking = std::function<float(float, index, index, index)>;  // of a score, head, query and key
float everything(float score, index, index, index) { return score; }

/// Every bit of `got`; `keys` of them count.
template <class T>
void compare(const problem<T>& p, const cases::answer<T, float>& got, const masking& masked, float scale, index keys) {
  const extents& s = p.s;
  for (index h = 0; h < s.heads; ++h) {
    const index kh = h / (s.heads / s.key_heads);
    auto k = rows_of(p.k.view()[kh], of_norm<T>);
    auto v = rows_of(p.v.view()[kh], of_size<T>);
    k.resize(static_cast<std::size_t>(keys));
    v.resize(static_cast<std::size_t>(keys));
    for (index i = 0; i < s.queries; ++i) {
      const auto wanted =
          fold(of_norm(p.q.view()[h][i]), k, v, s.dv, scale, [&](float x, index j) { return masked(x, h, i, j); });
      ASSERT_EQ(cases::bits(got.lse.view()(h, i)), cases::bits(wanted.lse))
          << "head " << h << " query " << i << ": " << got.lse.view()(h, i) << " and " << wanted.lse << "; "
          << s.queries << " queries, " << keys << " keys, d " << s.d << ", dv " << s.dv;
      for (index c = 0; c < s.dv; ++c) {
        const float x = wanted.out[static_cast<std::size_t>(c)];
        ASSERT_EQ(cases::bits(got.out.view()(h, i, c)), cases::bits(x))
            << "head " << h << " query " << i << " column " << c << ": " << got.out.view()(h, i, c) << " and " << x
            << "; " << s.queries << " queries, " << keys << " keys, d " << s.d << ", dv " << s.dv;
      }
    }
  }
}
template <class T>
void compare(const problem<T>& p, const regroup::attention_mask& mask = {}, const masking& masked = everything) {
  compare(p, p.answer({.mask = mask}), masked, static_cast<float>(1 / std::sqrt(static_cast<double>(p.s.d))), p.s.keys);
}

masking causal_from(index shift) {
  return [=](float s, index, index i, index j) { return j <= i + shift ? s : -infinity; };
}

/// Skips where T is not computed in fixed point.
template <class T>
class fixed_point : public testing::Test {
 protected:
  void SetUp() override {
    if (!cases::products_of<T>().are_of_integers) GTEST_SKIP() << "for a target with vpdpwssd";
  }
};
using types = testing::Types<regroup::float16, regroup::bfloat16>;
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

/// Rows 3, 64, 77 and 1030 of `x`: all of them, or every step-th number.
template <class T>
void spoil(tensor<T>& x, float value, index step) {
  for (const index j : {3, 64, 77, 1030}) fill(x, j, value, step);
}

TYPED_TEST(fixed_point, keys_and_values_that_are_not_finite) {
  using T = TypeParam;
  std::vector<char> seen(1100, 1);
  for (const index j : {3, 64, 77, 1030}) seen[static_cast<std::size_t>(j)] = 0;
  const std::vector<int> lengths = {60};
  for (const float value : {not_a_number, infinity, -infinity}) {
    for (const index queries : {1, 5, 40}) {
      for (const bool in_keys : {true, false}) {
        const problem<T> clean({2, 1, queries, 1100, 6, 5}, 1000);
        for (const index step : {1, 100}) {
          problem<T> p = clean;
          tensor<T>& x = in_keys ? p.k : p.v;
          spoil(x, value, step);
          compare(p);
          compare(p, regroup::causal{.corner = regroup::top_left}, causal_from(0));
          compare(p, regroup::causal{}, causal_from(1100 - queries));
          compare(p, regroup::boolean(view<const char>(seen)),
                  [&](float s, index, index, index j) { return seen[static_cast<std::size_t>(j)] ? s : -infinity; });
          EXPECT_TRUE(same_bits(p.answer({.mask = regroup::boolean(view<const char>(seen))}),
                                clean.answer({.mask = regroup::boolean(view<const char>(seen))})));
          fill(p.k, 3, 1);
          fill(p.v, 3, 1);
          const auto shorter = cases::attend<T, float>(par, p.q.view(), dense(p.k.view(), p.v.view(), lengths));
          compare(p, shorter, everything, static_cast<float>(1 / std::sqrt(6.0)), 60);
        }
      }
    }
  }
}

TYPED_TEST(fixed_point, infinite_scores) {
  for (const index queries : {1, 5, 40}) {
    problem<TypeParam> p({1, 1, queries, 1100, 6, 5}, 1100);
    for (index i = 0; i < queries; i += 2) p.q.view()(0, i, 0) = TypeParam(0.5f);
    for (index i = 1; i < queries; i += 2) p.q.view()(0, i, 0) = TypeParam(-0.5f);
    for (const index j : {9, 1030}) p.k.view()(0, j, 0) = TypeParam(infinity);  // for half the queries -inf: hidden
    for (const index j : {9, 1030}) p.v.view()(0, j, 2) = TypeParam(not_a_number);
    const auto got = p.answer();
    for (index i = 0; i < queries; ++i) {
      EXPECT_EQ(got.lse.view()(0, i) == infinity, i % 2 == 0) << i;
      for (index c = 0; c < 5; ++c) EXPECT_EQ(std::isnan(got.out.view()(0, i, c)), i % 2 == 0) << i;
    }
    compare(p);
  }
}

TYPED_TEST(fixed_point, queries_that_are_not_finite) {
  for (const float value : {not_a_number, infinity, -infinity}) {
    for (const index queries : {1, 5, 40, 70}) {
      const problem<TypeParam> clean({2, 1, queries, 300, 6, 5}, 1200);
      problem<TypeParam> p = clean;
      for (const index i : {0, 17, 38, 69}) {
        if (i < queries) p.q.view()(i % 2, i, 2) = TypeParam(value);
      }
      compare(p);
      const auto got = p.answer(), wanted = clean.answer();
      for (index i = 0; i < queries; ++i) {
        for (index h = 0; h < 2; ++h) {
          if (h == i % 2 && (i == 0 || i == 17 || i == 38 || i == 69)) continue;
          EXPECT_TRUE(cases::same_bits<float>(got.out.view()[h][i], wanted.out.view()[h][i])) << h << " " << i;
          EXPECT_EQ(got.lse.view()(h, i), wanted.lse.view()(h, i));
        }
      }
    }
  }
}

/// Rows too large, or too small, for integers: of bfloat16, whose exponents go so far.
class fixed_point_sizes : public fixed_point<regroup::bfloat16> {};

TEST_F(fixed_point_sizes, rows_without_integers) {
  using T = regroup::bfloat16;
  for (const int exponent : {60, -60, 46, -49, 44, -44, -80, -120, -130}) {
    const float size = std::ldexp(1.0f, exponent);
    for (const index queries : {1, 5, 16, 40}) {
      for (const bool is_lone : {true, false}) {  // some rows, or all
        SCOPED_TRACE("2^" + std::to_string(exponent) + (is_lone ? " of some" : " of all"));
        const auto is_chosen = [&](index j) { return !is_lone || j % 37 == 3; };
        problem<T> p({2, 1, queries, 200, 6, 5}, 1300);
        for (index j = 0; j < 200; ++j) {
          if (is_chosen(j)) multiply(p.v, j, size);
        }
        compare(p);
        compare(p, regroup::causal{}, causal_from(200 - queries));
        p = problem<T>({2, 1, queries, 200, 6, 5}, 1310);
        for (index j = 0; j < 200; ++j) {
          if (is_chosen(j)) multiply(p.k, j, size);
        }
        for (index i = 0; i < queries; ++i) multiply(p.q, i, 1 / std::clamp(size, 0x1p-40f, 0x1p+40f));
        compare(p);
        p = problem<T>({2, 1, queries, 200, 6, 5}, 1320);
        for (index i = 0; i < queries; ++i) {
          if (is_chosen(i)) multiply(p.q, i, size);
        }
        for (index j = 0; j < 200; ++j) multiply(p.k, j, 1 / std::clamp(size, 0x1p-40f, 0x1p+40f));
        compare(p);
      }
    }
  }
}

/// A number of exactly the largest size, the smallest, and those next to them.
TEST_F(fixed_point_sizes, the_limits) {
  using T = regroup::bfloat16;
  for (const float size : {0x1p+45f, 0x1.02p+45f, 0x1.fep+44f, 0x1p-45f, 0x1.02p-45f, 0x1.fep-46f}) {
    for (const index queries : {1, 40}) {
      problem<T> p({1, 1, queries, 70, 1, 1}, 1400);
      fill(p.k, 5, size);
      fill(p.q, 0, size < 1 ? 1.1f / size : 1.7f / size);
      compare(p);
      fill(p.v, 5, size);
      compare(p);
      fill(p.q, 0, size);
      fill(p.k, 5, 1.7f / size);
      compare(p);
    }
  }
}

/// 64 equal weights of values all at a limit, and keys parallel to their query: sums of integers as large as they get.
TYPED_TEST(fixed_point, largest_sums_of_integers) {
  using T = TypeParam;
  const float largest = 65504;
  for (const index d : {1, 64, 128, 500}) {
    for (const float sign : {1.0f, -1.0f}) {
      for (const index keys : {64, 65, 128, 61}) {  // all weights equal
        problem<T> p({1, 1, 40, keys, d, d}, 1500);
        std::ranges::fill(p.k.values, T(0.0f));
        std::ranges::fill(p.v.values, T(sign * largest));
        compare(p);
        for (std::size_t i = 0; i < p.k.values.size(); ++i) p.k.values[i] = p.q.values[i % static_cast<std::size_t>(d)];
        compare(p);  // and K parallel to a query
        for (T& x : p.k.values) x = T(-widen(x));
        compare(p);
        std::ranges::fill(p.q.values, T(largest));
        std::ranges::fill(p.k.values, T(sign * largest));
        compare(p);
        const auto got = p.template answer<T>();
        for (const T x : got.out.values) EXPECT_TRUE(std::isfinite(widen(x))) << keys << " keys, d " << d;
      }
    }
  }
}

/// Any number of equal weights and of the largest values: rounded up together, they still do not overflow float16.
TYPED_TEST(fixed_point, equal_weights_of_any_number) {
  using T = TypeParam;
  double worst = 0;
  for (index keys = 1; keys <= 130; ++keys) {
    problem<T> p({1, 1, 40, keys, 4, 3}, 1600);
    std::ranges::fill(p.k.values, T(0.0f));
    std::ranges::fill(p.v.values, T(65504.0f));
    compare(p);
    const double v = widen(p.v.values[0]);
    for (const float x : p.answer().out.values) worst = std::max(worst, std::abs(x / v - 1));
    const auto narrow = p.template answer<T>();
    for (const T x : narrow.out.values) EXPECT_TRUE(std::isfinite(widen(x))) << keys;
  }
  std::cout << "a constant is wrong by up to 2^" << std::log2(worst) << "\n";
}

/// The worst of error / bound, and of error / the largest value.
template <class T>
void stay_within_bounds(const char* name, const problem<T>& p) {
  const extents& s = p.s;
  const auto got = p.answer();
  cases::worst_ratio worst;
  double error = 0, error_of_lse = 0;
  long double largest = 0;
  for (const T x : p.v.values) largest = std::max(largest, std::abs(static_cast<long double>(widen(x))));
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.d)));
  const auto see = [](index, cases::seen_key&) { return true; };
  for (index i = 0; i < s.queries; ++i) {
    const auto e = cases::define(cases::keys_of(p.q.view()[0][i], p.k.view()[0], p.v.view()[0], scale, see), s.d, s.dv,
                                 0x1p-24, 0x1p-24, 0, 0, cases::products_of<T>());
    worst.add(e, got.out.values.data() + i * s.dv, got.lse.view()(0, i));
    error_of_lse = std::max(error_of_lse, static_cast<double>(std::abs(got.lse.view()(0, i) - e.lse)));
    for (index c = 0; c < s.dv; ++c) {
      const long double x = got.out.view()(0, i, c);
      const long double bound = e.out_bound[static_cast<std::size_t>(c)];
      error = std::max(error, static_cast<double>(std::abs(x - e.out[static_cast<std::size_t>(c)]) / largest));
      long double low = std::numeric_limits<long double>::infinity(), high = -low;
      for (index j = 0; j < s.keys; ++j) {
        const long double value = widen(p.v.view()(0, j, c));
        low = std::min(low, value);
        high = std::max(high, value);
      }
      EXPECT_LE(low - bound, x) << name;
      EXPECT_LE(x, high + bound) << name;
    }
  }
  std::cout << name << ": worst " << worst.ratio << " of the bound; error 2^" << std::log2(error)
            << " of the largest value, of logsumexp " << error_of_lse << "\n";
  EXPECT_LE(worst.ratio, 1) << name;
}

TYPED_TEST(fixed_point, errors_of_hard_inputs) {
  using T = TypeParam;
  for (const index queries : {5, 40}) {
    const problem<T> plain({1, 1, queries, 1100, 64, 16}, 2000);
    stay_within_bounds("plain", plain);
    problem<T> p = plain;
    for (index j = 0; j < p.s.keys; ++j) p.k.view()(0, j, 11) = T(30 * widen(p.k.view()(0, j, 11)));
    stay_within_bounds("an outlier channel of K", p);
    for (index i = 0; i < queries; ++i) p.q.view()(0, i, 11) = T(0.0f);
    stay_within_bounds("one that no query looks at", p);
    p = plain;
    multiply(p.v, 70, 1000);
    stay_within_bounds("a value 1000 times larger", p);
    p = plain;
    for (index j = 0; j < p.s.keys; ++j) p.v.view()(0, j, 3) = T(1000 * widen(p.v.view()(0, j, 3)));
    stay_within_bounds("an outlier channel of V", p);
    p = plain;
    for (index i = 0; i < queries; ++i) p.q.view()(0, i, 0) = T(4.0f);
    for (index j = 0; j < p.s.keys; ++j) p.k.view()(0, j, 0) = T(j == 70 ? 48.0f : 0.0f);
    stay_within_bounds("a key that dominates", p);
    p = plain;
    std::ranges::fill(p.k.values, T(0.0f));
    stay_within_bounds("equal weights", p);
    p = plain;
    for (index j = 0; j < p.s.keys; ++j) {
      for (index c = 0; c < p.s.dv; ++c) p.v.view()(0, j, c) = T(0.3f * static_cast<float>(c - 7));
    }
    stay_within_bounds("constant values", p);
    std::ranges::fill(p.k.values, T(0.0f));
    stay_within_bounds("constant values of equal weights", p);
    p = plain;
    for (T& x : p.v.values) x = T(std::copysign(65504.0f, widen(x)));
    stay_within_bounds("values of the largest size", p);
    for (T& x : p.v.values) x = T(65504.0f);
    stay_within_bounds("the largest values", p);
    stay_within_bounds("wide scores", problem<T>({1, 1, queries, 1100, 64, 16}, 2100, 4));
    stay_within_bounds("many columns", problem<T>({1, 1, queries, 200, 500, 16}, 2200));
  }
}

}  // namespace

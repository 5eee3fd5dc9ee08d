// SPDX-License-Identifier: Apache-2.0
// A naive transcription of what attention in fixed point (attention_options::fixed_point) computes: one query at a time,
// one key at a time, sums of integers in 64 bits. And problems all of whose bits are compared with it.
#pragma once

#include <functional>
#include <iostream>
#include <optional>

#include "reference.hpp"

namespace fixed_points {

using cases::index;
using cases::mean;
using cases::tensor;
using regroup::dense;
using regroup::par;
using regroup::view;

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
inline constexpr index leaf_keys = 1024, tile_keys = 64;

/// A row as integers times a scale, if it has them, and as numbers.
struct row {
  std::vector<float> numbers;
  std::vector<std::int32_t> integers;
  float scale = 0;
  bool is_fixed = true;
};

/// x / size in units of 1 / most.
inline row rounded(std::vector<float> x, float size, float most) {
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
inline float narrowed(std::int64_t sum) {
  EXPECT_EQ(sum, static_cast<std::int32_t>(sum));
  return static_cast<float>(sum);
}

inline float score_of(const row& q, const row& k, float scale) {
  if (!q.is_fixed || !k.is_fixed) {
    float s = 0;
    for (std::size_t c = 0; c < q.numbers.size(); ++c) s = std::fma(q.numbers[c] * scale, k.numbers[c], s);
    return s;
  }
  std::int64_t sum = 0;
  for (std::size_t c = 0; c < q.integers.size(); ++c) sum += std::int64_t{q.integers[c]} * k.integers[c];
  return (narrowed(sum) * k.scale) * (q.scale * scale);
}

/// z less its floor, which processors round as vreduceps does: on Intel's, down.
inline float reduced(float z) {
#if defined(__x86_64__)
  typedef float pack __attribute__((vector_size(16)));
  pack x = {z, 0, 0, 0};
  asm("vreduceps $9, %0, %0" : "+x"(x));
  return x[0];
#else
  return z - std::floor(z);
#endif
}

/// e^x, x <= 0.
inline float weight(float x) {
  const float z = x * 0x1.715476p+0f;
  const float f = std::floor(z);
  const float r = reduced(z);
  float p = std::fma(r, 0x1.b7f74cp-7f, 0x1.abf85ep-5f);
  p = std::fma(p, r, 0x1.ee2452p-3f);
  p = std::fma(p, r, 0x1.62d6c6p-1f);
  p = std::fma(p, r, 1.0f);
  return std::ldexp(p, static_cast<int>(std::max(f, -1000.0f)));
}

/// O = O factor + the weighted values of a tile. `score[j]` is -inf where key j is hidden; w is its weight, below m.
inline void add_values(const std::vector<float>& score, const std::vector<float>& w, const row* v, float m,
                       float factor, std::vector<float>& o) {
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
inline result fold(const row& q, const std::vector<row>& k, const std::vector<row>& v, index dv, float scale,
                   const std::function<float(float, index)>& masked) {
  const mean m{dv};
  std::vector<float> scores;
  for (std::size_t j = 0; j < k.size(); ++j) scores.push_back(masked(score_of(q, k[j], scale), static_cast<index>(j)));
  const std::vector<float> nothing(static_cast<std::size_t>(dv), not_a_number);
  if (std::ranges::any_of(scores, [](float s) { return s != s; })) return {nothing, not_a_number};
  if (std::ranges::find(scores, infinity) != scores.end()) return {nothing, infinity};
  std::vector<cases::leaf_state> leaves;
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
    leaves.push_back(highest == -infinity ? cases::leaf_state() : cases::leaf_state(mean::state{highest, l, {o}}));
  }
  const auto whole =
      cases::perfect(m, leaves, 0, std::bit_ceil(std::max<std::size_t>(leaves.size(), 1))).value_or(m.identity());
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
inline float everything(float score, index, index, index) { return score; }

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

inline masking causal_from(index shift) {
  return [=](float s, index, index i, index j) { return j <= i + shift ? s : -infinity; };
}

/// Skips where T is not computed in fixed point.
template <class T>
class where_it_is : public testing::Test {
 protected:
  void SetUp() override {
    if (!cases::products_of<T>().are_of_integers) GTEST_SKIP() << "for a target with vpdpwssd";
  }
};
using types = testing::Types<regroup::float16, regroup::bfloat16>;

}  // namespace fixed_points

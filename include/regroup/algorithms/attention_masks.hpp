// SPDX-License-Identifier: Apache-2.0
// The library's rules, each a small function object like a user's own (attention_rules.hpp): what a query may see (causal,
// window, boolean) and what is done to a score first (softcap, alibi, additive). Any number of them combine; the usual order
// is softcap, alibi, additive, then what hides keys. A rule is bound to the extents of a call; what it keeps of them
// (`shifts`) is a vector on the host and a pointer on a device. Level: element.
#pragma once

#include <array>
#include <cmath>

#include "regroup/algorithms/attention_rules.hpp"
#include "regroup/math/tanh.hpp"

namespace regroup {

enum class mask_corner { bottom_right, top_left };
inline constexpr mask_corner bottom_right = mask_corner::bottom_right;
inline constexpr mask_corner top_left = mask_corner::top_left;

/// Query i sees the keys up to i + Nk - Nq (bottom-right: the last query sees every key; with lengths, Nk is the batch's
/// length), or up to i (top-left). A range: hidden tiles cost nothing.
struct causal {
  mask_corner corner = mask_corner::bottom_right;

  template <class Shifts>
  struct rule {
    mask_corner corner;
    Shifts shifts;  // one a batch
    [[nodiscard]] constexpr key_range range(index batch, index /*head*/, index query) const {
      const index shift = corner == mask_corner::top_left ? 0 : shifts[static_cast<std::size_t>(batch)];
      const index last = query + shift + 1;
      return {0, last > 0 ? last : 0};
    }
  };
  template <class Extents>
  [[nodiscard]] auto bind(const Extents& e) const {
    return rule<decltype(e.shifts())>{corner, e.shifts()};
  }
};

/// Query i sees key j where -left <= j - (i + Nk - Nq) <= right; -1 means no limit on that side (with lengths, Nk is the
/// batch's length). A range on both sides: only the keys inside cost anything. Throws argument_error below -1.
struct window {
  index left = -1;
  index right = -1;

  template <class Shifts>
  struct rule {
    index left, right;
    Shifts shifts;  // one a batch
    [[nodiscard]] constexpr key_range range(index batch, index /*head*/, index query) const {
      const index centre = query + shifts[static_cast<std::size_t>(batch)];
      key_range seen;
      if (left >= 0) seen.first = centre > left ? centre - left : 0;
      if (right >= 0) seen.last = centre + right + 1 > 0 ? centre + right + 1 : 0;
      return seen;
    }
  };
  template <class Extents>
  [[nodiscard]] auto bind(const Extents& e) const {
    if (left < -1 || right < -1) {
      throw_argument("a window's sides are distances of at least 0, or -1 for no limit; got " + std::to_string(left) +
                     " and " + std::to_string(right));
    }
    constexpr index farthest = std::numeric_limits<index>::max() / 4;  // so that sums do not overflow
    return rule<decltype(e.shifts())>{std::min(left, farthest), std::min(right, farthest), e.shifts()};
  }
};

/// Elements of an array that broadcasts to (..., H, Nq, Nk).
template <class T>
struct broadcast_scores {
  const T* data;
  std::array<index, 4> strides;
  constexpr const T& operator()(index batch, index head, index query, index key) const {
    return data[batch * strides[0] + head * strides[1] + query * strides[2] + key * strides[3]];
  }
};

/// `x` seen as (B, H, Nq, Nk); throws shape_error where it does not broadcast.
template <class T, class Extents>
broadcast_scores<T> broadcast(const view<T>& x, const Extents& e) {
  const std::array<index, 4> full = {e.batches, e.heads, e.queries, e.keys};
  broadcast_scores<T> result{x.data(), {}};
  bool fits = x.rank() <= e.rank;
  for (int a = 0; fits && a < x.rank(); ++a) {
    const auto axis = static_cast<std::size_t>(4 - x.rank() + a);
    fits = x.extent(a) == 1 || x.extent(a) == full[axis];
    result.strides[axis] = x.extent(a) == 1 ? 0 : x.stride(a);
  }
  if (!fits) {
    shape whole;
    for (int a = 4 - e.rank; a < 4; ++a) whole.push_back(full[static_cast<std::size_t>(a)]);
    throw_shape("a mask must broadcast to (..., heads, queries, keys), here " + to_string(whole) + "; it has shape " +
                to_string(x.extents()));
  }
  return result;
}

/// Adds a bias of any floating type that broadcasts to (..., H, Nq, Nk) to the scores; where it is -inf the key is
/// hidden. One load a score.
template <class T>
struct additive {
  view<const T> bias;

  explicit additive(view<const T> b) : bias(std::move(b)) {}
  struct rule {
    broadcast_scores<const T> bias;
    template <class Real>
    constexpr Real operator()(Real score, index batch, index head, index query, index key) const {
      const Real b = static_cast<Real>(regroup::widen(bias(batch, head, query, key)));
      const Real sum = score + b;
      return b == Real{hidden} ? b : sum;
    }
  };
  [[nodiscard]] rule bind(const attention_extents& e) const { return {broadcast(bias, e)}; }
};
template <class V>
additive(const V& v) -> additive<std::remove_const_t<typename decltype(view(v))::element_type>>;

/// A key is seen where an array that broadcasts to (..., H, Nq, Nk) holds true (not zero). One load a score.
template <class T>
struct boolean {
  view<const T> seen;

  explicit boolean(view<const T> s) : seen(std::move(s)) {}
  struct rule {
    broadcast_scores<const T> seen;
    template <class Real>
    constexpr Real operator()(Real score, index batch, index head, index query, index key) const {
      return seen(batch, head, query, key) != T{} ? score : Real{hidden};
    }
  };
  [[nodiscard]] rule bind(const attention_extents& e) const { return {broadcast(seen, e)}; }
};
template <class V>
boolean(const V& v) -> boolean<std::remove_const_t<typename decltype(view(v))::element_type>>;

/// cap tanh(score / cap): scores stay within [-cap, cap], and small ones as they are. Relative error below
/// (math::tanh_error + 2) u, on every instruction set the same bits. Throws argument_error where cap is not finite and
/// positive; a cap outside of Real's normal numbers counts as the nearest one. (Gemma 2: Gemma Team 2024, section 2.)
struct softcap {
  double cap = 50;

  struct rule {
    float narrow;
    double wide;
    template <class Real>
    constexpr Real operator()(Real score, index /*batch*/, index /*head*/, index /*query*/, index /*key*/) const {
      constexpr Real itself = std::same_as<Real, float> ? Real(0x1p-13) : Real(0x1p-27);  // tanh(x) = x within u / 2
      const Real c = std::same_as<Real, float> ? static_cast<Real>(narrow) : static_cast<Real>(wide);
      const Real x = score / c;
      return math::select(math::abs(x) < itself, score, math::product(c, math::tanh(x)));
    }
  };
  template <class Extents>
  [[nodiscard]] rule bind(const Extents& /*extents*/) const {
    if (!(cap > 0 && std::isfinite(cap))) {
      throw_argument("a softcap must be finite and positive; got " + std::to_string(cap));
    }
    return {static_cast<float>(std::clamp<double>(cap, std::numeric_limits<float>::min(),
                                                  std::numeric_limits<float>::max())),
            std::max(cap, std::numeric_limits<double>::min())};
  }
};

/// Numbers of any floating type, one a head, copied: ALiBi's slopes, sinks. Throws shape_error where the rank is not 1.
class head_numbers {
 public:
  head_numbers() = default;
  template <class V>
  requires(!std::same_as<std::remove_cvref_t<V>, head_numbers>) && requires(const V& v) { view(v); }
  head_numbers(const V& numbers) {  // NOLINT: implicit on purpose
    const auto v = view(numbers);
    if (v.rank() != 1) throw_shape("one number a head has shape (heads,); got shape " + to_string(v.extents()));
    is_given_ = true;
    for (index i = 0; i < v.extent(0); ++i) values_.push_back(static_cast<double>(regroup::widen(v(i))));
  }
  [[nodiscard]] bool is_given() const noexcept { return is_given_; }
  /// As Real, one for each of `heads`; throws shape_error where there are more or fewer.
  template <class Real>
  [[nodiscard]] std::vector<Real> as(index heads, const char* what) const {
    if (static_cast<index>(values_.size()) != heads) {
      throw_shape(std::string(what) + " have one number a head, here " + std::to_string(heads) + "; got " +
                  std::to_string(values_.size()));
    }
    std::vector<Real> result;
    for (const double x : values_) result.push_back(static_cast<Real>(x));
    return result;
  }

 private:
  bool is_given_ = false;
  std::vector<double> values_;
};

/// Adds slopes[head] (j - (i + Nk - Nq)) to query i's score of key j: one fma a score (ALiBi: Press et al. 2022, where
/// slopes are 2^(-8 h / H) and only keys at or before the query are seen). Nk is the batch's length. Throws shape_error.
struct alibi {
  head_numbers slopes;

  template <class V>
  explicit alibi(const V& one_a_head) : slopes(one_a_head) {}
  template <class Narrow, class Wide, class Shifts>
  struct rule {
    Narrow slopes;  // one a head
    Wide wide_slopes;
    Shifts shifts;  // one a batch
    template <class Real>
    constexpr Real operator()(Real score, index batch, index head, index query, index key) const {
      const auto distance = static_cast<Real>(key - (query + shifts[static_cast<std::size_t>(batch)]));
      const auto h = static_cast<std::size_t>(head);
      if constexpr (std::same_as<Real, float>) {
        return math::fma(slopes[h], distance, score);
      } else {
        return math::fma(wide_slopes[h], distance, score);
      }
    }
  };
  [[nodiscard]] auto bind(const attention_extents& e) const {
    return rule<std::vector<float>, std::vector<double>, std::vector<index>>{
        slopes.as<float>(e.heads, "ALiBi's slopes"), slopes.as<double>(e.heads, "ALiBi's slopes"), e.shifts()};
  }
};

}  // namespace regroup

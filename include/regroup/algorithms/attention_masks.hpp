// SPDX-License-Identifier: Apache-2.0
// What a query may see, apart from where keys live: small function objects (score, batch, head, query, key) -> score, or
// `hidden` (-inf), the identity. A mask may also name a range of keys outside of which all is hidden; tiles out of range
// are never computed. The function is inlined into a loop over one tile of scores, and only that loop is called
// indirectly, so a user's own object runs as fast as ours. Level: element.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/host/dispatch.hpp"
#include "regroup/view.hpp"

namespace regroup {

/// What a mask returns for a key that a query does not see: `key <= query ? score : hidden`.
inline constexpr struct hidden_key {
  template <std::floating_point Real>
  constexpr operator Real() const {  // NOLINT: implicit on purpose
    return -std::numeric_limits<Real>::infinity();
  }
} hidden{};

/// The keys [first, last).
struct key_range {
  index first = 0;
  index last = std::numeric_limits<index>::max();
};

/// The extents that a mask is bound to: queries q (..., H, Nq, d), `keys` = Nk, and how many of them each batch has.
struct attention_extents {
  int rank = 2;
  index batches = 1, heads = 1, queries = 0, keys = 0;
  std::vector<index> lengths;  ///< one a batch: keys from there on do not exist
};

/// Every query sees every key.
struct no_mask {};

enum class mask_corner { bottom_right, top_left };
inline constexpr mask_corner bottom_right = mask_corner::bottom_right;
inline constexpr mask_corner top_left = mask_corner::top_left;

/// Query i sees the keys up to i + Nk - Nq (bottom-right: the last query sees every key; Nk is the batch's length where
/// there are lengths), or up to i (top-left). A range: hidden tiles cost nothing.
struct causal {
  mask_corner corner = mask_corner::bottom_right;

  struct rule {
    std::vector<index> shifts;  // one a batch
    [[nodiscard]] key_range range(index batch, index /*head*/, index query) const {
      return {0, std::max<index>(query + shifts[static_cast<std::size_t>(batch)] + 1, 0)};
    }
  };
  [[nodiscard]] rule bind(const attention_extents& e) const {
    rule r;
    for (const index length : e.lengths) {
      r.shifts.push_back(corner == mask_corner::top_left ? 0 : length - e.queries);
    }
    return r;
  }
};

/// Elements of an array that broadcasts to (..., H, Nq, Nk).
template <class T>
struct broadcast_scores {
  const T* data;
  std::array<index, 4> strides;
  const T& operator()(index batch, index head, index query, index key) const {
    return data[batch * strides[0] + head * strides[1] + query * strides[2] + key * strides[3]];
  }
};

/// `x` seen as (B, H, Nq, Nk); throws shape_error where it does not broadcast.
template <class T>
broadcast_scores<T> broadcast(const view<T>& x, const attention_extents& e) {
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
    Real operator()(Real score, index batch, index head, index query, index key) const {
      const Real b = static_cast<Real>(widen(bias(batch, head, query, key)));
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
    Real operator()(Real score, index batch, index head, index query, index key) const {
      return seen(batch, head, query, key) != T{} ? score : Real{hidden};
    }
  };
  [[nodiscard]] rule bind(const attention_extents& e) const { return {broadcast(seen, e)}; }
};
template <class V>
boolean(const V& v) -> boolean<std::remove_const_t<typename decltype(view(v))::element_type>>;

namespace mask_rules {

template <class M>
auto bound(const M& m, [[maybe_unused]] const attention_extents& e) {
  if constexpr (requires { m.bind(e); }) {
    return m.bind(e);
  } else {
    return m;
  }
}
template <class R>
concept has_range = requires(const R& r, index i) {
  { r.range(i, i, i) } -> std::convertible_to<key_range>;
};
template <class R, class Real>
concept has_function = requires(const R& r, Real s, index i) {
  { r(s, i, i, i, i) } -> std::convertible_to<Real>;
};

template <class R>
key_range range(const R& r, index batch, index head, index query) {
  if constexpr (has_range<R>) {
    return r.range(batch, head, query);
  } else {
    return {};
  }
}

/// Several rules: a key is seen where all see it; functions apply left to right, and what one hides stays hidden.
template <class... Rules>
struct all_of {
  std::tuple<Rules...> rules;

  [[nodiscard]] key_range range(index batch, index head, index query) const {
    key_range whole;
    const auto narrow = [&](const key_range& r) {
      whole = {std::max(whole.first, r.first), std::min(whole.last, r.last)};
    };
    std::apply([&](const auto&... r) { (narrow(mask_rules::range(r, batch, head, query)), ...); }, rules);
    return whole;
  }
  template <class Real>
  requires(has_function<Rules, Real> || ...) Real operator()(Real score, index batch, index head, index query,
                                                             index key) const {
    bool is_hidden = false;
    const auto step = [&]<class R>(const R& r) {
      if constexpr (has_function<R, Real>) {
        score = static_cast<Real>(r(score, batch, head, query, key));
        is_hidden |= score == Real{hidden};
      }
    };
    std::apply([&](const auto&... r) { (step(r), ...); }, rules);
    return is_hidden ? Real{hidden} : score;
  }
};

}  // namespace mask_rules

/// Several masks at once, also by `&`: `masks{causal{}, additive(bias)}`, `causal{} & boolean(seen)`, or with a function
/// object of the user's own. Functions apply left to right.
template <class... Ms>
struct masks {
  std::tuple<Ms...> parts;

  explicit masks(Ms... ms) : parts(std::move(ms)...) {}
  [[nodiscard]] auto bind(const attention_extents& e) const {
    return std::apply(
        [&](const auto&... m) {
          return mask_rules::all_of<decltype(mask_rules::bound(m, e))...>{{mask_rules::bound(m, e)...}};
        },
        parts);
  }
};
template <class A, class B>
requires requires(const A& a, const B& b, const attention_extents& e) { a.bind(e), b.bind(e); }
masks<A, B> operator&(const A& a, const B& b) { return masks<A, B>(a, b); }

/// One tile of scores to be masked in place: key `first_key + j` of lane q is scores[j * lanes + q].
template <class Real>
struct score_tile {
  Real* scores;
  index keys;
  index lanes;
  index first_key;
  index batch;
  const index* heads;    // one a lane
  const index* queries;  // one a lane
};

/// A mask of any kind, bound to the extents of one call. What is called through it is a loop over a tile.
struct bound_mask {
  virtual ~bound_mask() = default;
  /// The keys outside of which everything is hidden.
  [[nodiscard]] virtual key_range range(index batch, index head, index query) const = 0;
  /// Whether `apply` does anything.
  [[nodiscard]] virtual bool has_function() const noexcept = 0;
  virtual void apply(const score_tile<float>& tile) const = 0;
  virtual void apply(const score_tile<double>& tile) const = 0;
};

template <class Rule>
class bound_mask_of final : public bound_mask {
 public:
  explicit bound_mask_of(Rule rule) : rule_(std::move(rule)) {}
  [[nodiscard]] key_range range(index batch, index head, index query) const override {
    return mask_rules::range(rule_, batch, head, query);
  }
  [[nodiscard]] bool has_function() const noexcept override { return mask_rules::has_function<Rule, double>; }
  void apply(const score_tile<float>& tile) const override { apply_to(tile); }
  void apply(const score_tile<double>& tile) const override { apply_to(tile); }

 private:
  template <class Real>
  void apply_to([[maybe_unused]] const score_tile<Real>& t) const {
    if constexpr (mask_rules::has_function<Rule, Real>) {
      host::dispatch([&] {
        const Rule& rule = rule_;
        for (index j = 0; j < t.keys; ++j) {
          Real* const row = t.scores + j * t.lanes;
          for (index q = 0; q < t.lanes; ++q) {
            row[q] = static_cast<Real>(rule(row[q], t.batch, t.heads[q], t.queries[q], t.first_key + j));
          }
        }
      });
    }
  }
  Rule rule_;
};

/// Holds any mask: one of ours, or a function object (score, batch, head, query, key) -> score or `hidden`. It may have
/// `range(batch, head, query) -> key_range`, or `bind(const attention_extents&)` that returns such an object.
class attention_mask {
 public:
  attention_mask() : attention_mask(no_mask{}) {}
  template <class M>
  requires(!std::same_as<std::remove_cvref_t<M>, attention_mask>) attention_mask(M m)  // NOLINT: implicit on purpose
      : bind_([m = std::move(m)](const attention_extents& e) -> std::shared_ptr<const bound_mask> {
          using rule = decltype(mask_rules::bound(m, e));
          static_assert(
              std::same_as<rule, no_mask> || mask_rules::has_range<rule> || mask_rules::has_function<rule, float>,
              "regroup: a mask is a function object (score, batch, head, query, key) -> score or `hidden`, or "
              "has `range(batch, head, query) -> key_range`");
          return std::make_shared<const bound_mask_of<rule>>(mask_rules::bound(m, e));
        }) {}
  [[nodiscard]] std::shared_ptr<const bound_mask> bind(const attention_extents& e) const { return bind_(e); }

 private:
  std::function<std::shared_ptr<const bound_mask>(const attention_extents&)> bind_;
};

}  // namespace regroup

// SPDX-License-Identifier: Apache-2.0
// How scores are changed and keys hidden: a rule is a function object (score, batch, head, query, key) -> score, or
// `hidden` (-inf), the identity. It may also name a range of keys outside of which all is hidden; tiles out of range are
// never computed. The function is inlined into a loop over one tile of scores, and only that loop is called indirectly, so
// a user's object runs as fast as the library's (attention_masks.hpp); kernels (cuda/attention_kernel.hpp) inline all of it.
// Level: element.
#pragma once

#include <algorithm>
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
#include "regroup/math.hpp"
#include "regroup/view.hpp"

namespace regroup {

/// What a rule returns for a key that a query does not see: `key <= query ? score : hidden`.
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

/// The extents that a rule is bound to: queries q (..., H, Nq, d), `keys` = Nk, and how many of them each batch has.
struct attention_extents {
  int rank = 2;
  index batches = 1, heads = 1, queries = 0, keys = 0;
  std::vector<index> lengths;             ///< one a batch: the number of its keys
  std::vector<index> query_lengths = {};  ///< one a batch if queries are ragged; else each batch has `queries`

  /// The key at the position of a batch's query 0, if its last query has the position of its last key.
  [[nodiscard]] index shift(index batch) const {
    const auto b = static_cast<std::size_t>(batch);
    return lengths[b] - (query_lengths.empty() ? queries : query_lengths[b]);
  }
  /// `shift` of every batch.
  [[nodiscard]] std::vector<index> shifts() const {
    std::vector<index> all;
    for (index b = 0; b < batches; ++b) all.push_back(shift(b));
    return all;
  }
};

/// Every query sees every key.
struct no_mask {};

namespace mask_rules {

template <class M, class Extents>
auto bound(const M& m, [[maybe_unused]] const Extents& e) {
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
concept says_yes_or_no = requires(const R& r, float s, index i) {
  { r(s, i, i, i, i) } -> std::same_as<bool>;
};
template <class M>
concept bindable = requires(const M& m, const attention_extents& e) { m.bind(e); };
template <class M>
concept usable = bindable<M> || has_range<M> || has_function<M, float>;

/// A sentence for a rule that would not be applied, or not all of it.
template <class Rule>
constexpr void require_rule() {
  static_assert(!requires { typename Rule::element_type; },
                "regroup: a view is no mask by itself; additive(view) adds its numbers to the scores, boolean(view) "
                "says which keys are seen");
  static_assert(!says_yes_or_no<Rule>, "regroup: a mask returns a score, not bool: `key <= query ? score : hidden`");
  static_assert(has_function<Rule, float> == has_function<Rule, double>,
                "regroup: a mask's function takes scores of float and of double: `auto score`");
  static_assert(has_function<Rule, float> || !requires(Rule& r, float s, index i) { r(s, i, i, i, i); },
                "regroup: this mask's function is not const, or does not return a score, so nothing would call it");
  static_assert(has_range<Rule> || !requires(Rule& r, index i) { r.range(i, i, i); },
                "regroup: this mask's `range` is not const, or does not return a key_range, so nothing would call it");
  static_assert(std::same_as<Rule, no_mask> || has_range<Rule> || has_function<Rule, float>,
                "regroup: a mask is a function object (score, batch, head, query, key) -> score or `hidden`, or "
                "has `range(batch, head, query) -> key_range`");
}

template <class R>
constexpr key_range range(const R& r, index batch, index head, index query) {
  if constexpr (has_range<R>) {
    return r.range(batch, head, query);
  } else {
    return {};
  }
}
constexpr key_range both(const key_range& a, const key_range& b) {
  return {a.first < b.first ? b.first : a.first, b.last < a.last ? b.last : a.last};
}

/// Several rules: a key is seen where all see it; functions apply left to right, and what one hides stays hidden.
template <class... Rules>
struct all_of {
  std::tuple<Rules...> rules;

  [[nodiscard]] constexpr key_range range(index batch, index head, index query) const {
    (require_rule<Rules>(), ...);
    key_range whole;
    std::apply([&](const auto&... r) { ((whole = both(whole, mask_rules::range(r, batch, head, query))), ...); },
               rules);
    return whole;
  }
  template <class Real>
    requires(has_function<Rules, Real> || ...)
  constexpr Real operator()(Real score, index batch, index head, index query, index key) const {
    constexpr Real minus_infinity = hidden;
    bool hides = false;
    const auto apply = [&]<class Rule>(const Rule& rule) {
      if constexpr (has_function<Rule, Real>) {
        score = static_cast<Real>(rule(score, batch, head, query, key));
        hides = hides || score == minus_infinity;
      }
    };
    std::apply([&](const auto&... r) { (apply(r), ...); }, rules);
    return hides ? minus_infinity : score;
  }
};

}  // namespace mask_rules

/// Several rules at once, also by `&`: `masks{softcap{30}, causal{}, additive(bias)}`, `causal{} & boolean(seen)`; any of
/// them may be a function object of the user's. Functions apply left to right.
template <class... Ms>
struct masks {
  std::tuple<Ms...> parts;

  explicit masks(Ms... ms) : parts(std::move(ms)...) {}
  template <class Extents>
  [[nodiscard]] auto bind(const Extents& e) const {
    return std::apply(
        [&](const auto&... m) {
          return mask_rules::all_of<decltype(mask_rules::bound(m, e))...>{{mask_rules::bound(m, e)...}};
        },
        parts);
  }
};

/// One tile of scores to be changed in place: key `first_key + j` of lane q is scores[j * lanes + q].
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

/// A rule of any kind, bound to the extents of one call. Its virtual `apply` is a loop over a tile.
struct bound_mask {
  virtual ~bound_mask() = default;
  /// The keys outside of which everything is hidden.
  [[nodiscard]] virtual key_range range(index batch, index head, index query) const = 0;
  /// Whether `apply` does anything.
  [[nodiscard]] virtual bool has_function() const noexcept = 0;
  virtual void apply(const score_tile<float>& tile) const = 0;
  virtual void apply(const score_tile<double>& tile) const = 0;
};

namespace mask_rules {

using bound_pointer = std::shared_ptr<const bound_mask>;

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
        for (index j = 0; j < t.keys; ++j) {
          index q = 0;
          for (; q + 16 <= t.lanes; q += 16) change<16>(t, j, q);
          for (; q + 8 <= t.lanes; q += 8) change<8>(t, j, q);
          for (; q < t.lanes; ++q) change<1>(t, j, q);
        }
      });
    }
  }
  /// `Lanes` scores of key j, in a copy that no array of a rule's can alias: loads need not wait for stores.
  template <index Lanes, class Real>
  void change(const score_tile<Real>& t, index j, index first) const {
    Real* const row = t.scores + j * t.lanes + first;
    const index* const heads = t.heads + first;
    const index* const queries = t.queries + first;
    Real scores[static_cast<std::size_t>(Lanes)];
    for (index q = 0; q < Lanes; ++q) scores[q] = row[q];
    for (index q = 0; q < Lanes; ++q) {
      scores[q] = static_cast<Real>(rule_(scores[q], t.batch, heads[q], queries[q], t.first_key + j));
    }
    for (index q = 0; q < Lanes; ++q) row[q] = scores[q];
  }
  Rule rule_;
};

/// all_of with one loop over the tile for each rule: loops of one rule become packs where a chain of all of them may not.
class bound_sequence final : public bound_mask {
 public:
  explicit bound_sequence(std::vector<bound_pointer> parts) : parts_(std::move(parts)) {}
  [[nodiscard]] key_range range(index batch, index head, index query) const override {
    key_range whole;
    for (const auto& part : parts_) whole = both(whole, part->range(batch, head, query));
    return whole;
  }
  [[nodiscard]] bool has_function() const noexcept override {
    return std::any_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->has_function(); });
  }
  void apply(const score_tile<float>& tile) const override { apply_to(tile); }
  void apply(const score_tile<double>& tile) const override { apply_to(tile); }

 private:
  template <class Real>
  void apply_to(const score_tile<Real>& t) const {
    const auto changes = [](const auto& part) { return part->has_function(); };
    if (std::count_if(parts_.begin(), parts_.end(), changes) == 1) {
      return (*std::find_if(parts_.begin(), parts_.end(), changes))->apply(t);
    }
    const index n = t.keys * t.lanes;
    std::vector<Real> veils(static_cast<std::size_t>(n), Real{});
    Real* const veil = veils.data();
    Real* const scores = t.scores;
    for (const auto& part : parts_) {
      if (!changes(part)) continue;
      part->apply(t);
      host::dispatch([=] {
        for (index i = 0; i < n; ++i) veil[i] = scores[i] == Real{hidden} ? scores[i] : veil[i];
      });
    }
    host::dispatch([=] {
      for (index i = 0; i < n; ++i) scores[i] = veil[i] == Real{hidden} ? veil[i] : scores[i];
    });
  }
  std::vector<bound_pointer> parts_;
};

inline bound_pointer make_bound(std::convertible_to<bound_pointer> auto bound) { return bound; }
template <class R, class C, class Score, class... Positions>
Score score_of(R (C::*)(Score, Positions...) const);
template <class Rule>
bound_pointer make_bound(Rule rule) {
  require_rule<Rule>();
  static_assert(!requires { requires std::same_as<std::remove_cvref_t<decltype(score_of(&Rule::operator()))>, float>; },
                "regroup: a mask's function takes scores of float and of double, which this one would round: `auto score`");
  return std::make_shared<const bound_mask_of<Rule>>(std::move(rule));
}
template <class... Rules>
bound_pointer make_bound(all_of<Rules...> all) {
  const auto each = [](auto&... rules) { return std::vector<bound_pointer>{make_bound(std::move(rules))...}; };
  return std::make_shared<const bound_sequence>(std::apply(each, all.rules));
}

}  // namespace mask_rules

/// Holds any rule: one of the library's, or a function object (score, batch, head, query, key) -> score or `hidden`. The
/// object may have `range(batch, head, query) -> key_range`, or `bind(const attention_extents&)` that returns such an object.
class attention_mask {
 public:
  attention_mask() : attention_mask(no_mask{}) {}
  template <class M>
  requires(!std::same_as<std::remove_cvref_t<M>, attention_mask>) attention_mask(M m)  // NOLINT: implicit on purpose
      : bind_([m = std::move(m)](const attention_extents& e) { return mask_rules::make_bound(mask_rules::bound(m, e)); }) {}
  /// Rules chosen at run time, applied in this order: a & b & ..., each in a loop of its own over a tile.
  [[nodiscard]] static attention_mask all(std::vector<attention_mask> rules);
  [[nodiscard]] mask_rules::bound_pointer bind(const attention_extents& e) const { return bind_(e); }

 private:
  std::function<mask_rules::bound_pointer(const attention_extents&)> bind_;
};

namespace mask_rules {

struct sequence {
  std::vector<attention_mask> rules;
  [[nodiscard]] bound_pointer bind(const attention_extents& e) const {
    std::vector<bound_pointer> parts;
    for (const attention_mask& rule : rules) parts.push_back(rule.bind(e));
    return std::make_shared<const bound_sequence>(std::move(parts));
  }
};

}  // namespace mask_rules

inline attention_mask attention_mask::all(std::vector<attention_mask> rules) {
  if (rules.empty()) return {};
  if (rules.size() == 1) return std::move(rules.front());
  return mask_rules::sequence{std::move(rules)};
}

template <class A, class B>
requires(mask_rules::bindable<A> || mask_rules::bindable<B>) && mask_rules::usable<A> && mask_rules::usable<B>
auto operator&(const A& a, const B& b) {
  if constexpr (std::same_as<A, attention_mask> || std::same_as<B, attention_mask>) {
    return attention_mask::all({attention_mask(a), attention_mask(b)});
  } else {
    return masks<A, B>(a, b);
  }
}

}  // namespace regroup

// SPDX-License-Identifier: Apache-2.0
// Rules of attention that are chosen at run time, as one rule, so that one kernel serves every choice. Level: element.
#pragma once

#include <optional>
#include <tuple>

#include "regroup/algorithms/attention_rules.hpp"

namespace regroup::tool {

/// Those of the rules that are given, applied as `masks` does: a key is seen where all see it; functions apply left to
/// right, and what one hides stays hidden.
template <class... Rules>
struct given_rules {
  std::tuple<std::optional<Rules>...> rules;

  [[nodiscard]] constexpr key_range range(index batch, index head, index query) const {
    key_range whole;
    const auto narrow = [&](const auto& rule) {
      if (rule.has_value()) whole = mask_rules::both(whole, mask_rules::range(*rule, batch, head, query));
    };
    std::apply([&](const auto&... rule) { (narrow(rule), ...); }, rules);
    return whole;
  }
  template <class Real>
  constexpr Real operator()(Real score, index batch, index head, index query, index key) const {
    constexpr Real minus_infinity = hidden;
    bool hides = false;
    const auto apply = [&]<class Rule>(const std::optional<Rule>& rule) {
      if constexpr (mask_rules::has_function<Rule, Real>) {
        if (!rule.has_value()) return;
        score = static_cast<Real>((*rule)(score, batch, head, query, key));
        hides = hides || score == minus_infinity;
      }
    };
    std::apply([&](const auto&... rule) { (apply(rule), ...); }, rules);
    return hides ? minus_infinity : score;
  }
};

template <class... Masks>
struct given_masks {
  std::tuple<std::optional<Masks>...> masks;

  template <class Extents>
  [[nodiscard]] auto bind(const Extents& e) const {
    const auto bound = [&e]<class Mask>(const std::optional<Mask>& mask) {
      using rule = decltype(mask_rules::bound(*mask, e));
      return mask ? std::optional<rule>(mask_rules::bound(*mask, e)) : std::nullopt;
    };
    return std::apply(
        [&](const auto&... mask) {
          return given_rules<typename decltype(bound(mask))::value_type...>{{bound(mask)...}};
        },
        masks);
  }
};
template <class... Masks>
given_masks(std::tuple<std::optional<Masks>...>) -> given_masks<Masks...>;

}  // namespace regroup::tool

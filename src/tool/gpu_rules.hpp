// SPDX-License-Identifier: Apache-2.0
// Combines the rules of attention that are chosen at run time into one rule, so that one kernel serves every choice. Level:
// element.
#pragma once

#include <optional>
#include <tuple>

#include "regroup/algorithms/attention_rules.hpp"

namespace regroup::tool {

/// A rule that may be absent.
template <class Rule>
struct optional_rule {
  std::optional<Rule> rule;

  [[nodiscard]] constexpr key_range range(index batch, index head, index query) const {
    return rule.has_value() ? mask_rules::range(*rule, batch, head, query) : key_range{};
  }
  template <class Real>
    requires mask_rules::has_function<Rule, Real>
  constexpr Real operator()(Real score, index batch, index head, index query, index key) const {
    return rule.has_value() ? static_cast<Real>((*rule)(score, batch, head, query, key)) : score;
  }
};

/// Applies the rules that are present, in order, as `masks` does.
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
          return mask_rules::all_of<optional_rule<typename decltype(bound(mask))::value_type>...>{{{bound(mask)}...}};
        },
        masks);
  }
};
template <class... Masks>
given_masks(std::tuple<std::optional<Masks>...>) -> given_masks<Masks...>;

}  // namespace regroup::tool

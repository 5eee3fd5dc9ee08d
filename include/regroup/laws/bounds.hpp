// SPDX-License-Identifier: Apache-2.0
// The error that one fold of a shipped monoid may have, computed from its inputs: u is half an ulp of 1, h the depth
// (combines above an element), eta the smallest normal number, c the certified error of our exp. Two folds may differ by
// the sum of their bounds. Where a sum or product of the inputs could leave the range of finite numbers, in some
// grouping, the bound is infinite: then rounding alone can decide between finite, infinite and NaN.
#pragma once

#include <algorithm>
#include <span>
#include <tuple>

#include "regroup/error.hpp"
#include "regroup/laws/bounds_of_sums.hpp"
#include "regroup/laws/bounds_of_weights.hpp"
#include "regroup/laws/image.hpp"
#include "regroup/monoids/fanout.hpp"

namespace regroup::laws {

/// Whether check_laws knows the error of a monoid `M` over elements `X`.
template <class M, class X>
concept has_bound = requires(const M& m, std::span<const X> xs) {
  bound<M>::state(m, xs, index{});
}
|| requires(const M& m, std::span<const X> xs) { m.error_bound(xs, index{}); }
|| is_exact<M>;

template <class M, class X>
errors state_errors(const M& m, std::span<const X> xs, index depth) {
  if constexpr (requires { bound<M>::state(m, xs, depth); }) {
    return bound<M>::state(m, xs, depth);
  } else if constexpr (requires { m.error_bound(xs, depth); }) {
    const auto reals = [](const image& cells) {
      errors found;
      for (const cell& c : cells) {
        if (c.what == cell::kind::real) found.push_back(c.value);
      }
      return found;
    };
    const errors found = reals(image_of(m.error_bound(xs, depth)));
    for (const long double e : found) {
      if (!(e >= 0)) throw_argument("error_bound returned " + text_of(static_cast<double>(e)) + "; errors are 0 or more");
    }
    if constexpr (members::is_transparent<state_of<M>>) {
      const std::size_t needed = reals(image_of(fold(m, lift_all(m, xs).all()))).size();
      if (found.size() < needed) {
        throw_argument("error_bound gives one error for every real of a state, here " + std::to_string(needed) + "; got " +
                       std::to_string(found.size()));
      }
    }
    return found;
  } else {
    return {};  // exact
  }
}

/// Member by member.
template <class... Monoids>
struct bound<fanout<Monoids...>> {
  template <class X>
  requires(has_bound<Monoids, X>&&...) static errors
      state(const fanout<Monoids...>& m, std::span<const X> xs, index depth) {
    errors found;
    std::apply(
        [&](const auto&... member) {
          const auto add = [&](const auto& one) {
            errors e = state_errors(one, xs, depth);
            const image cells = image_of(fold(one, lift_all(one, xs).all()));
            e.resize(static_cast<std::size_t>(
                std::ranges::count_if(cells, [](const cell& c) { return c.what == cell::kind::real; })));
            found.insert(found.end(), e.begin(), e.end());
          };
          (add(member), ...);
        },
        m.members());
    return found;
  }
};

}  // namespace regroup::laws

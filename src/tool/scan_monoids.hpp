// SPDX-License-Identifier: Apache-2.0
// The monoids that `scan` knows by name, and the elements that each takes.
#pragma once

#include <algorithm>
#include <string>

#include "numbers.hpp"
#include "product.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/log_sum_exp.hpp"

namespace regroup::tool {

/// Minimum and maximum of integers; without elements they are the limits of the result's own type.
template <class M>
struct extreme_in : M {
  integer_limits limits;
  explicit extreme_in(element type) : limits(type) {}
  constexpr std::int64_t lower(std::int64_t s) const { return std::clamp(s, limits.lowest, limits.greatest); }
};

/// The type in which a scan computes elements of a type: float32, float64, int64, or boolean (a byte that is 0 or 1).
inline element scanned_in(const std::string& name, element type) {
  if (name == "any" || name == "all") return element::boolean;
  if (name == "log_sum_exp" && !is_float(type)) return element::float64;
  return computed_in(type);
}

/// Calls f(std::type_identity<E>{}) with the element type of a scan in `computed`: a number, or affine's pair.
template <class F>
void with_scanned(const std::string& name, element computed, const F& f) {
  with_computed(computed, [&]<class X>(std::type_identity<X> number) {
    if constexpr (!std::is_same_v<X, std::uint8_t>) {
      if (name == "affine") return f(std::type_identity<affine_map<X>>{});
    }
    f(number);
  });
}

/// Calls f(m) with the monoid over E; `result` is the type of the result's elements. A count is a sum of ones.
template <class E, class F>
void with_scan_monoid(const std::string& name, element result, const F& f) {
  using X = typename number_of<E>::type;
  if constexpr (!std::is_same_v<E, X>) {
    f(affine<X>{});
  } else if constexpr (std::is_same_v<E, std::uint8_t>) {
    if (name == "any") return f(any{});
    f(all{});
  } else {
    if (name == "sum" || name == "count") f(plus<E>{});
    if (name == "product") f(product<E>());
    if constexpr (std::is_integral_v<E>) {
      if (name == "min") f(extreme_in<minimum<E>>(result));
      if (name == "max") f(extreme_in<maximum<E>>(result));
    } else {
      if (name == "min") f(minimum<E>{});
      if (name == "max") f(maximum<E>{});
      if (name == "log_sum_exp") f(log_sum_exp<E>{});
    }
  }
}

}  // namespace regroup::tool

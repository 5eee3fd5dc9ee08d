// SPDX-License-Identifier: Apache-2.0
// The definition and its bounds (definition.hpp), for tests of the host's attention.
#pragma once

#include "cases.hpp"
#include "definition.hpp"

namespace cases {

/// What the rounding of a weight costs.
template <class T>
double weight_u() {
  return narrows() && std::same_as<T, regroup::bfloat16> ? narrow_weight_u<T> : 0;
}

/// And what its products are.
template <class T>
products products_of() {
  return {.are_of_integers = sizeof(T) == 2 && fixes_points() && weight_u<T>() == 0};
}

}  // namespace cases

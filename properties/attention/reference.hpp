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

}  // namespace cases

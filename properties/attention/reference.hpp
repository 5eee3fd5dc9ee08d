// SPDX-License-Identifier: Apache-2.0
// The definition and its bounds (definition.hpp), for tests of the host's attention.
#pragma once

#include <optional>
#include <vector>

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

/// The states of leaves, absent where no key is seen, in the contract's order.
using mean = regroup::softmax_mean<float>;
using leaf_state = std::optional<mean::state>;

inline leaf_state perfect(const mean& m, const std::vector<leaf_state>& leaves, std::size_t first, std::size_t count) {
  if (first >= leaves.size()) return std::nullopt;
  if (count == 1) return leaves[first];
  const leaf_state a = perfect(m, leaves, first, count / 2);
  const leaf_state b = perfect(m, leaves, first + count / 2, count / 2);
  return a && b ? leaf_state(m(*a, *b)) : a ? a : b;
}

}  // namespace cases

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/scaled_product.hpp"

namespace regroup::tool {

/// The product as the tool computes it: integers wrap, floats neither overflow nor underflow on the way.
template <class X>
constexpr auto product() {
  if constexpr (std::is_integral_v<X>) {
    return multiplies<X>{};
  } else {
    return scaled_product<X>{};
  }
}

}  // namespace regroup::tool

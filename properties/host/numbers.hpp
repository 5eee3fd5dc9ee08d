// SPDX-License-Identifier: Apache-2.0
// Numbers between -8 and 8 with a long period.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include "regroup/executor.hpp"
#include "regroup/monoids/affine.hpp"

template <class T>
std::vector<T> numbers(regroup::index n) {
  std::vector<T> xs(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const float x = static_cast<float>(i * 2654435761U % 1009) / 64 - 8;
    if constexpr (std::is_same_v<T, regroup::affine_map<float>>) {
      xs[i] = {x / 8, x};
    } else {
      xs[i] = static_cast<T>(x);
    }
  }
  return xs;
}

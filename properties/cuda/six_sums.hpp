// SPDX-License-Identifier: Apache-2.0
// An operator whose state is its own answer, as large as a scan on a device takes: one element is staged at a time.
#pragma once

#include <array>
#include <cstddef>

struct six_sums {
  using state = std::array<double, 6>;
  constexpr state identity() const { return {-0.0, -0.0, -0.0, -0.0, -0.0, -0.0}; }
  constexpr state lift(double x) const { return {x, x * 2, -x, x * x, 1, x * 8}; }
  constexpr state operator()(const state& a, const state& b) const {
    state c = a;
    for (std::size_t i = 0; i < c.size(); ++i) c[i] += b[i];
    return c;
  }
};

// SPDX-License-Identifier: Apache-2.0
// The README's operators: (max, sum of exp) as everybody writes it first, with the choice that makes it lawful, and so
// that a compiler makes packs of it. `constexpr` is all that a GPU asks for: nvcc calls such members there too.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "regroup/math.hpp"

struct obvious {
  struct state { float max, sum; };
  static constexpr bool is_commutative = true;
  constexpr state identity() const { return {-std::numeric_limits<float>::infinity(), 0}; }
  constexpr state lift(float x) const { return {x, 1}; }
  constexpr state operator()(state a, state b) const {             // a stands left of b
    const float m = std::max(a.max, b.max);
    return {m, a.sum * std::exp(a.max - m) + b.sum * std::exp(b.max - m)};
  }
  constexpr float lower(state s) const { return s.max + std::log(s.sum); }
};

struct fixed : obvious {
  constexpr state operator()(state a, state b) const {
    const float m = std::max(a.max, b.max);
    const auto factor = [m](float max) { return max == m ? 1 : std::exp(max - m); };
    return {m, a.sum * factor(a.max) + b.sum * factor(b.max)};
  }
};

struct packed : fixed {
  constexpr state operator()(state a, state b) const {
    namespace math = regroup::math;  // by name: a plain exp may be the C library's
    const float m = std::max(a.max, b.max);
    const auto factor = [m](float max) { return math::select(max == m, 1.0f, math::exp(max - m)); };
    return {m, a.sum * factor(a.max) + b.sum * factor(b.max)};
  }
};

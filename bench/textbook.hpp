// SPDX-License-Identifier: Apache-2.0
// The operators as one writes them first, on the standard library's mathematics: correct, and what other libraries'
// loops are usually given. Monoids in form, so that our loop can run them too.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/extremum.hpp"

namespace bench::textbook {

struct log_sum_exp {
  struct state {
    float m, s;
  };
  static constexpr bool is_commutative = true;
  state identity() const { return {-std::numeric_limits<float>::infinity(), 0}; }
  state lift(float x) const { return {x, 1}; }
  state operator()(state a, state b) const {
    const float m = std::max(a.m, b.m);
    const auto scaled = [m](state s) { return s.m == m ? s.s : s.s * std::exp(s.m - m); };
    return {m, scaled(a) + scaled(b)};
  }
  float lower(state s) const { return s.m + std::log(s.s); }
};

struct moments {  // Chan, Golub, LeVeque 1982
  struct state {
    regroup::index count;
    float mean, deviation;
  };
  static constexpr bool is_commutative = true;
  state identity() const { return {0, 0, 0}; }
  state lift(float x) const { return {1, x, 0}; }
  state operator()(state a, state b) const {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const auto n = a.count + b.count;
    const float apart = b.mean - a.mean, share = static_cast<float>(b.count) / static_cast<float>(n);
    return {n, a.mean + apart * share, a.deviation + b.deviation + apart * apart * static_cast<float>(a.count) * share};
  }
};

struct plus {
  static constexpr bool is_commutative = true;
  float identity() const { return 0; }
  float operator()(float a, float b) const { return a + b; }
};

struct minmax {
  struct state {
    float min, max;
  };
  static constexpr bool is_commutative = true;
  state identity() const { return {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}; }
  state lift(float x) const { return {x, x}; }
  state operator()(state a, state b) const { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
};

struct argmax {
  static constexpr bool is_commutative = true;
  using state = regroup::indexed<float>;
  state identity() const {
    return {-std::numeric_limits<float>::infinity(), std::numeric_limits<regroup::index>::max()};
  }
  state operator()(state a, state b) const {
    return a.value > b.value || (a.value == b.value && a.position < b.position) ? a : b;
  }
};

struct affine {
  using state = regroup::affine_map<float>;
  state identity() const { return {1, 0}; }
  state operator()(state l, state r) const { return {r.a * l.a, r.a * l.b + r.b}; }
};

struct min_plus {
  struct state {
    double aa, ab, ba, bb;
  };
  state identity() const {
    const double never = std::numeric_limits<double>::infinity();
    return {0, never, never, 0};
  }
  template <class X>
  state lift(const X& x) const {
    return {x.aa, x.ab, x.ba, x.bb};
  }
  state operator()(state x, state y) const {
    return {std::min(x.aa + y.aa, x.ab + y.ba), std::min(x.aa + y.ab, x.ab + y.bb), std::min(x.ba + y.aa, x.bb + y.ba),
            std::min(x.ba + y.ab, x.bb + y.bb)};
  }
};

/// All statistics of `four` in one state.
struct four {
  struct state {
    moments::state spread;
    float min, max;
  };
  static constexpr bool is_commutative = true;
  state identity() const { return {moments{}.identity(), minmax{}.identity().min, minmax{}.identity().max}; }
  state lift(float x) const { return {moments{}.lift(x), x, x}; }
  state operator()(const state& a, const state& b) const {
    return {moments{}(a.spread, b.spread), std::min(a.min, b.min), std::max(a.max, b.max)};
  }
};

}  // namespace bench::textbook

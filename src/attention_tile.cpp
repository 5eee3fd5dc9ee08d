// SPDX-License-Identifier: Apache-2.0
#include "attention_tile.hpp"

#include "regroup/host/dispatch.hpp"
#include "regroup/math.hpp"

namespace regroup::tiles {

namespace {

template <class Real>
void multiply_add_anywhere(const products<Real>& p) {
  for (std::int64_t r = 0; r < p.rows; ++r) {
    Real* const acc = p.acc + r * p.acc_row;
    for (std::int64_t x = 0; x < p.steps; ++x) {
      const Real a = p.a[r * p.a_row + x * p.a_step];
      const Real* const b = p.b + x * p.b_step;
      for (std::int64_t i = 0; i < p.lanes; ++i) acc[i] = math::fma(a, b[i], acc[i]);
    }
  }
}

template <class Real>
void dispatched(const products<Real>& p) {
  switch (host::current_target()) {
#if defined(__x86_64__)
    case host::target::x86_64_v4:
      return multiply_add_v4(p);
    case host::target::x86_64_v3:
      return multiply_add_v3(p);
#endif
    default:
      return multiply_add_anywhere(p);
  }
}

}  // namespace

void multiply_add(const products<float>& p) { dispatched(p); }
void multiply_add(const products<double>& p) { dispatched(p); }

}  // namespace regroup::tiles

// SPDX-License-Identifier: Apache-2.0
// tanh on the terms of math.hpp: selects, explicit fma and one division, so a loop of calls becomes packs and every
// instruction set gives the same bits. Level: element.
#pragma once

#include "regroup/math.hpp"

namespace regroup::math {

/// The largest relative error of `tanh` in units of u. float: measured over every float by properties/math/tanh.cpp,
/// rounded up; double: sampled against MPFR, rounded up with a margin, not proven.
template <std::floating_point Real>
inline constexpr Real tanh_error = std::same_as<Real, float> ? Real(3) : Real(3.2);

/// tanh(x) within `tanh_error` u; odd, -1 and 1 at the infinities, NaN for NaN. Below 9/16 x + x^3 P(x^2), a minimax
/// polynomial in x^2; from there on 1 - 2 / (exp(2 x) + 1). One exp, one division; long double: the standard library.
template <std::floating_point Real>
constexpr Real tanh(Real x) {
  if constexpr (detail::binary<Real>) {
    const Real a = abs(x);
    const Real z = a * a;
    Real p;
    if constexpr (std::same_as<Real, float>) {
      p = detail::polynomial(z, -0x1.555548p-2f, 0x1.110c72p-3f, -0x1.b90948p-5f, 0x1.582fb4p-6f, -0x1.95002cp-8f);
    } else {
      p = detail::polynomial(z, -0x1.555555555554bp-2, 0x1.11111111102b6p-3, -0x1.ba1ba1b935e3fp-5,
                             0x1.664f4849563b4p-6, -0x1.226e2d0257379p-7, 0x1.d6d247923c3a3p-9, -0x1.7d8b95c76fe72p-10,
                             0x1.3460abbe3c320p-11, -0x1.e80a8c56ffcfbp-13, 0x1.597251cdef1ecp-14,
                             -0x1.3d27c720e0d2bp-16);
    }
    const Real near = fma(a * z, p, a);
    const Real far = Real(1) - Real(2) / (exp(a + a) + Real(1));
    const Real size = select(a < Real(0.5625), near, far);
    return std::bit_cast<Real>(detail::bits(size) | (detail::bits(x) & detail::sign<Real>));
  } else {
    return std::tanh(x);
  }
}

}  // namespace regroup::math

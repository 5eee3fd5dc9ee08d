// SPDX-License-Identifier: Apache-2.0
// A product in which nothing overflows or underflows on the way: a number is mantissa 2^exponent, so 0, 1e30, 0, 1e30
// give 0 in any grouping, where lanes of plain products meet 0 with infinity. Powers of two change no rounding, so the
// bits are those of `multiplies` wherever that stays among normal numbers. The exponent is an integer held in a double:
// exact up to 2^53, and its infinities and NaN are those of a logarithm (-inf + n = -inf, -inf + inf = NaN), which is
// just what 0 and infinity do in a product; so a combine needs no case for them. Identity (1, 0). Level: element.
// Commutes bitwise; associates within the bound.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>

#include "regroup/math.hpp"
#include "regroup/monoid.hpp"

namespace regroup {

/// The product of elements converted to Real, 1 for nothing. 0 (its sign the product of the signs) if there is a 0 and
/// nothing infinite, infinity if there is one and no 0, NaN if 0 meets infinity or an element is NaN; denormals are ordinary
/// numbers. |error| <= n u |product| of n elements; a denormal answer is rounded once more, by at most half the smallest
/// denormal. It overflows only if the answer does. A combine costs one product and a few bit operations.
template <std::floating_point Real>
requires math::detail::binary<Real>
struct scaled_product {
  using element = Real;
  struct state {
    Real mantissa;    ///< 1 <= |mantissa| < 2
    double exponent;  ///< -inf for 0, +inf for infinity, NaN for NaN; otherwise an integer
  };
  static constexpr bool is_commutative = true;
  constexpr state identity() const { return {1, 0}; }
  template <class X>
  requires std::convertible_to<X, Real>
  constexpr state lift(const X& x) const {
    const Real value = static_cast<Real>(x);
    const double size = static_cast<double>(math::abs(value));
    // A denormal float is a normal double; a denormal double is raised.
    constexpr double smallest = std::numeric_limits<double>::min();
    constexpr bool raises = std::same_as<Real, double>;
    const bool raised = raises && size < smallest;
    const double normal = size * math::select(raised, 0x1p+64, 1.0);
    // Its exponent, put below 2^52, is a number at once.
    const double biased = std::bit_cast<double>((bits(normal) >> 52) | bits(0x1p+52));
    const double exponent = biased - math::select(raised, 0x1p+52 + 1023 + 64, 0x1p+52 + 1023);
    const double nonzero = math::select(size > 0, exponent, -infinity);
    const double fraction = std::bit_cast<double>((bits(normal) & (bits(smallest) - 1)) | bits(1.0));
    return {with_sign(static_cast<Real>(fraction), value), math::select(size < infinity, nonzero, size)};
  }
  constexpr state operator()(state a, state b) const {
    const Real product = a.mantissa * b.mantissa;  // in [1, 4): the top bit of its exponent says where
    const auto carry = (math::detail::bits(product) >> (8 * sizeof(Real) - 2)) & 1;
    const Real mantissa = std::bit_cast<Real>(math::detail::bits(product) - (carry << math::detail::stored<Real>));
    return {mantissa, (a.exponent + b.exponent) + math::select(carry != 0, 1.0, 0.0)};
  }
  constexpr Real lower(state s) const {
    // Past the range of Real on both sides; in two steps, the first exact, for the power alone may be past it.
    constexpr double lowest = std::numeric_limits<Real>::min_exponent - 100;
    constexpr double highest = std::numeric_limits<Real>::max_exponent + 100;
    const double above = s.exponent > lowest ? s.exponent : lowest;
    const int exponent = static_cast<int>(above < highest ? above : highest);
    const int last = exponent < 0 ? -600 : 600;
    const double exact = static_cast<double>(s.mantissa) * math::power_of_two<double>(exponent - last);
    const Real value = static_cast<Real>(exact * math::power_of_two<double>(last));
    return math::select(s.exponent == s.exponent, value, std::numeric_limits<Real>::quiet_NaN());
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  static constexpr std::uint64_t bits(double x) { return math::detail::bits(x); }
  static constexpr Real with_sign(Real size, Real sign) {
    return std::bit_cast<Real>(math::detail::bits(size) | (math::detail::bits(sign) & math::detail::sign<Real>));
  }
};

}  // namespace regroup

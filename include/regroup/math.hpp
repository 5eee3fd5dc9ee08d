// SPDX-License-Identifier: Apache-2.0
// The scalar mathematics of monoids: one definition for every instruction set, host and device, with the same bits.
// Every multiply-add is an explicit fma and no product ever meets a sum, so no compiler has anything to contract;
// every choice is a select, so a loop of calls becomes packs. Without hardware fma all is right and slow.
// Call them by name, `math::exp`: after `using namespace regroup::math` a plain `exp` of a double is the C library's, and so
// may be one of a float. Level: element; includes nothing of ours. g++ evaluates everything here at compile time too.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__NO_SIGNED_ZEROS__) || \
    defined(__RECIPROCAL_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "regroup: leave -ffast-math out; it takes NaN, infinities, -0 and the order of combination from every operator, \
and so do -ffinite-math-only, -fassociative-math, -fno-signed-zeros and -freciprocal-math."
#endif

namespace regroup::math {

/// Certified bounds: the largest relative error of `exp`, `exp2` and `log` in units of u (2^-24 for float, 2^-53 for
/// double), where the result is not flushed to 0. float: measured over every float by properties/programs/certify_exp,
/// rounded up to three digits. double: sampled against MPFR by properties/math, rounded up with a margin, not proven.
template <std::floating_point Real>
inline constexpr Real exp_error = std::same_as<Real, float> ? Real(1.29) : Real(1.4);
template <std::floating_point Real>
inline constexpr Real exp2_error = std::same_as<Real, float> ? Real(1.14) : Real(1.25);
template <std::floating_point Real>
inline constexpr Real log_error = std::same_as<Real, float> ? Real(1.34) : Real(1.4);
/// And of `decay`, which is e^x within `exp_error` + `decay_slope` |x|.
template <std::floating_point Real>
inline constexpr Real decay_slope = std::same_as<Real, float> ? Real(0.047) : Real(0);

/// The smallest x whose exponential is a normal number; below it `exp(x)` is exactly 0. And the largest x whose
/// exponential is finite. (Meaningless for long double, which is handed to the standard library.)
template <std::floating_point Real>
inline constexpr Real exp_lowest = std::same_as<Real, float> ? Real(-0x1.5d589ep+6) : Real(-0x1.6232bdd7abcd2p+9);
template <std::floating_point Real>
inline constexpr Real exp_highest = std::same_as<Real, float> ? Real(0x1.62e42ep+6) : Real(0x1.62e42fefa39efp+9);

/// a b + c, rounded once.
template <std::floating_point Real>
constexpr Real fma(Real a, Real b, Real c) {
  if constexpr (std::same_as<Real, float>) {
    return __builtin_fmaf(a, b, c);
  } else if constexpr (std::same_as<Real, double>) {
    return __builtin_fma(a, b, c);
  } else {
    return __builtin_fmal(a, b, c);
  }
}

/// a b, rounded once, which no compiler joins to a sum that follows. (A device's takes an fma that adds -0 for a plain
/// product, from sm_100 on.)
template <std::floating_point Real>
constexpr Real product(Real a, Real b) {
#ifdef __CUDA_ARCH__
  if (!std::is_constant_evaluated()) {
    if constexpr (std::same_as<Real, float>) {
      return __fmul_rn(a, b);
    } else if constexpr (std::same_as<Real, double>) {
      return __dmul_rn(a, b);
    }
  }
#endif
  return fma(a, b, Real{-0.0});
}

namespace detail {

template <class Real>
concept binary = std::same_as<Real, float> || std::same_as<Real, double>;
template <binary Real>
using bits_of = std::conditional_t<std::same_as<Real, float>, std::uint32_t, std::uint64_t>;
template <binary Real>
inline constexpr int stored = std::numeric_limits<Real>::digits - 1;  // bits of mantissa in memory: 23 or 52
template <binary Real>
inline constexpr bits_of<Real> sign = bits_of<Real>{1} << (sizeof(Real) * 8 - 1);
template <class Real>
inline constexpr Real infinity = std::numeric_limits<Real>::infinity();
template <class Real>
inline constexpr Real not_a_number = std::numeric_limits<Real>::quiet_NaN();

template <binary Real>
constexpr bits_of<Real> bits(Real x) {
  return std::bit_cast<bits_of<Real>>(x);
}

// which ? a : b by a mask. Where a branch of ?: holds arithmetic that may trap, g++ moves it into the branch, and a
// loop with control flow never becomes packs.
template <binary Real>
constexpr Real select(bool which, Real a, Real b) {
#ifdef __CUDA_ARCH__
  return which ? a : b;  // one instruction of a device's
#else
  const bits_of<Real> mask = bits_of<Real>{0} - static_cast<bits_of<Real>>(which);
  return std::bit_cast<Real>(bits(b) ^ ((bits(a) ^ bits(b)) & mask));
#endif
}

// Horner's rule: first + x (second + x (...)). x may be many numbers, of a type with an fma of its own.
template <class Number, class Real>
constexpr Real polynomial(const Number&, Real last) {
  return last;
}
template <class Number, class Real, class... Rest>
constexpr Number polynomial(const Number& x, Real first, Rest... rest) {
  return fma(polynomial(x, rest...), x, first);
}

// Adding and subtracting this rounds to an integer, which is then also in the low bits of the sum.
template <binary Real>
inline constexpr Real rounder = std::same_as<Real, float> ? Real(0x1.8p+23) : Real(0x1.8p+52);

// The sign bits of both and-ed, all others or-ed: of two equal numbers the one that is not -0, of x and NaN a NaN.
template <binary Real>
constexpr Real same_or_nan(Real a, Real b) {
  return std::bit_cast<Real>((bits(a) | bits(b)) ^ ((bits(a) ^ bits(b)) & sign<Real>));
}

// p 2^n for p in (0.7, 1.42), the scale added to p's exponent last of all; `shifted` holds n in its low bits. Selects
// then give 0 below `lowest`, infinity above `highest` and NaN for NaN, whatever p was there. (Where the bare sum is
// taken it is infinite or NaN, contracted with a caller's product or not.)
template <binary Real>
constexpr Real scaled(Real p, Real shifted, Real x, Real lowest, Real highest) {
  const Real finite = std::bit_cast<Real>(bits(p) + (bits(shifted) << stored<Real>));
  return select(x <= highest, select(x < lowest, Real(0), finite), x + infinity<Real>);
}

// e^x = p 2^n: p, n, and n + Bias in the low bits of `shifted`. NaN for NaN; of no use where e^x leaves the normal range.
// ln 2 is taken in one part or in two (Cody and Waite). A Number is a Real, or many of them that take each step together. (A
// bias cannot round otherwise: log2(e) x is no half of an odd number.)
template <binary Real, int Parts, int Bias = 0, class Number = Real>
struct exp_parts {
  Number shifted;
  Number n;
  Number p;
  constexpr explicit exp_parts(const Number& x)
      : shifted(fma(x, Real(0x1.71547652b82fep+0), rounder<Real> + Real(Bias))),
        n(shifted - (rounder<Real> + Real(Bias))),
        p(power(x)) {}

 private:
  constexpr Number power(const Number& x) const {
    constexpr bool single = std::same_as<Real, float>;
    // x - n ln 2: the first fma is exact (its result is a multiple of u/2 below 1/2), the second adds ln 2's low part.
    Number r = fma(n, single ? Real(-0x1.62e43p-1) : Real(-0x1.62e42fefa39efp-1), x);
    if constexpr (Parts == 2) r = fma(n, single ? Real(0x1.05c61p-29) : Real(-0x1.abc9e3b39803fp-56), r);
    if constexpr (single) {
      return polynomial(r, 1.0f, 1.0f, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558aep-5f, 0x1.123984p-7f, 0x1.6a4f36p-10f);
    } else {
      return polynomial(r, 1.0, 1.0, 0x1.000000000000ap-1, 0x1.555555555550cp-3, 0x1.555555555079ap-5,
                        0x1.111111112478ap-7, 0x1.6c16c1843b316p-10, 0x1.a01a0137e93c6p-13, 0x1.a0199a0452006p-16,
                        0x1.71df0d0a68fc9p-19, 0x1.28ad69326d9b6p-22, 0x1.ad9f43f964f69p-26);
    }
  }
};
// Those of `decay`, which multiplies p by the power of two whose exponent, biased, is in `shifted`.
template <binary Real, class Number = Real>
using decay_parts = exp_parts<Real, std::same_as<Real, float> ? 1 : 2, std::numeric_limits<Real>::max_exponent - 1, Number>;

template <binary Real>
constexpr Real exp2(Real x) {
  // Of half of x: were x a caller's product, a bare x + rounder could be contracted with it.
  const Real shifted = fma(x, Real(0.5), rounder<Real> / 2);
  const Real f = fma(Real(-2), shifted - rounder<Real> / 2, x);
  Real p;
  if constexpr (std::same_as<Real, float>) {
    p = polynomial(f, 1.0f, 0x1.62e43p-1f, 0x1.ebfbdcp-3f, 0x1.c6af7ap-5f, 0x1.3b2dd4p-7f, 0x1.5f0954p-10f,
                   0x1.41787ap-13f);
  } else {
    p = polynomial(f, 1.0, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c59cp-3, 0x1.c6b08d704a0d4p-5, 0x1.3b2ab6fba11e9p-7,
                   0x1.5d87fe78b3bbbp-10, 0x1.4309130c05768p-13, 0x1.ffcbfbf8c8477p-17, 0x1.62bfcdcfbef1bp-20,
                   0x1.b5260d731113ap-24, 0x1.e611bf199ea67p-28, 0x1.e80f78dd4ae6bp-32);
  }
  constexpr int top = std::numeric_limits<Real>::max_exponent;
  return scaled(p, shifted, x, Real(2 - top), std::bit_cast<Real>(bits(Real(top)) - 1));
}

// log(1 + f) - f for f in [sqrt(1/2) - 1, sqrt(2) - 1], plus `low`.
constexpr float log_tail(float f, float low) {
  const float q = polynomial(f, -0.5f, 0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a01ep-3f, -0x1.54728cp-3f, 0x1.22d90ep-3f,
                             -0x1.0d821ep-3f, 0x1.055f1cp-3f, -0x1.38ca56p-4f);
  return fma(f * f, q, low);
}
constexpr double log_tail(double f, double low) {
  const double s = f / (2.0 + f);  // log(1 + f) = 2 atanh(s) = f - f^2/2 + s (f^2/2 + s^2 (...))
  const double z = s * s;
  const double q = polynomial(z, 0x1.5555555555592p-1, 0x1.999999997ff7dp-2, 0x1.24924941d8b03p-2, 0x1.c71c521cde51ap-3,
                              0x1.74663af9dad51p-3, 0x1.39a21e69cf048p-3, 0x1.2f018859b3effp-3);
  const double half = 0.5 * f;
  const double rest = fma(s, fma(z, q, half * f), low);
  return fma(-half, f, rest);
}

template <binary Real>
constexpr Real log(Real x) {
  constexpr bool single = std::same_as<Real, float>;
  constexpr Real lift = single ? Real(32) : Real(64);  // of denormals, in powers of two
  constexpr Real smallest = std::numeric_limits<Real>::min();
  constexpr auto one = bits(Real(1));
  constexpr auto root = bits(Real(0x1.6a09e667f3bcdp-1));  // sqrt(1/2)
  constexpr Real integers = single ? Real(0x1p+23) : Real(0x1p+52);
  constexpr Real bias = Real(std::numeric_limits<Real>::max_exponent - 1);
  const bool raised = x < smallest;
  const Real normal = x * select(raised, single ? Real(0x1p+32) : Real(0x1p+64), Real(1));
  // normal = 2^k (1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1)
  const auto biased = (bits(normal) + (one - root)) >> stored<Real>;
  const Real f = std::bit_cast<Real>(bits(normal) - (biased << stored<Real>)+one) - Real(1);
  const Real k = std::bit_cast<Real>(biased | bits(integers)) - select(raised, integers + bias + lift, integers + bias);
  // k ln 2 + f as big + small; the remainder keeps the error near half a unit in the last place.
  const Real big = fma(k, single ? Real(0x1.62e43p-1) : Real(0x1.62e42fefa39efp-1), f);
  const Real back = fma(k, single ? Real(-0x1.62e43p-1) : Real(-0x1.62e42fefa39efp-1), big);
  const Real low = k * (single ? Real(-0x1.05c61p-29) : Real(0x1.abc9e3b39803fp-56));
  const Real finite = big + (log_tail(f, low) + (f - back));
  const Real below = select(x < 0, not_a_number<Real>, -infinity<Real>);
  const Real positive = select(x < infinity<Real>, finite, x);  // infinity and NaN
  return select(x <= 0, below, positive);
}

}  // namespace detail

/// |x|; clears the sign of NaN too.
template <std::floating_point Real>
constexpr Real abs(Real x) {
  if constexpr (detail::binary<Real>) {
    return std::bit_cast<Real>(detail::bits(x) & ~detail::sign<Real>);
  } else {
    return __builtin_fabsl(x);
  }
}

/// which ? a : b, both evaluated: a loop of such choices becomes packs whatever the two cost.
template <std::floating_point Real>
constexpr Real select(bool which, Real a, Real b) {
  if constexpr (detail::binary<Real>) {
    return detail::select(which, a, b);
  } else {
    return which ? a : b;
  }
}

/// Whether x is NaN.
template <std::floating_point Real>
constexpr bool is_nan(Real x) {
  return x != x;
}

/// Whether x is neither infinite nor NaN.
template <std::floating_point Real>
constexpr bool is_finite(Real x) {
  return abs(x) <= std::numeric_limits<Real>::max();
}

/// The larger of a and b, with -0 < +0; NaN if either is NaN.
template <std::floating_point Real>
constexpr Real max(Real a, Real b) {
  if constexpr (detail::binary<Real>) {
    // Each select is one maxps; they differ only where a and b are equal or unordered.
    return detail::same_or_nan(a > b ? a : b, b > a ? b : a);
  } else {
    return a != a || b != b ? a + b : a > b || (a == b && !__builtin_signbit(a)) ? a : b;
  }
}

/// The smaller of a and b, with -0 < +0; NaN if either is NaN.
template <std::floating_point Real>
constexpr Real min(Real a, Real b) {
  if constexpr (detail::binary<Real>) {
    const Real left = a < b ? a : b;
    const Real right = b < a ? b : a;
    return std::bit_cast<Real>(detail::bits(left) | detail::bits(right));
  } else {
    return a != a || b != b ? a + b : a < b || (a == b && __builtin_signbit(a)) ? a : b;
  }
}

/// 2^n, exactly, for n in the range of normal numbers (float: -126 to 127, double: -1022 to 1023); no other n.
template <std::floating_point Real>
constexpr Real power_of_two(int n) {
  if constexpr (detail::binary<Real>) {
    using word = detail::bits_of<Real>;
    constexpr int bias = std::numeric_limits<Real>::max_exponent - 1;
    return std::bit_cast<Real>(static_cast<word>(n + bias) << detail::stored<Real>);
  } else {
    return __builtin_ldexpl(Real(1), n);
  }
}

/// e^x within `exp_error` u (float: 1 ulp). 1 at -0 and +0; below `exp_lowest` exactly 0, so no result is denormal;
/// above `exp_highest` infinity; NaN for NaN. About 20 instructions a pack; long double goes to the standard library.
/// Cody and Waite's reduction by two fma, a near-minimax polynomial (degree 6 or 11), the power of two applied last.
template <std::floating_point Real>
constexpr Real exp(Real x) {
  if constexpr (detail::binary<Real>) {
    if (std::is_constant_evaluated()) {  // compilers refuse to fold infinity - infinity
      if (is_nan(x)) return x;
      if (x > exp_highest<Real>) return detail::infinity<Real>;
      if (x < exp_lowest<Real>) return 0;
    }
    const detail::exp_parts<Real, 2> e(x);
    return detail::scaled(e.p, e.shifted, x, exp_lowest<Real>, exp_highest<Real>);
  } else {
    return std::exp(x);
  }
}

/// e^x for x <= 0, and NaN for NaN: the weight of what lies -x below a maximum, within (exp_error + decay_slope |x|) u;
/// exactly 1 at -0 and +0, exactly 0 below `exp_lowest`. float takes ln 2 as one float, which is wrong by 0.046 u: the
/// rounding of the difference x has cost |x| u before. The power of two is a factor here: exact, and NaN stays NaN.
template <std::floating_point Real>
constexpr Real decay(Real x) {
  if constexpr (detail::binary<Real>) {
    if (std::is_constant_evaluated() && !(x >= exp_lowest<Real>)) return is_nan(x) ? x : Real(0);  // as in exp
    const detail::decay_parts<Real> e(x);
    const Real scale = std::bit_cast<Real>(detail::bits(e.shifted) << detail::stored<Real>);
    return select(x < exp_lowest<Real>, Real(0), e.p * scale);
  } else {
    return std::exp(x);
  }
}

/// 2^x within `exp2_error` u (float: 1 ulp), exact at integers. Below the smallest normal result (x < -126 for float,
/// x < -1022 for double) exactly 0; from 128 or 1024 on infinity; NaN for NaN. long double: the standard library.
template <std::floating_point Real>
constexpr Real exp2(Real x) {
  if constexpr (detail::binary<Real>) {
    if (std::is_constant_evaluated()) {
      if (is_nan(x)) return x;
      if (x >= std::numeric_limits<Real>::max_exponent) return detail::infinity<Real>;
      if (x < 2 - std::numeric_limits<Real>::max_exponent) return 0;
    }
    return detail::exp2(x);
  } else {
    return std::exp2(x);
  }
}

/// The natural logarithm within `log_error` u (1 ulp), denormal x included. log(1) = +0, -infinity at -0 and +0, NaN
/// below 0 and for NaN, infinity at infinity. double divides once; long double: the standard library.
template <std::floating_point Real>
constexpr Real log(Real x) {
  if constexpr (detail::binary<Real>) {
    return detail::log(x);
  } else {
    return std::log(x);
  }
}

}  // namespace regroup::math

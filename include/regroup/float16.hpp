// SPDX-License-Identifier: Apache-2.0
// 16-bit floating point as storage: two bytes that widen exactly to float and are rounded back to nearest even.
// Nothing is computed in 16 bits: a fold widens each element first, so the law is widen(narrow(x)) == x for every x
// that 16 bits can hold. Conversions are integer selects without branches, so loops of them become packs; a device's are its
// own, with the same bits.
// Level: element; includes nothing of ours.
#pragma once

#if __cplusplus < 202002L
#error "regroup: this library is C++20: compile with -std=c++20, with nvcc too"
#endif

#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace regroup {

/// x as a float, rounded to odd: an inexact one has an odd last bit, so that rounding it to fewer bits rounds x once.
template <class Real>
constexpr float rounded_to_odd(Real x) {
  const auto nearest = static_cast<float>(x);
  const auto b = std::bit_cast<std::uint32_t>(nearest);
  if (static_cast<Real>(nearest) == x || x != x || b % 2 == 1) return nearest;
  const bool is_beyond = x < 0 ? static_cast<Real>(nearest) < x : x < static_cast<Real>(nearest);
  return std::bit_cast<float>(is_beyond ? b - 1 : b + 1);
}

/// IEEE 754 binary16: 1 sign, 5 exponent, 10 mantissa bits. Two trivially copyable bytes; the value is indeterminate
/// until assigned. Converts to float exactly (denormals and infinities included; NaN becomes quiet) and from floats of any
/// length explicitly.
struct float16 {
  std::uint16_t bits;

  float16() = default;
  /// Rounds to nearest, ties to even; from 65520 on the result is infinite; NaN stays a (quiet) NaN of the same sign.
  explicit constexpr float16(float x) : bits(narrow(x)) {}
  template <class Real>
    requires std::is_same_v<Real, double> || std::is_same_v<Real, long double>
  explicit constexpr float16(Real x) : float16(rounded_to_odd(x)) {}
  constexpr operator float() const { return widened_from(bits); }

  /// The number whose representation is these 16 bits.
  static constexpr float16 from_bits(std::uint16_t b) {
    float16 x{};
    x.bits = b;
    return x;
  }

 private:
  static constexpr std::uint16_t narrow(float x);
  // Static, on bits by value: a member taking `this` is inlined too late for g++ to see past the struct and vectorise.
  static constexpr float widened_from(std::uint16_t b);
};

/// bfloat16: the upper half of a float (1 sign, 8 exponent, 7 mantissa bits). Two trivially copyable bytes; the value
/// is indeterminate until assigned. Converts to float exactly and from floats of any length explicitly.
struct bfloat16 {
  std::uint16_t bits;

  bfloat16() = default;
  /// Rounds to nearest, ties to even; what rounds past the largest is infinite; NaN stays a (quiet) NaN of its sign.
  explicit constexpr bfloat16(float x) : bits(narrow(x)) {}
  template <class Real>
    requires std::is_same_v<Real, double> || std::is_same_v<Real, long double>
  explicit constexpr bfloat16(Real x) : bfloat16(rounded_to_odd(x)) {}
  constexpr operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

  /// The number whose representation is these 16 bits.
  static constexpr bfloat16 from_bits(std::uint16_t b) {
    bfloat16 x{};
    x.bits = b;
    return x;
  }

 private:
  static constexpr std::uint16_t narrow(float x) {
    const auto b = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t nan = b | 0x400000u;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (!std::is_constant_evaluated()) {
      std::uint16_t narrowed;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrowed) : "f"(x));
      return x == x ? narrowed : static_cast<std::uint16_t>(nan >> 16);
    }
#endif
    const std::uint32_t rounded = b + 0x7fffu + ((b >> 16) & 1u);
    return static_cast<std::uint16_t>(((b & 0x7fffffffu) > 0x7f800000u ? nan : rounded) >> 16);
  }
};

constexpr float float16::widened_from(std::uint16_t b) {
#ifdef __CUDA_ARCH__
  if (!std::is_constant_evaluated()) {
    float widened;
    asm("cvt.f32.f16 %0, %1;" : "=f"(widened) : "h"(b));
    return widened;
  }
#endif
  const std::uint32_t magnitude = (b & 0x7fffu) << 13;  // where a float keeps them, the exponent 112 too small
  const std::uint32_t normal = magnitude + (112u << 23);
  const std::uint32_t quiet = magnitude > 0x0f800000u ? 0x00400000u : 0u;
  const std::uint32_t special = (magnitude + (224u << 23)) | quiet;  // infinite, or a NaN as processors widen it
  // A denormal m 2^-24 is read as 2^-14 + m 2^-24: no denormal float is ever an operand, so no assist on any machine.
  const float denormal = std::bit_cast<float>((magnitude & 0x007fffffu) + (113u << 23)) - 0x1p-14f;
  const std::uint32_t upper = magnitude >= 0x0f800000u ? special : normal;
  // By a mask: with ?: g++ moves the subtraction into a branch, and the loop never becomes packs of AVX2.
  const std::uint32_t is_denormal = 0u - static_cast<std::uint32_t>(magnitude < 0x00800000u);
  const std::uint32_t widened = upper ^ ((upper ^ std::bit_cast<std::uint32_t>(denormal)) & is_denormal);
  return std::bit_cast<float>(widened | (b & 0x8000u) << 16);
}

constexpr std::uint16_t float16::narrow(float x) {
  const auto b = std::bit_cast<std::uint32_t>(x);
#ifdef __CUDA_ARCH__
  if (!std::is_constant_evaluated()) {
    std::uint16_t narrowed;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrowed) : "f"(x));
    return x == x ? narrowed : static_cast<std::uint16_t>(0x7e00u | ((b >> 13) & 0x3ffu) | ((b >> 16) & 0x8000u));
  }
#endif
  const std::uint32_t magnitude = b & 0x7fffffffu;
  const std::uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
  // Below 2^-14 the sum with 1/2 rounds to a multiple of 2^-24, half's denormal step, in the float adder itself.
  const std::uint32_t small = magnitude < 0x38800000u ? magnitude : 0x38800000u;
  const std::uint32_t denormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(small) + 0.5f) - 0x3f000000u;
  const std::uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  const std::uint32_t special = magnitude > 0x7f800000u ? nan : 0x7c00u;
  const std::uint32_t finite = magnitude < 0x38800000u ? denormal : normal;
  return static_cast<std::uint16_t>((magnitude >= 0x477ff000u ? special : finite) | ((b >> 16) & 0x8000u));
}

/// What a fold computes with: float16 and bfloat16 become float, exactly; anything else is handed on unchanged
/// (numbers by value, other types by reference, so a temporary must outlive the use).
constexpr float widen(float16 x) { return x; }
constexpr float widen(bfloat16 x) { return x; }
template <class X>
requires std::is_arithmetic_v<X>
constexpr X widen(X x) { return x; }
template <class X>
requires(!std::is_arithmetic_v<X>) constexpr const X& widen(const X& x) { return x; }

/// The type `widen` gives for an X: float for the 16-bit types, X without const and reference for any other.
template <class X>
using widened = std::remove_cvref_t<decltype(regroup::widen(std::declval<const std::remove_cvref_t<X>&>()))>;

}  // namespace regroup

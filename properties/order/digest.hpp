// SPDX-License-Identifier: Apache-2.0
// A digest of the bits of answers, in which all NaNs are the same; and numbers to reduce that do not depend on any library:
// plain ones, ones of widely different size with zeros and denormals, and ones with rare infinities and NaN. No test framework.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <vector>

namespace order {

/// A running hash of everything that was added, in order.
class digest {
 public:
  [[nodiscard]] std::uint64_t value() const { return hash_; }

  template <class T>
  digest& add(const T& x) {
    if constexpr (std::is_same_v<T, float>) {
      word(x == x ? std::bit_cast<std::uint32_t>(x) : 0x7fc00000u);
    } else if constexpr (std::is_same_v<T, double>) {
      word(x == x ? std::bit_cast<std::uint64_t>(x) : 0x7ff8000000000000u);
    } else if constexpr (std::is_integral_v<T>) {
      word(static_cast<std::uint64_t>(x));
    } else if constexpr (std::ranges::range<T>) {
      for (const auto& element : x) add(element);
    } else if constexpr (requires { std::tuple_size<T>::value; }) {
      std::apply([this](const auto&... member) { (add(member), ...); }, x);
    } else if constexpr (requires { x.variance; }) {
      add(x.count).add(x.mean).add(x.variance);
    } else if constexpr (requires { x.position; }) {
      add(x.value).add(x.position);
    } else if constexpr (requires { x.max; }) {
      add(x.min).add(x.max);
    } else {
      add(x.a).add(x.b);
    }
    return *this;
  }

 private:
  void word(std::uint64_t w) {
    hash_ = (hash_ ^ w) * 0x9e3779b97f4a7c15u;
    hash_ ^= hash_ >> 31;
  }
  std::uint64_t hash_ = 0x243f6a8885a308d3u;
};

template <class T>
std::uint64_t digest_of(const T& x) {
  return digest{}.add(x).value();
}

/// splitmix64.
class sequence {
 public:
  explicit sequence(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

enum class kind { plain, wide, special };

/// One number: uniform in [-8, 8); or of 60 binades with every eighth a zero or a denormal; or plain with one in 2000
/// not finite.
template <class Real>
Real number(kind k, sequence& random) {
  using limits = std::numeric_limits<Real>;
  const std::uint64_t r = random();
  const Real plain = static_cast<Real>(static_cast<std::int32_t>(r >> 32) >> 8) * static_cast<Real>(0x1p-20);
  if (k == kind::wide) {
    const Real zeros[4] = {Real(0), -Real(0), limits::denorm_min(), -limits::denorm_min() * 77};
    if (r % 8 == 0) return zeros[(r >> 8) % 4];
    Real scaled = plain;
    for (std::uint64_t i = (r >> 8) % 60; i > 0; --i) scaled *= i % 2 == 0 ? Real(4) : Real(0.5);
    return scaled;
  }
  const Real rare[4] = {limits::infinity(), -limits::infinity(), limits::quiet_NaN(), limits::max()};
  return k == kind::special && r % 2000 == 0 ? rare[(r >> 16) % 4] : plain;
}

template <class Real>
std::vector<Real> numbers(kind k, std::int64_t n, std::uint64_t seed) {
  sequence random(seed);
  std::vector<Real> xs;
  for (std::int64_t i = 0; i < n; ++i) xs.push_back(number<Real>(k, random));
  return xs;
}

}  // namespace order

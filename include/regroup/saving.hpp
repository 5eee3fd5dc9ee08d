// SPDX-License-Identifier: Apache-2.0
// States and elements as bytes: what streams and states of attention save, and ranks send. Equal values are equal bytes,
// whatever lies in their padding. Level: element.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <ranges>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "regroup/error.hpp"
#include "regroup/members.hpp"

namespace regroup::streams {

/// Writes the bytes of x to sizeof(T) bytes of zeros: member by member as far as it can be taken apart, so that what
/// stands between members stays 0.
template <class T>
void copy_bytes(const T& x, std::byte* to) {
  if constexpr (std::is_array_v<T> || (requires { std::tuple_size<T>::value; } && std::ranges::contiguous_range<T>)) {
    for (const auto& element : x) {
      streams::copy_bytes(element, to);
      to += sizeof(element);
    }
  } else if constexpr (members::in_place<T>) {
    const auto* const whole = reinterpret_cast<const std::byte*>(std::addressof(x));
    members::for_each(x, [&](const auto& member) {
      streams::copy_bytes(member, to + (reinterpret_cast<const std::byte*>(std::addressof(member)) - whole));
    });
  } else if constexpr (!std::is_empty_v<T>) {
    constexpr bool is_extended = std::same_as<T, long double> && std::numeric_limits<T>::digits == 64;
    std::memcpy(to, std::addressof(x), is_extended ? 10 : sizeof(T));  // x87's numbers have 10 bytes
  }
}

/// Bytes out: a flat, native-endian record.
class writer {
 public:
  template <class T>
  void put(const T& value) {
    bytes_.resize(bytes_.size() + sizeof(T));
    copy_bytes(value, bytes_.data() + bytes_.size() - sizeof(T));
  }
  template <class T>
  void put_all(const std::vector<T>& values) {
    put(static_cast<std::uint64_t>(values.size()));
    for (const T& value : values) put(value);
  }
  /// Everything put, then its checksum.
  std::vector<std::byte> finish() &&;

 private:
  std::vector<std::byte> bytes_;
};

/// Bytes in: throws format_error where they end early or do not carry their checksum.
class reader {
 public:
  explicit reader(std::span<const std::byte> bytes);
  template <class T>
  T take() {
    std::array<std::byte, sizeof(T)> bytes;
    take_bytes(bytes.data(), sizeof(T));
    return std::bit_cast<T>(bytes);
  }
  template <class T>
  std::vector<T> take_all() {
    const auto count = take<std::uint64_t>();
    require(count <= left() / sizeof(T), "a saved list is longer than the bytes that hold it");
    std::vector<T> values;
    for (std::uint64_t i = 0; i < count; ++i) values.push_back(take<T>());
    return values;
  }
  static void require(bool holds, const char* what);
  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size(); }

 private:
  void take_bytes(void* to, std::size_t count);
  std::span<const std::byte> bytes_;
};

}  // namespace regroup::streams

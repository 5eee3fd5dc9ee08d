// SPDX-License-Identifier: Apache-2.0
// Small operators as a user writes them: joining words (a state that is a std::string), the longest word (a state that
// borrows), a state that counts its living copies, and an operator that throws at a chosen element.
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace verbs {

/// Concatenation: not commutative, exact.
struct join {
  static constexpr bool is_exact = true;
  std::string identity() const { return {}; }
  std::string lift(const std::string& word) const { return word; }
  std::string lift(char letter) const { return std::string(1, letter); }
  std::string operator()(const std::string& a, const std::string& b) const { return a + b; }
};

/// The longest word, the first of equals; borrowed.
struct longest_word {
  std::string_view identity() const { return {}; }
  std::string_view lift(std::string_view w) const { return w; }
  std::string_view operator()(std::string_view a, std::string_view b) const { return b.size() > a.size() ? b : a; }
};

inline std::atomic<std::int64_t> alive = 0;

/// A sum that counts how many of it live.
class counted {
 public:
  explicit counted(std::int64_t v) : value(v) { ++alive; }
  counted(const counted& other) : value(other.value) { ++alive; }
  counted(counted&& other) noexcept : value(std::exchange(other.value, -1'000'000)) { ++alive; }
  counted& operator=(const counted& other) = default;
  counted& operator=(counted&& other) noexcept {
    value = std::exchange(other.value, -1'000'000);
    return *this;
  }
  ~counted() { --alive; }

  std::int64_t value;
};

struct refused : std::runtime_error {
  refused() : std::runtime_error("the operator refuses this element") {}
};

enum class where { nowhere, lift, combine, lower, tile };

/// A sum of `counted`; throws where it is told to, at elements equal to -1 (combine: as soon as it is negative).
template <bool Commutative>
struct fragile {
  static constexpr bool is_commutative = Commutative;
  where at = where::nowhere;

  counted identity() const { return counted(0); }
  counted lift(int x) const {
    if (at == where::lift && x < 0) throw refused();
    return counted(x);
  }
  counted operator()(const counted& a, const counted& b) const {
    if (at == where::combine && (a.value < 0 || b.value < 0)) throw refused();
    return counted(a.value + b.value);
  }
  std::int64_t lower(const counted& s) const {
    if (at == where::lower) throw refused();
    return s.value;
  }
};

/// The same with a tile lift that throws.
struct fragile_tile : fragile<true> {
  template <class Tile>
  counted lift_tile(const Tile& tile) const {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(tile.size()); ++i) {
      if (at == where::tile && tile[i] < 0) throw refused();
      sum += tile[i];
    }
    return counted(sum);
  }
};

}  // namespace verbs

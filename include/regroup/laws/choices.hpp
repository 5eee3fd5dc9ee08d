// SPDX-License-Identifier: Apache-2.0
// Where test values come from: a finite list of choices (64-bit words), read by a generator. Smaller words mean simpler
// values, and words that are missing are 0, so lowering and dropping words shrinks the values of any generator, and a
// shrunk value is always one that the generator could have made. Floats come with their traps: -0, denormals, huge and
// nearly equal ones, NaN and infinities. Level: element.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/members.hpp"

namespace rc {
template <class T>
class Gen;
class Random;
}  // namespace rc

namespace regroup::laws {

/// A well-mixed function of 64 bits (splitmix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
/// The same number for a text everywhere (FNV-1a), which std::hash does not promise.
constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

/// A word says what kind of value it stands for in its lowest 4 bits, and which one above. 0 is the simplest of all;
/// what is past the last kind is small as well.
enum class kind : std::uint64_t {
  small,
  halves,
  dyadic,
  plain,
  hundreds,
  wide,
  near,
  huge,
  tiny,
  minus_zero,
  special,
  ulps,
  plain_too
};

/// The choices of one element. A generator is any callable from `choices&` to the element.
class choices {
 public:
  /// `special`: whether reals may be NaN or infinite.
  choices(std::span<const std::uint64_t> words, bool special) : words_(words), special_(special) {}

  /// The next choice; 0 where none is left.
  std::uint64_t word() { return next_ < words_.size() ? words_[next_++] : 0; }
  [[nodiscard]] bool special() const { return special_; }
  [[nodiscard]] std::size_t used() const { return next_; }

  /// A float, double or 16-bit float: small integers first, then halves, then everything that is trouble.
  template <class Real>
  Real real() {
    if constexpr (members::half<Real>) {
      const float x = real_of<float>(word());
      const float largest = std::same_as<Real, float16> ? 65504.0f : 0x1.fep127f;
      return Real(std::isfinite(x) ? std::fmin(std::fmax(x, -largest), largest) : x);
    } else {
      return real_of<Real>(word());
    }
  }

  /// An integer in [low, high]: near 0 (or the bound nearest to it) first, now and then an extreme one.
  template <class Integer>
  Integer integer(Integer low = std::numeric_limits<Integer>::min(),
                  Integer high = std::numeric_limits<Integer>::max()) {
    const std::uint64_t w = word();
    const std::uint64_t which = w >> 4;
    const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);  // modulo 2^64, so right
    const auto from_low = [&](std::uint64_t steps) {
      const std::uint64_t kept = span == ~std::uint64_t{0} ? steps : steps % (span + 1);
      return static_cast<Integer>(static_cast<std::uint64_t>(low) + kept);
    };
    if ((w & 15) == static_cast<std::uint64_t>(kind::special) || (w & 15) == static_cast<std::uint64_t>(kind::huge)) {
      const std::uint64_t off = (which / 2) % 3;
      return from_low(which % 2 == 0 ? span - (off <= span ? off : 0) : off);
    }
    const std::uint64_t zero = low > 0 ? 0 : high < 0 ? span : 0 - static_cast<std::uint64_t>(low);
    const auto k = w & 15;
    if (k == 5 || k == 6) {  // of so many digits
      const std::uint64_t size = mix(which) >> (63 - which / 2 % 64);
      return from_low(low < 0 && which % 2 == 1 ? zero - size : zero + size);
    }
    if (k >= 3 && k < 13) return from_low(mix(which));
    const std::uint64_t up = which % 17;  // 0, 1, -1, 2, -2, ... about the value nearest to 0
    const bool below = low < 0 && up % 2 == 0 && up != 0;
    const std::uint64_t steps = low < 0 ? (up + 1) / 2 : up;
    return from_low(below ? zero - steps : zero + steps);
  }

  /// False first.
  bool flag() { return (word() >> 4) % 2 == 1; }

  /// One of several values, the earlier the simpler.
  template <class T>
  T pick(std::span<const T> values) {
    return values[static_cast<std::size_t>((word() >> 4) % values.size())];
  }

 private:
  template <class Real>
  [[nodiscard]] Real real_of(std::uint64_t w) const;

  std::span<const std::uint64_t> words_;
  std::size_t next_ = 0;
  bool special_;
};

template <class Real>
Real choices::real_of(std::uint64_t w) const {
  using limits = std::numeric_limits<Real>;
  const std::uint64_t which = w >> 4;
  const auto zigzag = [](std::uint64_t p) {  // 0, 1, -1, 2, -2, ...
    const auto size = static_cast<Real>((p + 1) / 2);
    return p % 2 == 1 || p == 0 ? size : -size;
  };
  const auto sign = which % 2 == 0 ? Real(1) : Real(-1);
  const std::uint64_t more = mix(which);
  const auto unit = [&] { return static_cast<Real>(more >> 11) * static_cast<Real>(0x1p-53); };  // [0, 1)
  const auto power = [](int e) { return std::ldexp(Real(1), e); };
  switch (static_cast<kind>(w & 15)) {
    case kind::halves:
      return zigzag(which % 65) / 2;
    case kind::dyadic:
      return zigzag(which % 257) / 16;
    case kind::plain:
    case kind::plain_too:
      return sign * unit() * 10;
    case kind::hundreds:
      return sign * unit() * 100;
    case kind::wide: {  // and now and then of any size
      const int e = static_cast<int>(which / 2 % 41) - 20;
      return sign * (1 + unit()) * power(which / 82 % 4 == 3 ? e * (limits::max_exponent / 24) : e);
    }
    case kind::ulps:
    case kind::near: {  // within a few ulps of each other
      const Real centre = which % 3 == 0 ? Real(1) : which % 3 == 1 ? Real(100) : Real(-30);
      return centre * (1 + zigzag(which / 3 % 9) * limits::epsilon());
    }
    case kind::huge:
      return sign * limits::max() * power(-static_cast<int>(which / 2 % 24));
    case kind::tiny:
      return which % 4 < 2 ? sign * limits::denorm_min() * static_cast<Real>(1 + which / 4 % 1000)
                           : sign * limits::min() * (1 + unit()) * power(static_cast<int>(which / 4 % 3) - 1);
    case kind::minus_zero:
      return -Real(0);
    case kind::special:
      if (special_) {
        return which % 3 == 0 ? -limits::infinity() : which % 3 == 1 ? limits::infinity() : limits::quiet_NaN();
      }
      return zigzag(which % 17);
    case kind::small:
    default:
      return zigzag(which % 17);
  }
}

/// The generator of a type that is made of numbers: floats, integers and enumerations with a fixed type as above; ranges that
/// can be resized, of up to three elements; complex numbers; optionals; arrays, aggregates, pairs and tuples member by member.
template <class X>
struct arbitrary {
  X operator()(choices& from) const {
    if constexpr (std::same_as<X, bool>) {
      return from.flag();
    } else if constexpr (std::is_floating_point_v<X> || members::half<X>) {
      return from.real<X>();
    } else if constexpr (std::is_integral_v<X>) {
      return from.integer<X>();
    } else if constexpr (std::is_enum_v<X> && requires { X{0}; }) {  // whose every number is a value
      return static_cast<X>(arbitrary<std::underlying_type_t<X>>{}(from));
    } else if constexpr (members::complex_like<X>) {
      const arbitrary<typename X::value_type> part;
      const auto real = part(from);
      return X(real, part(from));
    } else if constexpr (std::same_as<X, std::string>) {
      std::string text;
      for (std::uint64_t n = (from.word() >> 4) % 4; n > 0; --n)
        text += static_cast<char>('a' + (from.word() >> 4) % 3);
      return text;
    } else if constexpr (requires(X x) { x.resize(1); }) {
      X x;
      x.resize((from.word() >> 4) % 4);
      for (auto&& element : x) element = arbitrary<std::ranges::range_value_t<X>>{}(from);
      return x;
    } else if constexpr (members::optional_like<X> && requires(X x) { x.emplace(); }) {
      X x{};
      if (from.flag()) x.emplace(arbitrary<std::remove_cvref_t<decltype(*x)>>{}(from));
      return x;
    } else {
      static_assert(members::is_transparent<X> && std::is_default_constructible_v<X> && has_places<X>(),
                    "regroup: give check_laws a generator of these elements: a callable from `laws::choices&` to one");
      X x{};
      fill(x, from);
      return x;
    }
  }

 private:
  /// Whether elements or members can be assigned: not those of a set.
  template <class T>
  static constexpr bool has_places() {
    if constexpr (std::ranges::forward_range<T>) {
      return std::is_assignable_v<std::ranges::range_reference_t<T>, std::ranges::range_value_t<T>>;
    } else {
      return members::tuple_like<T> || members::count<T>() > 0 || std::is_empty_v<T>;
    }
  }
  template <class T>
  static void fill(T& x, choices& from) {
    const auto put = [&]<class Part>(Part& part) {
      if constexpr (std::is_default_constructible_v<Part> && std::is_move_assignable_v<Part>) {
        part = arbitrary<Part>{}(from);
      } else {  // an array, say
        fill(part, from);
      }
    };
    if constexpr (std::ranges::forward_range<T>) {
      for (auto& element : x) put(element);
    } else {
      members::for_each(x, put);
    }
  }
};

/// Integers in [low, high] only, where the operator would overflow outside.
template <class Integer>
struct integers {
  Integer low, high;
  Integer operator()(choices& from) const { return from.integer(low, high); }
};

/// Finite reals in [low, high]; whole numbers of it first.
template <class Real>
struct reals {
  Real low, high;
  Real operator()(choices& from) const {
    const Real x = from.real<Real>();
    return x < low ? low : x > high ? high : x == x ? x : low;
  }
};

/// One of a list of values; the earlier the simpler.
template <class X>
struct one_of {
  std::vector<X> values;
  X operator()(choices& from) const { return from.pick(std::span<const X>(values)); }
};

/// A rapidcheck generator as one of ours: a word of seed, a word of size, then the path to the shrink that is meant.
template <class X, class Random = rc::Random>
struct from_rapidcheck {
  rc::Gen<X> generator;
  X operator()(choices& from) const {
    const std::uint64_t seed = from.word();
    const auto size = static_cast<int>(100 - (from.word() >> 4) % 101);
    auto shrinkable = generator(Random(seed), size);
    for (std::uint64_t step = from.word(); step != 0; step = from.word()) {
      auto shrinks = shrinkable.shrinks();
      auto next = shrinks.next();
      for (; step > 1 && next; --step) next = shrinks.next();
      if (!next) break;
      shrinkable = *next;
    }
    return shrinkable.value();
  }
};

}  // namespace regroup::laws

// SPDX-License-Identifier: Apache-2.0
// Arrays of any element type, seen as the few C++ types that they are computed in: float for floats up to 32 bits, double,
// std::int64_t, a byte that is 0 or 1 for bool, and pairs of numbers. Widening is exact; on the way back floats round to
// nearest and integers wrap. Code over these views is compiled for those types only. Elements that need no conversion are used
// in place.
#pragma once

#include <limits>
#include <type_traits>
#include <utility>

#include "array.hpp"
#include "regroup/batch.hpp"
#include "regroup/monoids/affine.hpp"

namespace regroup::tool {

/// Calls f(std::type_identity<T>{}) with the C++ type of a floating element type.
template <class F>
decltype(auto) with_float(element type, const F& f) {
  switch (type) {
    case element::float16:
      return f(std::type_identity<regroup::float16>{});
    case element::bfloat16:
      return f(std::type_identity<regroup::bfloat16>{});
    case element::float64:
      return f(std::type_identity<double>{});
    default:
      return f(std::type_identity<float>{});
  }
}

/// The same for any number: floats, int32 and int64.
template <class F>
decltype(auto) with_number(element type, const F& f) {
  if (type == element::int32) return f(std::type_identity<std::int32_t>{});
  if (type == element::int64) return f(std::type_identity<std::int64_t>{});
  return with_float(type, f);
}

/// The same for any element type.
template <class F>
decltype(auto) with_any(element type, const F& f) {
  if (type == element::boolean) return f(std::type_identity<boolean>{});
  return with_number(type, f);
}

/// The type in which numbers of a type are computed: float32, float64 or int64.
inline element computed_in(element type) {
  if (is_float(type)) return type == element::float64 ? type : element::float32;
  return element::int64;
}
/// The smallest and largest value of a result's integer type: the extremes of no elements.
struct integer_limits {
  std::int64_t lowest, greatest;
  explicit integer_limits(element type)
      : lowest(type == element::int32 ? std::numeric_limits<std::int32_t>::min()
                                      : std::numeric_limits<std::int64_t>::min()),
        greatest(type == element::int32 ? std::numeric_limits<std::int32_t>::max()
                                        : std::numeric_limits<std::int64_t>::max()) {}
};

/// Calls f(std::type_identity<X>{}) with float, double, std::int64_t or, for bool, std::uint8_t.
template <class F>
void with_computed(element type, const F& f) {
  if (type == element::boolean) return f(std::type_identity<std::uint8_t>{});
  if (type == element::float32) return f(std::type_identity<float>{});
  if (type == element::float64) return f(std::type_identity<double>{});
  f(std::type_identity<std::int64_t>{});
}

/// Whether elements of a type can be read as X without conversion.
template <class X>
bool is_of(element type) {
  if constexpr (std::is_same_v<X, std::uint8_t>) {
    return false;  // true in a file may be any byte but 0
  } else {
    return type == type_of<X>();
  }
}

/// One number as X. For bool X is std::uint8_t, and the number 0 or 1.
template <class X>
X read_number(const std::byte* at, element type) {
  if (is_of<X>(type)) return *reinterpret_cast<const X*>(at);
  return with_any(type, [at]<class T>(std::type_identity<T>) {
    const T x = *reinterpret_cast<const T*>(at);
    if constexpr (std::is_same_v<X, std::uint8_t>) {
      return static_cast<X>(static_cast<bool>(x) ? 1 : 0);
    } else {
      return static_cast<X>(regroup::widen(x));
    }
  });
}
template <class X>
void write_number(std::byte* at, element type, X x) {
  if (is_of<X>(type)) {
    *reinterpret_cast<X*>(at) = x;
    return;
  }
  with_any(type, [at, x]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, boolean>) {
      *reinterpret_cast<T*>(at) = {static_cast<std::uint8_t>(x != X{} ? 1 : 0)};
    } else if constexpr (sizeof(T) == 2) {
      *reinterpret_cast<T*>(at) = T(static_cast<float>(x));
    } else {
      *reinterpret_cast<T*>(at) = static_cast<T>(x);
    }
  });
}

template <class E>
struct number_of {
  using type = E;
};
template <class X>
struct number_of<affine_map<X>> {
  using type = X;
};

/// Elements of an array at a fixed distance in bytes, as E: a number, or a pair whose second number is `to_b` bytes further on.
/// A source (regroup/source.hpp) and, unless Byte is const, places to be written.
template <class E, class Byte>
struct numbers {
  using X = typename number_of<E>::type;
  using place = E;  // what is written there
  static constexpr bool is_pair = !std::is_same_v<X, E>;

  strided<Byte> at;
  element type;
  index to_b;

  [[nodiscard]] index size() const noexcept { return at.count; }
  [[nodiscard]] E get(index i) const {
    Byte* const p = &at[i];
    if constexpr (is_pair) {
      return {read_number<X>(p, type), read_number<X>(p + to_b, type)};
    } else {
      return read_number<X>(p, type);
    }
  }
  void set(index i, const E& x) const {
    Byte* const p = &at[i];
    if constexpr (is_pair) {
      write_number(p, type, x.a);
      write_number(p + to_b, type, x.b);
    } else {
      write_number(p, type, x);
    }
  }
  struct reference {
    const numbers& of;
    index i;
    void operator=(const E& x) const { of.set(i, x); }  // NOLINT: assigns through
  };
  auto operator[](index i) const {
    if constexpr (std::is_const_v<Byte>) {
      return get(i);
    } else {
      return reference{*this, i};
    }
  }
  /// A pointer to the elements if they are contiguous and E already, else null.
  [[nodiscard]] auto contiguous() const noexcept {
    using elements = std::conditional_t<std::is_const_v<Byte>, const E, E>;
    const bool adjoin = (at.stride == static_cast<index>(sizeof(E)) || at.count <= 1) &&
                        (!is_pair || to_b == static_cast<index>(sizeof(X)));
    const bool is_place_of_truth = type == element::boolean && std::is_same_v<X, std::uint8_t> && !std::is_const_v<Byte>;
    return (is_of<X>(type) || is_place_of_truth) && adjoin ? reinterpret_cast<elements*>(at.first) : nullptr;
  }
};

/// A batch (regroup/batch.hpp) of `numbers`: the last axis of a view, whose strides count bytes, for each index of the other
/// axes in C order.
template <class E, class Byte>
class number_rows {
 public:
  number_rows(const view<Byte>& bytes, element type, index to_b = 0) : rows_(bytes, 1), type_(type), to_b_(to_b) {}
  [[nodiscard]] index size() const { return rows_.size(); }
  [[nodiscard]] index length() const { return rows_.length(); }
  numbers<E, Byte> operator[](index row) const { return {rows_[row], type_, to_b_}; }

 private:
  row_slices<Byte> rows_;
  element type_;
  index to_b_;
};

}  // namespace regroup::tool

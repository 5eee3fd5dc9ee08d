// SPDX-License-Identifier: Apache-2.0
// What an array file says about itself: element type, extents, order in memory. All code that reads, computes or writes uses
// this description. As in NumPy, element (i, j, ...) is the same whatever the memory order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "regroup/float16.hpp"
#include "regroup/monoid.hpp"
#include "regroup/view.hpp"

namespace regroup::tool {

using extents = regroup::shape;

/// The element types that the tool reads and writes.
enum class element { float16, bfloat16, float32, float64, int32, int64, boolean };

/// Bytes of one element.
std::size_t size_of(element type);
/// The name that NumPy and ml_dtypes give a type: "float32", "bool".
std::string name_of(element type);
bool is_float(element type);
bool is_integer(element type);

/// A bool as NumPy stores it: one byte, true for any value but 0.
struct boolean {
  std::uint8_t byte;
  constexpr operator bool() const { return byte != 0; }
};

/// The element type of a C++ type.
template <class T>
constexpr element type_of();
template <>
constexpr element type_of<regroup::float16>() {
  return element::float16;
}
template <>
constexpr element type_of<regroup::bfloat16>() {
  return element::bfloat16;
}
template <>
constexpr element type_of<float>() {
  return element::float32;
}
template <>
constexpr element type_of<double>() {
  return element::float64;
}
template <>
constexpr element type_of<std::int32_t>() {
  return element::int32;
}
template <>
constexpr element type_of<std::int64_t>() {
  return element::int64;
}
template <>
constexpr element type_of<boolean>() {
  return element::boolean;
}

/// What a .npy header says. `fortran_order` is false wherever both orders are the same memory.
struct description {
  element type = element::float32;
  bool fortran_order = false;
  bool swapped = false;  // the byte order of elements is not this machine's
  extents shape;

  /// The number of elements. It cannot overflow: a header whose array would not fit an address space is refused.
  index size() const;
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * size_of(type); }
  /// The strides, in elements, along each axis.
  extents strides() const;
};

/// The product of the extents.
index count_of(const extents& shape);

/// Whether an array's bytes fit an address space. An extent of 0 counts as 1, since the strides of the other axes must fit too.
/// Then no product of any extents overflows, nor any stride.
bool fits_memory(element type, const extents& shape);

}  // namespace regroup::tool

// SPDX-License-Identifier: Apache-2.0
// Views of the library over arrays whose type is known at run time, and checks of axes against a shape.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <type_traits>
#include <vector>

#include "command_line.hpp"
#include "input.hpp"
#include "numbers.hpp"
#include "output.hpp"
#include "regroup/error.hpp"
#include "regroup/view.hpp"
#include "workers.hpp"

namespace regroup::tool {

template <class T>
view<const T> view_of(const input& x) {
  return {static_cast<const T*>(x.data()), x.shape(), x.about().strides()};
}
template <class T>
view<T> view_of(const result& y) {
  return {y.as<T>(), y.shape()};
}

/// The array in bytes: extents count elements and strides bytes.
template <class Byte>
view<Byte> bytes_of(Byte* data, element type, const extents& shape, extents strides) {
  for (index& stride : strides) stride *= static_cast<index>(size_of(type));
  return {data, shape, strides};
}
inline view<const std::byte> bytes_of(const input& x) {
  return bytes_of(static_cast<const std::byte*>(x.data()), x.type(), x.shape(), x.about().strides());
}
inline view<std::byte> bytes_of(const result& y) {
  return bytes_of(y.as<std::byte>(), y.type(), y.shape(), row_major(y.shape()));
}

/// float32, or float64 for float64: the type of every logsumexp of floats.
inline element logsumexp_type(element type) {
  return type == element::float64 || is_integer(type) ? element::float64 : element::float32;
}

/// The axis counted from 0. Throws shape_error with the input's name.
inline int checked_axis(const std::string& name, const extents& shape, int axis) {
  const int rank = shape.size();
  if (axis < -rank || axis >= rank) {
    throw_shape(name + ": axis " + std::to_string(axis) + " does not exist in the shape " + to_string(shape) +
                (rank > 0 ? "; axes are " + std::to_string(-rank) + " to " + std::to_string(rank - 1) : ""));
  }
  return axis < 0 ? axis + rank : axis;
}

/// Throws argument_error if a number given with an array does not fit the type in which that array is computed.
inline void require_fits(const std::string& name, element type, const char* what, double value) {
  constexpr double most = std::numeric_limits<float>::max();
  if (type == element::float64 || std::abs(value) <= most) return;
  char text[160];
  std::snprintf(text, sizeof text, "%s %g does not fit float32, in which %s is computed; use one from %g to %g", what,
                value, name_of(type).c_str(), -most, most);
  throw_argument(name + ": " + text);
}

/// A shape without one axis.
inline extents without(const extents& shape, int axis) {
  extents rest;
  for (int a = 0; a < shape.size(); ++a) {
    if (a != axis) rest.push_back(shape[a]);
  }
  return rest;
}

/// The same view with `axis` last.
template <class T>
view<T> with_last(const view<T>& v, int axis) {
  extents order;
  for (int a = 0; a < v.rank(); ++a) {
    if (a != axis) order.push_back(a);
  }
  order.push_back(axis);
  return v.permuted(order);
}

}  // namespace regroup::tool

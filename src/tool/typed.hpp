// SPDX-License-Identifier: Apache-2.0
// From arrays whose type is known at run time to the library's views: the one place where an element type becomes a C++
// type, and where axes are checked against a shape.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <type_traits>
#include <vector>

#include "command_line.hpp"
#include "input.hpp"
#include "output.hpp"
#include "regroup/error.hpp"
#include "regroup/host/par.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/scaled_product.hpp"
#include "regroup/view.hpp"

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

template <class T>
view<const T> view_of(const input& x) {
  return {static_cast<const T*>(x.data()), x.shape(), x.about().strides()};
}
template <class T>
view<T> view_of(const result& y) {
  return {y.as<T>(), y.shape()};
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

/// Throws argument_error where an option's number does not fit what arrays of a floating type are computed in.
inline void require_fits(const std::string& name, element type, const char* option, double value) {
  constexpr double most = std::numeric_limits<float>::max();
  if (type == element::float64 || std::abs(value) <= most) return;
  char text[160];
  std::snprintf(text, sizeof text, "%s %g does not fit float32, in which %s is computed; use one from %g to %g", option,
                value, name_of(type).c_str(), -most, most);
  throw_argument(name + ": " + text);
}

/// The product of X as the tool computes it: integers wrap, floats neither overflow nor underflow on the way.
template <class X>
constexpr auto product() {
  if constexpr (std::is_integral_v<X>) {
    return multiplies<X>{};
  } else {
    return scaled_product<X>{};
  }
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

/// All cores, or the number of threads asked for.
inline parallel executor_of(const settings& s) {
  constexpr int most_threads = 1024;  // more would only wait; bits do not depend on it
  return s.threads > 0 ? par.with_threads(std::min(s.threads, most_threads)) : par;
}

}  // namespace regroup::tool

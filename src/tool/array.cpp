// SPDX-License-Identifier: Apache-2.0
#include "array.hpp"

#include <algorithm>

namespace regroup::tool {

std::size_t size_of(element type) {
  switch (type) {
    case element::boolean:
      return 1;
    case element::float16:
    case element::bfloat16:
      return 2;
    case element::float32:
    case element::int32:
      return 4;
    case element::float64:
    case element::int64:
      return 8;
  }
  return 0;
}

std::string name_of(element type) {
  switch (type) {
    case element::boolean:
      return "bool";
    case element::float16:
      return "float16";
    case element::bfloat16:
      return "bfloat16";
    case element::float32:
      return "float32";
    case element::float64:
      return "float64";
    case element::int32:
      return "int32";
    case element::int64:
      return "int64";
  }
  return {};
}

bool is_integer(element type) { return type == element::int32 || type == element::int64; }
bool is_float(element type) { return type != element::boolean && !is_integer(type); }

index count_of(const extents& shape) {
  index n = 1;
  for (const index e : shape) n *= e;
  return n;
}

bool fits_memory(element type, const extents& shape) {
  auto bytes = static_cast<index>(size_of(type));
  for (const index e : shape) {
    if (__builtin_mul_overflow(bytes, std::max<index>(e, 1), &bytes)) return false;
  }
  return true;
}

index description::size() const { return count_of(shape); }

extents description::strides() const {
  if (!fortran_order) return row_major(shape);
  extents strides = shape;
  index stride = 1;
  for (int axis = 0; axis < shape.size(); ++axis) {
    strides[axis] = stride;
    stride *= std::max<index>(shape[axis], 1);
  }
  return strides;
}

}  // namespace regroup::tool

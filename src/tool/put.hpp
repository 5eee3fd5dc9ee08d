// SPDX-License-Identifier: Apache-2.0
// Stores a number in an array of any type: floats round to nearest, integers wrap.
#pragma once

#include "output.hpp"

namespace regroup::tool {

template <class Number>
void put(const result& r, index at, Number value) {
  switch (r.type()) {
    case element::float16:
      r.as<regroup::float16>()[at] = regroup::float16(static_cast<double>(value));
      break;
    case element::bfloat16:
      r.as<regroup::bfloat16>()[at] = regroup::bfloat16(static_cast<double>(value));
      break;
    case element::float32:
      r.as<float>()[at] = static_cast<float>(value);
      break;
    case element::float64:
      r.as<double>()[at] = static_cast<double>(value);
      break;
    case element::int32:
      r.as<std::int32_t>()[at] = static_cast<std::int32_t>(value);
      break;
    case element::int64:
      r.as<std::int64_t>()[at] = static_cast<std::int64_t>(value);
      break;
    case element::boolean:
      r.as<std::uint8_t>()[at] = value != Number{} ? 1 : 0;
      break;
  }
}

}  // namespace regroup::tool

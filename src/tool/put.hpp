// SPDX-License-Identifier: Apache-2.0
// Stores a number in an array of any type: floats round to nearest, integers wrap.
#pragma once

#include "numbers.hpp"
#include "output.hpp"

namespace regroup::tool {

template <class Number>
void put(const result& r, index at, Number value) {
  using X = std::conditional_t<std::is_same_v<Number, bool>, std::uint8_t, Number>;
  write_number<X>(static_cast<std::byte*>(r.data()) + at * static_cast<index>(size_of(r.type())), r.type(), value);
}

}  // namespace regroup::tool

// SPDX-License-Identifier: Apache-2.0
// The monoids that `reduce` knows by name: the library's, each with the result that its answers are written to.
#pragma once

#include <memory>

#include "command_line.hpp"
#include "output.hpp"
#include "several.hpp"

namespace regroup::tool {

/// Where the answers of one monoid go. Row r of the result is the r-th in C order of the axes that stay. top_k's K answers are
/// `inner` apart, in place of the reduced axis.
struct target {
  result* values = nullptr;
  result* indices = nullptr;  // top_k's positions
  index inner = 1;
};

/// X is float (for 16-bit and 32-bit floats), double, or std::int64_t (for integers and bool).
template <class X>
std::shared_ptr<const member<X>> make_member(const monoid_name& name, const target& t);

extern template std::shared_ptr<const member<float>> make_member(const monoid_name&, const target&);
extern template std::shared_ptr<const member<double>> make_member(const monoid_name&, const target&);
extern template std::shared_ptr<const member<std::int64_t>> make_member(const monoid_name&, const target&);

}  // namespace regroup::tool

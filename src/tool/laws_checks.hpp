// SPDX-License-Identifier: Apache-2.0
// The checks of `regroup laws`, by the monoid's name, in two files that compile separately.
#pragma once

#include <span>
#include <string_view>

#include "regroup/check_laws.hpp"

namespace regroup::tool {

struct named_check {
  std::string_view name;
  laws::report (*run)(const law_options&);
};

/// Monoids whose state is one number.
std::span<const named_check> checks_of_numbers();
/// Monoids whose state is a record.
std::span<const named_check> checks_of_records();

}  // namespace regroup::tool

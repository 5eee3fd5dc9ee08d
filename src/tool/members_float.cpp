// SPDX-License-Identifier: Apache-2.0
#include "members_of.hpp"

namespace regroup::tool {

template std::shared_ptr<const member<float>> make_member(const monoid_name&, const target&);

}  // namespace regroup::tool

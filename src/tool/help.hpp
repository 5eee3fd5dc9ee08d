// SPDX-License-Identifier: Apache-2.0
// What --help says below the options: the contract of each command, for somebody who reads nothing else, in lines of at
// most 100 characters.
#pragma once

#include <string>

namespace regroup::tool {

/// Of a command, or of the program alone for "".
std::string footer_of(const std::string& command);

}  // namespace regroup::tool

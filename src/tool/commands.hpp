// SPDX-License-Identifier: Apache-2.0
// One function for each command, in the file of its name. It returns the exit status, or throws regroup::error with a sentence,
// which main turns into one.
#pragma once

#include "command_line.hpp"

namespace regroup::tool {

int run(const softmax_command& c, const settings& s);
int run(const reduce_command& c, const settings& s);
int run(const scan_command& c, const settings& s);
int run(const attention_command& c, const settings& s);
int run(const merge_command& c, const settings& s);
int run(const laws_command& c, const settings& s);
int run(const info_command& c, const settings& s);

}  // namespace regroup::tool

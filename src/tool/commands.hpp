// SPDX-License-Identifier: Apache-2.0
// One function a command, each in the file of its name. They throw regroup::error with a sentence; main turns it into
// the exit status. What the function returns is the exit status otherwise.
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

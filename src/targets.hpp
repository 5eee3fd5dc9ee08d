// SPDX-License-Identifier: Apache-2.0
// Which instruction sets the processor has, for whoever asks beside the choice that host/dispatch.hpp makes.
#pragma once

#include "regroup/host/dispatch.hpp"

namespace regroup::host {

bool has(target t);

}  // namespace regroup::host

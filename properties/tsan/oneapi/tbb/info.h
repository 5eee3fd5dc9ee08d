// SPDX-License-Identifier: Apache-2.0
// See task_arena.h.
#pragma once

namespace tbb::info {
inline int default_concurrency() { return 4; }
}  // namespace tbb::info

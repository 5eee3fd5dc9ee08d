// SPDX-License-Identifier: Apache-2.0
// Nothing of it is used (see task_arena.h).
#pragma once

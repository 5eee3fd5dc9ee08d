// SPDX-License-Identifier: Apache-2.0
// The files of one attention, and checks that they fit together. Every error is a sentence that names the file.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "command_line.hpp"
#include "input.hpp"
#include "regroup/algorithms/attention_masks.hpp"

namespace regroup::tool {

struct attention_files {
  explicit attention_files(const attention_command& c);
  input q, k, v;
  std::optional<input> mask, alibi, sinks, lengths, table;
};

/// What the shapes together imply, and the integers of --kv-lengths and --page-table.
struct attention_shapes {
  bool paged = false;
  index batches = 1, heads = 1, queries = 0, key_heads = 1, keys = 0, d = 0, dv = 0;
  std::vector<index> lengths, table;
};

/// Throws shape_error and argument_error. For a pool without pages the page size in f becomes 0, so that no work grows with it.
attention_shapes check(attention_files& f);

/// A float64 of a mask. A finite number stays finite as float: masks may use the lowest double, and only -inf hides.
struct mask_number {
  double value;
  explicit operator double() const { return value; }
  explicit operator float() const {
    constexpr double most = std::numeric_limits<float>::max();
    return static_cast<float>(std::isinf(value) ? value : std::clamp(value, -most, most));
  }
};

/// All rules for scores, in this order: softcap, ALiBi, the mask, then causal and window. Refers to the files' memory.
attention_mask mask_of(const attention_command& c, const attention_files& f, const attention_shapes& e);
/// --sinks, or none.
head_numbers sinks_of(const attention_files& f, const attention_shapes& e);

}  // namespace regroup::tool

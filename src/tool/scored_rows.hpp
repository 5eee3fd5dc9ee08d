// SPDX-License-Identifier: Apache-2.0
// softmax_mean of an array (..., n, 1 + d): each row along the last axis is a score and its d values.
#pragma once

#include <optional>
#include <vector>

#include "input.hpp"
#include "output.hpp"
#include "regroup/host/par.hpp"

namespace regroup::tool {

/// The result's shape, (..., d) or (..., 1, d). `axes` may only name the last but one. Throws shape_error and
/// argument_error with sentences that name the input.
extents softmax_mean_shape(const input& x, const std::optional<std::vector<int>>& axes, bool keepdims);

/// sum exp(score) values / sum exp(score), for each of the leading axes.
void reduce_softmax_mean(const parallel& ex, const input& x, const result& y);

}  // namespace regroup::tool

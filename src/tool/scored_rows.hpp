// SPDX-License-Identifier: Apache-2.0
// softmax_mean of an array (..., n, 1 + d): each row along the last axis is a score and its d values.
#pragma once

#include <optional>
#include <vector>

#include "input.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "workers.hpp"

namespace regroup::tool {

/// The result's shape, (..., d) or (..., 1, d). `axes` may only name the last but one. Throws shape_error and
/// argument_error with sentences that name the input.
extents softmax_mean_shape(const std::string& name, const description& about,
                           const std::optional<std::vector<int>>& axes, bool keepdims);

/// sum exp(score) values / sum exp(score), for each of the leading axes.
void reduce_softmax_mean(const workers& ex, const input& x, const result& y);

/// The same for a stream for which `streams_softmax_mean` is true, in the memory of one block.
void reduce_softmax_mean(const workers& ex, stream& x, const result& y, progress& shown);
bool streams_softmax_mean(const description& about);

}  // namespace regroup::tool

// SPDX-License-Identifier: Apache-2.0
// The names that --with takes.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace regroup::tool {

inline constexpr std::array<std::string_view, 15> reduce_names = {
    "sum",  "product", "min",         "max",          "argmin", "argmax", "count",    "mean",
    "moments", "log_sum_exp", "softmax_mean", "any",    "all",    "top_k", "histogram"};
inline constexpr std::array<std::string_view, 9> scan_names = {"sum", "product", "min",   "max",   "log_sum_exp",
                                                               "any", "all",     "count", "affine"};

/// Names of `reduce` that a GPU does not take, since their states own memory.
inline constexpr std::array<std::string_view, 3> cpu_names = {"softmax_mean", "top_k", "histogram"};

/// The names, separated by commas.
template <std::size_t N>
std::string listed(const std::array<std::string_view, N>& names) {
  std::string result;
  for (const std::string_view name : names) {
    if (!result.empty()) result += ", ";
    result += name;
  }
  return result;
}
template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, const std::string& name) {
  for (const std::string_view known : names) {
    if (known == name) return true;
  }
  return false;
}

}  // namespace regroup::tool

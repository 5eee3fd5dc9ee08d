// SPDX-License-Identifier: Apache-2.0
// The demo's three pictures, and what they show.
#pragma once

#include <string>
#include <vector>

#include "regroup/monoid.hpp"

namespace demo {

/// How one way of folding did: the largest error of any output; and the error that came nearest to its bound.
struct accuracy {
  std::string label;
  double largest = 0, nearest = 0, bound = 1;
  [[nodiscard]] double ratio() const { return nearest / bound; }
};
struct accuracy_group {
  std::string title;
  std::vector<accuracy> columns;
};
/// error_and_bound.svg: a column a way of folding.
void draw_accuracy(const std::vector<accuracy_group>& groups);

/// One run of the same computation; the first of several is what the others are compared with.
struct run {
  std::string label;
  std::vector<float> out;  // queries x channels
};
/// How many floats of two runs differ in any bit.
std::size_t different(const std::vector<float>& a, const std::vector<float>& b);
/// same_bits.svg: a cell a float, the first 128 queries of each run.
void draw_bits(const std::vector<run>& ours, const std::vector<run>& plain, regroup::index channels);

struct cost {
  double seconds = 1e9;
  double mebibytes = 0;
};
/// time_and_memory.svg
void draw_cost(const cost& online, const cost& materialised);

}  // namespace demo

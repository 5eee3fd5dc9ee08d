// SPDX-License-Identifier: Apache-2.0
// Softmax and cross_entropy refuse wrong arguments with a typed error, before anything is written.
#include <gtest/gtest.h>

#include <string>

#include "regroup/algorithms/cross_entropy.hpp"
#include "softmax_reference.hpp"

namespace {

using regroup::par;
using view = regroup::view<float>;

template <class Error, class F>
void refused(const F& f, const std::string& words) {
  std::vector<float> memory(100, 1);
  try {
    f(memory.data());
    ADD_FAILURE() << "not refused: " << words;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }
  EXPECT_EQ(memory, std::vector<float>(100, 1));
}

}  // namespace

TEST(softmax_errors, shapes) {
  refused<regroup::shape_error>(
      [](float* p) {
        regroup::softmax(par, view(p, {4, 5}), view(p + 20, {5, 4}));
      },
      "(4, 5); got (5, 4)");
  refused<regroup::shape_error>([](float* p) { regroup::softmax(par, view(p, {4, 5}), view(p + 20, {20})); }, "(20,)");
  refused<regroup::shape_error>(
      [](float* p) { regroup::softmax(par, view(p, regroup::shape{}), view(p + 1, regroup::shape{})); },
      "rank of 1 or more");
  refused<regroup::shape_error>(
      [](float* p) {
        regroup::softmax(par, view(p, {4, 5}), view(p + 20, {4, 5}), {.axis = 2});
      },
      "axis 2");
  refused<regroup::shape_error>(
      [](float* p) {
        regroup::logsumexp(par, view(p, {4, 5}), view(p + 20, {4}), {.axis = -3});
      },
      "axis -3");
  refused<regroup::shape_error>([](float* p) { regroup::logsumexp(par, view(p, {4, 5}), view(p + 20, {5})); }, "4");
  refused<regroup::shape_error>(
      [](float* p) {
        regroup::softmax(par, view(p, {4, 5}), view(p + 20, {4, 5}), {.logsumexp = view(p + 40, {3})});
      },
      "4");
}

TEST(softmax_errors, overlap) {
  refused<regroup::overlap_error>(
      [](float* p) {
        regroup::softmax(par, view(p, {4, 5}), view(p + 1, {4, 5}));
      },
      "overlaps");
  refused<regroup::overlap_error>(
      [](float* p) {
        regroup::softmax(par, view(p, {4, 4}), view(p, {4, 4}, {1, 4}));
      },
      "overlaps");
  refused<regroup::overlap_error>([](float* p) { regroup::log_softmax(par, view(p, {20}), view(p + 19, {20}, {-1})); },
                                  "overlaps");
  refused<regroup::overlap_error>(
      [](float* p) {
        regroup::logsumexp(par, view(p, {4, 5}), view(p + 19, {4}));
      },
      "overlaps");
  refused<regroup::overlap_error>(
      [](float* p) {
        regroup::softmax(par, view(p, {4, 5}), view(p, {4, 5}), {.logsumexp = view(p + 17, {4})});
      },
      "overlaps");
  refused<regroup::overlap_error>(
      [](float* p) {
        regroup::softmax(par, view(p, {4, 5}), view(p + 20, {4, 5}), {.logsumexp = view(p + 37, {4})});
      },
      "overlaps");
  refused<regroup::overlap_error>(
      [](float* p) {
        regroup::softmax(par, view(p, {4, 5}), view(p + 20, {4, 5}, {0, 1}));
      },
      "strides (0, 1)");
}

TEST(softmax_errors, scale) {
  for (const double scale :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), 1e39, -1e39}) {
    refused<regroup::argument_error>(
        [&](float* p) {
          regroup::softmax(par, view(p, {4, 5}), view(p + 20, {4, 5}), {.scale = scale});
        },
        "scale must be finite");
  }
}

TEST(cross_entropy_errors, targets) {
  const auto with = [](std::vector<int> targets, std::string words) {
    refused<regroup::argument_error>(
        [&](float* p) {
          regroup::cross_entropy(par, view(p, {3, 5}), targets,
                                 {.gradient = view(p + 20, {3, 5}), .losses = view(p + 40, {3})});
        },
        words);
  };
  with({0, 1, 5}, "row 2 has target 5; with 5 classes a target is 0 to 4, or -100 to be ignored");
  with({0, -1, 4}, "row 1 has target -1");
  with({-99, 1, 4}, "row 0 has target -99");
  refused<regroup::argument_error>(
      [](float* p) {
        regroup::cross_entropy(par, view(p, {1, 0}), std::vector{0});
      },
      "with 0 classes a target can only be -100 to be ignored");
  refused<regroup::shape_error>(
      [](float* p) {
        regroup::cross_entropy(par, view(p, {3, 5}), std::vector{1, 2});
      },
      "one target a row, 3");
  refused<regroup::shape_error>(
      [](float* p) {
        regroup::cross_entropy(par, view(p, {3, 5}), std::vector{1, 2, 3}, {.gradient = view(p + 20, {5, 3})});
      },
      "(3, 5)");
  refused<regroup::overlap_error>(
      [](float* p) {
        regroup::cross_entropy(par, view(p, {3, 5}), std::vector{1, 2, 3}, {.gradient = view(p + 2, {3, 5})});
      },
      "overlaps");
  refused<regroup::overlap_error>(
      [](float* p) {
        regroup::cross_entropy(par, view(p, {3, 5}), std::vector{1, 2, 3}, {.losses = view(p + 2, {3})});
      },
      "overlaps");
}

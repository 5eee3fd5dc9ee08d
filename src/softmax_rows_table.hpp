// SPDX-License-Identifier: Apache-2.0
// Tables of softmax's loops for one instruction set.
#pragma once

#include <tuple>

#include "row_groups.hpp"

namespace regroup::softmax_parts {

using all_row_kernels =
    std::tuple<row_kernels<float, float>, row_kernels<double, double>, row_kernels<float16, float16>,
               row_kernels<float16, float>, row_kernels<bfloat16, bfloat16>, row_kernels<bfloat16, float>>;
#if defined(__x86_64__)
extern const all_row_kernels rows_v3, rows_v4;
extern const row_kernels<bfloat16, bfloat16> rows_v4_bf16;
#endif

namespace {

/// The table for packs of Bytes.
template <int Bytes>
constexpr all_row_kernels row_kernels_of() {
  using floats = tiles::pack<float, Bytes>;
  using doubles = tiles::pack<double, (Bytes < 8 ? 8 : Bytes)>;
  return {kernels_of<float, float, floats>(),       kernels_of<double, double, doubles>(),
          kernels_of<float16, float16, floats>(),   kernels_of<float16, float, floats>(),
          kernels_of<bfloat16, bfloat16, floats>(), kernels_of<bfloat16, float, floats>()};
}

}  // namespace
}  // namespace regroup::softmax_parts

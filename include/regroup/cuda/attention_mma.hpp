// SPDX-License-Identifier: Apache-2.0
// A tile of keys on tensor cores: scores and O are products of small matrices (cuda/mma.hpp). float16 and bfloat16 as they
// are (attention_mma16.hpp), weights rounded to them for l and O alike; float by three products of tf32
// (attention_mma_tf32.hpp). The states, the frame and the combine are those of the plain tile; the order inside a product
// is the hardware's, so bits are those of one kind of device, still with any grid, batch and pages.
// Level: block (FlashAttention-2: Dao 2023).
#pragma once

#include "regroup/cuda/attention_mma16.hpp"
#include "regroup/cuda/attention_mma_tf32.hpp"

namespace regroup::cuda {

/// Tensor cores, and their shapes: 64 rows to a block, and 64 or 128 columns.
struct tensor_arithmetic {
  template <class T, class Rule, class Shape>
  using tile = std::conditional_t<sizeof(T) == 2, mma16_leaf<T, Rule, Shape>, tf32_tile<T, Rule, Shape>>;
  template <class Plan, class Run>
  static void with_shape(const Plan& plan, const Run& run) {
    if (plan.columns == 64) return run(mma_shape<8>{});
    run(mma_shape<16>{});
  }
  static constexpr int few_rows = 64, many_rows = 64;
};

}  // namespace regroup::cuda

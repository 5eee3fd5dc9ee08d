// SPDX-License-Identifier: Apache-2.0
// A tile of keys on tensor cores: scores and O are products of small matrices (cuda/mma.hpp). float16 and bfloat16 are
// multiplied as they are, with weights rounded to 16 bits for O (attention_mma16.hpp); float takes three products of tf32
// (attention_mma_tf32.hpp). The states, the frame and the combine are those of the plain tile. The order inside a product is
// the hardware's, so the bits are those of one kind of device, still with any grid, batch and pages.
// Level: block (FlashAttention-2: Dao 2023).
#pragma once

#include "regroup/cuda/attention_mma16.hpp"
#include "regroup/cuda/attention_mma_tf32.hpp"

namespace regroup::cuda {

/// Tensor cores, and their shapes: 64 rows to a block, of 16 bits twice as many where there are so many, and 64 or 128
/// columns.
struct tensor_arithmetic {
  template <class T, class Rule, class Shape>
  using tile = std::conditional_t<sizeof(T) == 2, mma16_leaf<T, Rule, Shape>, tf32_tile<T, Rule, Shape>>;
  template <class T, class Plan, class Run>
  static constexpr void with_shape(const Plan& plan, const Run& run) {
    if constexpr (sizeof(T) == 2) {
      if (plan.rows > few_rows) return plan.columns == 64 ? run(mma_shape<8, 2>{}) : run(mma_shape<16, 2>{});
    }
    return plan.columns == 64 ? run(mma_shape<8>{}) : run(mma_shape<16>{});
  }
  template <class T, class Shape>
  static constexpr index resident_blocks = tile<T, no_mask, Shape>::resident_blocks;
  /// With what a block has besides the large part: the build holds it to its budget (properties/habits/registers.py).
  template <class T, class Shape>
  static constexpr index shared_bytes = index{large_bytes<tile<T, no_mask, Shape>>} + (sizeof(T) == 2 ? 18'500 : 47'000);
  static constexpr int few_rows = 64, few_columns = 64;
  template <class T>
  static constexpr int many_rows(const attention_call<T>& call) {
    return sizeof(T) == 2 && call.has_rows() && call.d <= (call.dv <= 64 ? 64 : 128) ? 128 : few_rows;
  }
};

}  // namespace regroup::cuda

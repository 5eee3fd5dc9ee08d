// SPDX-License-Identifier: Apache-2.0
// Softmax's loops for any processor, and which instruction set serves.
#include "softmax_rows_table.hpp"
#include "targets.hpp"

namespace regroup::softmax_parts {

template <class X, class Y>
requires has_row_kernels<X, Y>
const row_kernels<X, Y>& current_row_kernels() {
  static constexpr all_row_kernels baseline = row_kernels_of<4>();
#if defined(__x86_64__)
  if constexpr (std::same_as<Y, bfloat16>) {
    const auto target = host::current_target();
    if (target == host::target::x86_64_v4_bf16 || target == host::target::x86_64_v4_amx) return rows_v4_bf16;
  }
  return std::get<row_kernels<X, Y>>(host::best_of(rows_v4, rows_v3, baseline));
#else
  return std::get<row_kernels<X, Y>>(baseline);
#endif
}

template const row_kernels<float, float>& current_row_kernels();
template const row_kernels<double, double>& current_row_kernels();
template const row_kernels<float16, float16>& current_row_kernels();
template const row_kernels<float16, float>& current_row_kernels();
template const row_kernels<bfloat16, bfloat16>& current_row_kernels();
template const row_kernels<bfloat16, float>& current_row_kernels();

}  // namespace regroup::softmax_parts

// SPDX-License-Identifier: Apache-2.0
// Softmax's loops for any processor, and the choice of the instruction set.
#include "regroup/host/lanes.hpp"
#include "softmax_rows_table.hpp"
#include "targets.hpp"

namespace regroup::softmax_parts {

template <class X, class Y>
requires has_row_kernels<X, Y>
const row_kernels<X, Y>& current_row_kernels() {
  static constexpr all_row_kernels baseline = row_kernels_of<tiles::plain_bytes>();
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

template <class X, class Real>
typename log_sum_exp<Real>::state leaf_of_tile(const X* x, index n, scaled<Real> seen) {
  return host::leaf_of(over{log_sum_exp<Real>{}, seen}, x, n);
}

template log_sum_exp<float>::state leaf_of_tile(const float* x, index n, scaled<float> seen);
template log_sum_exp<double>::state leaf_of_tile(const double* x, index n, scaled<double> seen);
template log_sum_exp<float>::state leaf_of_tile(const float16* x, index n, scaled<float> seen);
template log_sum_exp<float>::state leaf_of_tile(const bfloat16* x, index n, scaled<float> seen);

}  // namespace regroup::softmax_parts

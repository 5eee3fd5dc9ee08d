// SPDX-License-Identifier: Apache-2.0
// The two matrix products of attention as one kernel: a chain of fma for each (row, lane), over steps ascending:
//     acc[r * acc_row + i] = fma(a[r * a_row + x * a_step], b[x * b_step + i], acc[r * acc_row + i]),  x = 0, ..., steps - 1
// Rows, lanes and blocking do not touch the order, so every instruction set gives the same bits.
#pragma once

#include <cstdint>

namespace regroup::tiles {

template <class Real>
struct products {
  const Real* a;
  std::int64_t a_row, a_step;
  const Real* b;
  std::int64_t b_step;
  Real* acc;
  std::int64_t acc_row;
  std::int64_t rows, lanes, steps;
};

void multiply_add(const products<float>& p);
void multiply_add(const products<double>& p);

#if defined(__x86_64__)
void multiply_add_v3(const products<float>& p);
void multiply_add_v3(const products<double>& p);
void multiply_add_v4(const products<float>& p);
void multiply_add_v4(const products<double>& p);
#endif

}  // namespace regroup::tiles

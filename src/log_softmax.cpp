// SPDX-License-Identifier: Apache-2.0
// Rows of log_softmax, compiled once for all programs.
#include "each_row_compiled.hpp"

namespace regroup::softmax_parts {

template void each_row_compiled(const host::pool&, const row_slices<const float>&, const row_slices<float>&, scaled<float>,
                                const look_of<log_probability<float>, float>&);
template void each_row_compiled(const host::pool&, const row_slices<const double>&, const row_slices<double>&, scaled<double>,
                                const look_of<log_probability<double>, double>&);
template void each_row_compiled(const host::pool&, const row_slices<const float16>&, const row_slices<float16>&,
                                scaled<float>, const look_of<log_probability<float>, float>&);
template void each_row_compiled(const host::pool&, const row_slices<const float16>&, const row_slices<float>&, scaled<float>,
                                const look_of<log_probability<float>, float>&);
template void each_row_compiled(const host::pool&, const row_slices<const bfloat16>&, const row_slices<bfloat16>&,
                                scaled<float>, const look_of<log_probability<float>, float>&);
template void each_row_compiled(const host::pool&, const row_slices<const bfloat16>&, const row_slices<float>&, scaled<float>,
                                const look_of<log_probability<float>, float>&);

}  // namespace regroup::softmax_parts

// SPDX-License-Identifier: Apache-2.0
// Rows of logsumexp, compiled once for all programs.
#include "each_row_compiled.hpp"

namespace regroup::softmax_parts {

template void each_row_compiled(const host::pool&, const row_slices<const float>&, std::nullopt_t, scaled<float>,
                                const look_of<no_map, float>&);
template void each_row_compiled(const host::pool&, const row_slices<const double>&, std::nullopt_t, scaled<double>,
                                const look_of<no_map, double>&);
template void each_row_compiled(const host::pool&, const row_slices<const float16>&, std::nullopt_t, scaled<float>,
                                const look_of<no_map, float>&);
template void each_row_compiled(const host::pool&, const row_slices<const bfloat16>&, std::nullopt_t, scaled<float>,
                                const look_of<no_map, float>&);

}  // namespace regroup::softmax_parts

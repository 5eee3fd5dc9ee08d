// SPDX-License-Identifier: Apache-2.0
// Segments of softmax, log_softmax and logsumexp, compiled once for all programs.
#include "regroup/algorithms/softmax_segments.hpp"

namespace regroup::softmax_parts {

template <class X, class Y, class Real, class Map>
void each_segment_compiled(const host::pool& ex, const segment_rows<const X>& in, const segment_rows<Y>& out,
                           scaled<Real> seen, const look_of<Map, Real>& look) {
  softmax_parts::each_segment(ex, in, out, seen, look);
}
template <class X, class Real>
void each_segment_compiled(const host::pool& ex, const segment_rows<const X>& in, std::nullopt_t, scaled<Real> seen,
                           const look_of<no_map, Real>& look) {
  softmax_parts::each_segment(ex, in, std::nullopt, seen, look);
}

#define REGROUP_FROM_TO(X, Y, REAL, MAP)                                                                          \
  template void each_segment_compiled(const host::pool&, const segment_rows<const X>&, const segment_rows<Y>&,   \
                                      scaled<REAL>, const look_of<MAP<REAL>, REAL>&);
#define REGROUP_ALL_FROM_TO(MAP)                  \
  REGROUP_FROM_TO(float, float, float, MAP)       \
  REGROUP_FROM_TO(double, double, double, MAP)    \
  REGROUP_FROM_TO(float16, float16, float, MAP)   \
  REGROUP_FROM_TO(float16, float, float, MAP)     \
  REGROUP_FROM_TO(bfloat16, bfloat16, float, MAP) \
  REGROUP_FROM_TO(bfloat16, float, float, MAP)
REGROUP_ALL_FROM_TO(probability)
REGROUP_ALL_FROM_TO(log_probability)

#define REGROUP_OF(X, REAL)                                                                              \
  template void each_segment_compiled(const host::pool&, const segment_rows<const X>&, std::nullopt_t,   \
                                      scaled<REAL>, const look_of<no_map, REAL>&);
REGROUP_OF(float, float)
REGROUP_OF(double, double)
REGROUP_OF(float16, float)
REGROUP_OF(bfloat16, float)

}  // namespace regroup::softmax_parts

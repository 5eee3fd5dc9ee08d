// SPDX-License-Identifier: Apache-2.0
// What programs call of softmax, for compiled_rows.py.
#include "regroup/algorithms/softmax.hpp"
#include "regroup/host/par.hpp"

template <class X, class Y>
void all(const regroup::view<const X>& x, const regroup::view<Y>& y, const regroup::view<regroup::widened<X>>& logsumexp) {
  regroup::softmax(regroup::par, x, y, {.logsumexp = logsumexp});
  regroup::log_softmax(regroup::seq, x, y, {.axis = 0});
  regroup::logsumexp(regroup::par, x, logsumexp);
}
template void all(const regroup::view<const float>&, const regroup::view<float>&, const regroup::view<float>&);
template void all(const regroup::view<const double>&, const regroup::view<double>&, const regroup::view<double>&);
template void all(const regroup::view<const regroup::float16>&, const regroup::view<regroup::float16>&, const regroup::view<float>&);
template void all(const regroup::view<const regroup::float16>&, const regroup::view<float>&, const regroup::view<float>&);
template void all(const regroup::view<const regroup::bfloat16>&, const regroup::view<regroup::bfloat16>&, const regroup::view<float>&);
template void all(const regroup::view<const regroup::bfloat16>&, const regroup::view<float>&, const regroup::view<float>&);

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
using regroup::bfloat16, regroup::float16, regroup::view;
template void all(const view<const float>&, const view<float>&, const view<float>&);
template void all(const view<const double>&, const view<double>&, const view<double>&);
template void all(const view<const float16>&, const view<float16>&, const view<float>&);
template void all(const view<const float16>&, const view<float>&, const view<float>&);
template void all(const view<const bfloat16>&, const view<bfloat16>&, const view<float>&);
template void all(const view<const bfloat16>&, const view<float>&, const view<float>&);

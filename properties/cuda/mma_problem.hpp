// SPDX-License-Identifier: Apache-2.0
// A dense problem of attention, and its answer by emulated kernels on tensor cores.
#pragma once

#include "attentions.hpp"

namespace tensor_cores {

using emulated::machine;
using regroup::index;
using regroup::view;
namespace cuda = regroup::cuda;

template <class T>
struct problem {
  cases::tensor<T> q, k, v;
  problem(index heads, index key_heads, index queries, index keys, index d, index dv)
      : q(cases::normal<T>({1, heads, queries, d}, 1)),
        k(cases::normal<T>({1, key_heads, keys, d}, 2)),
        v(cases::normal<T>({1, key_heads, keys, dv}, 3)) {}
};
template <class T, class Mask = regroup::no_mask>
auto attend(machine on, const view<const T>& q, const view<const T>& k, const view<const T>& v, const Mask& mask = {},
            index blocks = 1 << 20) {
  return emulated::attend<T, float, Mask, cuda::tensor_arithmetic>(
      on, q, cuda::dense(emulated::on_device(k), emulated::on_device(v)), cuda::attention_options<Mask>{.mask = mask}, 1,
      blocks);
}
template <class T, class Mask = regroup::no_mask>
auto attend(const problem<T>& p, const Mask& mask = {}, machine on = machine(emulated::schedule::random, 5),
            index blocks = 1 << 20) {
  return attend<T>(on, p.q.view(), p.k.view(), p.v.view(), mask, blocks);
}

}  // namespace tensor_cores

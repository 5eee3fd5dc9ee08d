// SPDX-License-Identifier: Apache-2.0
// The emulated kernels of attention, compiled once for all tests of them.
#include "attentions.hpp"

namespace emulated {

template <class Arithmetic, class T, class Out>
void attend(machine& on, const any_work<T, Out>& work, const regroup::cuda::attention_plan& plan, index most_blocks) {
  const auto words = (plan.bytes + sizeof(double) - 1) / sizeof(double);
  const std::unique_ptr<double[]> workspace(new double[words]);
  std::memset(workspace.get(), 0xff, plan.bytes);
  const auto launch = [&](const auto& kernel, index blocks) { on.run(kernel, std::min(blocks, most_blocks)); };
  launch_attention<Arithmetic>(launch, plan, work, workspace.get());
}
template <class T, class Out>
cases::answer<T, Out> on_the_host(const regroup::view<const T>& q, const regroup::attention_source<T>& keys,
                                  const regroup::attention_options& options) {
  return cases::attend<T, Out>(regroup::seq, q, keys, options);
}

using regroup::bfloat16;
using regroup::float16;
using regroup::view;
using plan = regroup::cuda::attention_plan;
using options = regroup::attention_options;
using states = regroup::cuda::attention_states<float>;
using regroup::cuda::plain_arithmetic;
using regroup::cuda::tensor_arithmetic;
template void attend<plain_arithmetic>(machine&, const any_work<float, float>&, const plan&, index);
template void attend<plain_arithmetic>(machine&, const any_work<float, states>&, const plan&, index);
template void attend<plain_arithmetic>(machine&, const any_work<float16, float16>&, const plan&, index);
template void attend<plain_arithmetic>(machine&, const any_work<bfloat16, float>&, const plan&, index);
template void attend<tensor_arithmetic>(machine&, const any_work<float, float>&, const plan&, index);
template void attend<tensor_arithmetic>(machine&, const any_work<float16, float>&, const plan&, index);
template void attend<tensor_arithmetic>(machine&, const any_work<bfloat16, float>&, const plan&, index);
template cases::answer<float> on_the_host(const view<const float>&, const regroup::attention_source<float>&,
                                          const options&);
template cases::answer<float16> on_the_host(const view<const float16>&, const regroup::attention_source<float16>&,
                                            const options&);
template cases::answer<bfloat16, float> on_the_host(const view<const bfloat16>&, const regroup::attention_source<bfloat16>&,
                                                    const options&);

}  // namespace emulated

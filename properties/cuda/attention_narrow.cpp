// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores without wide products, as before Hopper: a block that is planned with 128 rows takes 64 of them
// twice, on the same stack, in the same order. So the bits are those of the emulated device that has wide products.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "mma_problem.hpp"

namespace {

using cases::tensor;
using emulated::any_rule;
using emulated::machine;
using emulated::on_device;
using regroup::causal;
using regroup::index;
using T = regroup::bfloat16;
namespace cuda = regroup::cuda;

/// A block of a device without them.
template <class Block>
struct without_wide_products : Block {
  explicit without_wide_products(const Block& b) : Block(b) {}
  static constexpr bool has_wide_products = false;
};
template <class Kernel>
struct on_an_older_device {
  Kernel kernel;
  template <cuda::block Block>
  constexpr void operator()(Block& b) const {
    without_wide_products<Block> older(b);
    kernel(older);
  }
};

struct answer {
  tensor<float> out, lse;
  index rows, parts;
  int depth;
  bool has_turns;
};
/// Causal attention of queries to the last of `keys`; the batches have `lengths`, if there are some.
answer attend(const tensor<T>& q, const tensor<T>& k, const tensor<T>& v, int processors, const std::vector<int>& lengths) {
  const auto& [batches, heads, queries] = std::array{q.extents[0], q.extents[1], q.extents[2]};
  answer a{tensor<float>({batches, heads, queries, v.extents[3]}), tensor<float>({batches, heads, queries}), 0, 0, 0, false};
  cuda::attention_options<causal> options;
  options.logsumexp.emplace(a.lse.values.data(), a.lse.extents);
  const cuda::device_view<float> out(a.out.values.data(), a.out.extents);
  auto keys = cuda::dense(on_device(k), on_device(v));
  if (!lengths.empty()) keys.lengths = on_device(lengths);
  const auto own = cuda::attention_work_of<T>(cuda::attention_queries<T>(on_device(q)), keys, out, options);
  const any_rule::of<std::remove_const_t<decltype(own.rule)>> rule(own.rule);
  const emulated::any_work<T, float> work{own.call, any_rule{&rule}, own.put, own.leaves};
  const auto plan = cuda::plan_attention<cuda::tensor_arithmetic>(work.call, work.leaves, processors);
  a.rows = plan.rows;
  a.parts = plan.parts;
  a.depth = plan.depth;
  a.has_turns = plan.has_turns();
  const std::unique_ptr<double[]> workspace(new double[plan.bytes / sizeof(double) + 1]);
  std::memset(workspace.get(), 0xff, plan.bytes);
  machine on(emulated::schedule::random, 5);
  const auto launch = [&]<class Kernel>(const Kernel& kernel, index blocks) {
    on.run(on_an_older_device<Kernel>{kernel}, blocks, cuda::threads_of<Kernel>);
  };
  cuda::launch_attention<cuda::tensor_arithmetic>(launch, plan, work, workspace.get());
  return a;
}

TEST(attention_narrow, has_the_bits_of_wide_products) {
  struct extents {
    index batches, queries, keys, dv;
    int processors;
    std::vector<int> lengths;
  };
  int in_parts = 0, waiting = 0, in_turns = 0;
  for (const extents& e : {extents{1, 100, 130, 64, 1, {}}, {1, 200, 1100, 72, 8, {}}, {1, 129, 2100, 64, 1, {}},
                           {3, 130, 300, 64, 1, {300, 0, 131}}}) {
    const auto q = cases::normal<T>({e.batches, 2, e.queries, 16}, 1), k = cases::normal<T>({e.batches, 1, e.keys, 16}, 2),
               v = cases::normal<T>({e.batches, 1, e.keys, e.dv}, 3);
    const answer narrow = attend(q, k, v, e.processors, e.lengths);
    EXPECT_EQ(narrow.rows, 128);
    in_parts += narrow.parts > 1;
    waiting += narrow.depth > 0;
    in_turns += narrow.has_turns && !e.lengths.empty();
    auto keys = cuda::dense(on_device(k), on_device(v));
    if (!e.lengths.empty()) keys.lengths = on_device(e.lengths);
    machine on;
    const auto wide = emulated::attend<T, float, causal, cuda::tensor_arithmetic>(on, q.view(), keys, {}, e.processors);
    EXPECT_TRUE(cases::same_bits<float>(narrow.out.view(), wide.out.view())) << e.keys;
    EXPECT_TRUE(cases::same_bits<float>(narrow.lse.view(), wide.lse.view())) << e.keys;
  }
  EXPECT_TRUE(in_parts > 0 && waiting > 0 && in_turns > 0) << in_parts << ' ' << waiting << ' ' << in_turns;
}

}  // namespace

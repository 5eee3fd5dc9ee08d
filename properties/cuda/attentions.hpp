// SPDX-License-Identifier: Apache-2.0
// What the tests of attention on a device share: a call over host memory by emulated kernels, as cuda::device launches
// them, and the host's own answer to the same call.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "../attention/cases.hpp"
#include "../order/cases.hpp"
#include "emulator.hpp"
#include "regroup/cuda/attention_masks.hpp"
#include "regroup/cuda/attention_mma.hpp"
#include "regroup/cuda/attention_states.hpp"

namespace emulated {

/// Any bound rule behind one type, so that kernels are compiled once for all of them.
struct any_rule {
  struct of_some_type {
    virtual ~of_some_type() = default;
    [[nodiscard]] virtual regroup::key_range range(index batch, index head, index query) const = 0;
    [[nodiscard]] virtual float score(float s, index batch, index head, index query, index key) const = 0;
  };
  template <class Rule>
  struct of final : of_some_type {
    Rule rule;
    explicit of(const Rule& r) : rule(r) {}
    [[nodiscard]] regroup::key_range range(index batch, index head, index query) const override {
      return regroup::mask_rules::range(rule, batch, head, query);
    }
    [[nodiscard]] float score(float s, index batch, index head, index query, index key) const override {
      return regroup::cuda::scored_by(rule, s, batch, head, query, key);
    }
  };
  const of_some_type* rule;
  [[nodiscard]] regroup::key_range range(index batch, index head, index query) const {
    return rule->range(batch, head, query);
  }
  template <class Real>
  Real operator()(Real s, index batch, index head, index query, index key) const {
    return rule->score(static_cast<float>(s), batch, head, query, key);
  }
};

template <class T>
regroup::cuda::device_view<const T> on_device(const regroup::view<const T>& x) {
  return {x.data(), x.extents(), x.strides()};
}
template <class T>
regroup::cuda::device_view<const T> on_device(const cases::tensor<T>& x) {
  return on_device(x.view());
}
template <class T>
regroup::cuda::device_view<const T> on_device(const std::vector<T>& x) {
  return {x.data(), {static_cast<index>(x.size())}};
}

/// Launches with exactly the workspace that the plan asks for, holding NaNs.
template <class T, class Out>
using any_work = regroup::cuda::attention_work<T, any_rule, Out>;
template <class Arithmetic = regroup::cuda::plain_arithmetic, class T, class Out>
void attend(machine& on, const any_work<T, Out>& work, const regroup::cuda::attention_plan& plan,
            index most_blocks = index{1} << 20);

/// What results hold where no kernel wrote.
inline constexpr float untouched = -77;

/// A call by emulated kernels, for a device of so many processors.
template <class T, class Out = T, class Mask = regroup::no_mask, class Arithmetic = regroup::cuda::plain_arithmetic>
cases::answer<T, Out> attend(machine& on, const regroup::cuda::attention_queries<T>& q,
                             const regroup::cuda::attention_keys<T>& keys,
                             regroup::cuda::attention_options<Mask> options = {}, int processors = 1,
                             index most_blocks = index{1} << 20) {
  namespace cuda = regroup::cuda;
  const regroup::shape& e = q.q.extents();
  regroup::shape outer(std::span(e.begin(), e.end() - 1));
  regroup::shape full = outer;
  full.push_back(keys.v.extents()[keys.v.rank() - 1]);
  cases::answer<T, Out> result{cases::tensor<Out>(full), cases::tensor<float>(outer)};
  std::fill(result.out.values.begin(), result.out.values.end(), static_cast<Out>(untouched));
  std::fill(result.lse.values.begin(), result.lse.values.end(), untouched);
  options.logsumexp.emplace(result.lse.values.data(), outer);
  const auto own = cuda::attention_work_of<T>(q, keys, cuda::device_view<Out>(result.out.values.data(), full), options);
  const any_rule::of<std::remove_const_t<decltype(own.rule)>> rule(own.rule);
  const any_work<T, Out> work{own.call, any_rule{&rule}, own.put, own.leaves};
  attend<Arithmetic>(on, work, cuda::plan_attention<Arithmetic>(work.call, work.leaves, processors), most_blocks);
  return result;
}
template <class T, class Out = T, class Mask = regroup::no_mask, class Arithmetic = regroup::cuda::plain_arithmetic>
cases::answer<T, Out> attend(machine& on, const regroup::view<const T>& q, const regroup::cuda::attention_keys<T>& keys,
                             const regroup::cuda::attention_options<Mask>& options = {}, int processors = 1,
                             index most_blocks = index{1} << 20) {
  const regroup::cuda::attention_queries<T> queries(on_device(q));
  return attend<T, Out, Mask, Arithmetic>(on, queries, keys, options, processors, most_blocks);
}

/// The same call on the host.
template <class T, class Out = T>
cases::answer<T, Out> on_the_host(const regroup::view<const T>& q, const regroup::attention_source<T>& keys,
                                  const regroup::attention_options& options);

}  // namespace emulated

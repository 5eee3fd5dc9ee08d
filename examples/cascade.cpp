// SPDX-License-Identifier: Apache-2.0
// Three requests continue one prompt (cascade attention). The prompt's keys are attended once, by all their tokens
// together; each request then appends its own keys to the state, with rules of its own. Sinks count once, at the end.
#include <cstdio>
#include <vector>

#include "regroup/regroup.hpp"

using regroup::dense, regroup::par, regroup::ragged, regroup::view;

int main() {
  constexpr regroup::index heads = 4, d = 32, prompt = 2000;
  const std::vector<regroup::index> offsets = {0, 1, 8, 12};  // tokens of the requests, one behind the other
  const regroup::index tokens = offsets.back();
  const auto numbers = [](regroup::index n, unsigned seed) {
    std::vector<float> x(static_cast<std::size_t>(n));
    for (float& e : x) e = static_cast<float>((seed = seed * 1664525 + 1013904223) >> 8) / 8388608 - 1;
    return x;
  };
  const auto qs = numbers(tokens * heads * d, 1), ks = numbers(tokens * heads * d, 2), vs = numbers(tokens * heads * d, 3);
  const auto prompt_ks = numbers(heads * prompt * d, 4), prompt_vs = numbers(heads * prompt * d, 5);
  const view q(qs.data(), {tokens, heads, d}), k(ks.data(), {tokens, heads, d}), v(vs.data(), {tokens, heads, d});
  const auto prompt_keys = dense(view(prompt_ks.data(), {heads, prompt, d}), view(prompt_vs.data(), {heads, prompt, d}));
  const std::vector<float> sinks(heads, 0.5f);

  regroup::attention_state state(par, q.permuted({1, 0, 2}), prompt_keys);                         // the prompt, once
  state.append(par, ragged(q, offsets), ragged(k, v, offsets), {.mask = regroup::causal{}});       // what each adds
  std::vector<float> out(qs.size());
  state.normalise(view(out.data(), {tokens, heads, d}).permuted({1, 0, 2}), {}, sinks);

  int different = 0;  // from each request alone
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    const regroup::index first = offsets[b], own = offsets[b + 1] - first;
    const auto mine = [&](const view<const float>& x) { return view(&x(first, 0, 0), {own, heads, d}).permuted({1, 0, 2}); };
    regroup::attention_state alone(par, mine(q), prompt_keys);
    alone.append(par, mine(q), dense(mine(k), mine(v)), {.mask = regroup::causal{}});
    std::vector<float> result(static_cast<std::size_t>(own * heads * d));
    alone.normalise(view(result.data(), {own, heads, d}).permuted({1, 0, 2}), {}, sinks);
    for (std::size_t i = 0; i < result.size(); ++i) {
      different += result[i] != out[static_cast<std::size_t>(first * heads * d) + i];
    }
  }
  std::printf("one pass over the prompt for three requests: %d of %zu numbers differ from each alone\n", different, out.size());
  return different == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// More lines like those of bits.cpp, golden on every instruction set, but left out of the matrix of compilers and flags,
// which would compile them a dozen times: rows of 16 bits, logsumexp, scans of double, minmax, products, weighted means,
// attention under masks that are arrays, and its states.
#include <array>
#include <memory>

#include "bits.hpp"
#include "regroup/algorithms/cross_entropy.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/mean.hpp"
#include "regroup/monoids/minmax.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/monoids/scaled_product.hpp"
#include "regroup/monoids/softmax_mean.hpp"

namespace {

using namespace bits;

constexpr auto softmax = [](const auto& x, const auto& y) { regroup::softmax(executor, x, y); };

/// The mean loss of two rows of several lengths, and their gradient.
template <class X>
void losses(const std::string& name, kind k) {
  digest all;
  rows<X>(name, k, [&](const auto& x, const auto& y) {
    const std::vector<int> targets{0, static_cast<int>(x.extent(1) - 1)};
    all.add(regroup::cross_entropy(executor, x, targets, {.gradient = y}));
  });
  print(name + " loss", all.value());
}

/// Of two rows of several lengths.
template <class X>
void logsumexps(const std::string& name, kind k) {
  digest all;
  for (const std::int64_t n : {1, 37, 5000, 70'000}) {
    const auto xs = inputs<X>(k, 2 * n, static_cast<std::uint64_t>(n));
    std::vector<regroup::widened<X>> sums(2);
    regroup::logsumexp(executor, regroup::view<const X>(xs.data(), {2, n}), sums);
    all.add(sums);
  }
  print(name, all.value());
}

struct to_key {
  regroup::scored<float, std::array<float, 2>> operator()(float x) const { return {x, {x * 0.5f, -x}}; }
};

/// Of 9 queries over the halves of 1100 keys, merged.
void states() {
  constexpr std::int64_t d = 24, keys = 1100;
  const auto q = inputs<float>(kind::plain, 9 * d, 1);
  const auto kv = inputs<float>(kind::plain, keys * d, 2);
  const auto half = [&](std::int64_t first) {
    const regroup::view<const float> part(kv.data() + first * d, {keys / 2, d});
    return regroup::attention_state<float>(executor, regroup::view(q.data(), {9, d}), regroup::dense(part, part));
  };
  std::vector<float> out(q.size()), lse(9);
  merge(half(0), half(keys / 2)).normalise(regroup::view(out.data(), {9, d}), lse);
  print("attention_state<float>", digest{}.add(out).add(lse).value());
}

/// Attention of 90 queries under arrays of scores and of yes and no, of two heads' shape, and under slopes.
void masked_attentions() {
  constexpr std::int64_t queries = 90, keys = 1100;
  const auto scores = inputs<float>(kind::plain, 2 * queries * keys, 5);
  const std::unique_ptr<bool[]> seen(new bool[scores.size()]);
  for (std::size_t i = 0; i < scores.size(); ++i) seen[i] = scores[i] > -1;
  const regroup::view added(scores.data(), {2, queries, keys});
  const regroup::view<const bool> kept(seen.get(), {2, queries, keys});
  attentions<float>("float> additive mask", queries, {.mask = regroup::additive(added)});
  attentions<regroup::bfloat16>("bfloat16> boolean mask", queries, {.mask = regroup::boolean(kept)});
  attentions<float>("float> alibi", queries, {.mask = regroup::causal{} & regroup::alibi(std::vector<float>{0.25f, 0.0625f})});
}

}  // namespace

int main() {
  for (const auto& [k, suffix] : kinds) {
    const std::string of = suffix;
    wholes<float>("minmax<float>" + of, regroup::minmax<float>{}, k);
    wholes<float>("scaled_product<float>" + of, regroup::scaled_product<float>{}, k);
    scans<double>("plus<double>" + of, regroup::plus<double>{}, k);
    rows<regroup::float16>("softmax<float16>" + of, k, softmax);
    logsumexps<float>("logsumexp<float>" + of, k);
    losses<regroup::bfloat16>("cross_entropy<bfloat16>" + of, k);
    wholes<float>("moments<float>" + of, regroup::moments<float>{}, k);
    wholes<float>("mean<float>" + of, regroup::mean<float>{}, k);
    wholes<float>("softmax_mean<float>" + of, regroup::softmax_mean<float, regroup::fixed_vector<float, 2>>{}, k, to_key{});
  }
  masked_attentions();
  states();
  return 0;
}

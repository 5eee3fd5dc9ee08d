// SPDX-License-Identifier: Apache-2.0
// More lines like those of bits.cpp, golden on every instruction set, but left out of the matrix of compilers and flags,
// which would compile them a dozen times: rows of 16 bits, logsumexp, scans of double, minmax, products.
#include "bits.hpp"
#include "regroup/algorithms/cross_entropy.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/minmax.hpp"
#include "regroup/monoids/scaled_product.hpp"

namespace {

using namespace bits;

constexpr auto softmax = [](const auto& x, const auto& y) { regroup::softmax(regroup::par, x, y); };

/// The mean loss of two rows of several lengths, and their gradient.
template <class X>
void losses(const std::string& name, kind k) {
  digest all;
  rows<X>(name, k, [&](const auto& x, const auto& y) {
    const std::vector<int> targets{0, static_cast<int>(x.extent(1) - 1)};
    all.add(regroup::cross_entropy(regroup::par, x, targets, {.gradient = y}));
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
    regroup::logsumexp(regroup::par, regroup::view<const X>(xs.data(), {2, n}), sums);
    all.add(sums);
  }
  print(name, all.value());
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
  }
  return 0;
}

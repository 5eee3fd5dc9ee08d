// SPDX-License-Identifier: Apache-2.0
// A reduction whose elements arrive in pieces of any size, on several machines, with a restart in between: the bits are
// those of one reduce over everything.
#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

#include "regroup/regroup.hpp"

int main() {
  using lse = regroup::log_sum_exp<float>;
  std::vector<float> x(100'000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 2003) / 100;

  regroup::accumulator first{lse{}};
  for (std::size_t at = 0, n = 1; at < 60'000; at += n, n = std::min(3 * n, 60'000 - at)) {
    first.push(std::span(x).subspan(at, n));
  }
  regroup::accumulator second{lse{}, 60'000};  // another machine, which starts at position 60,000
  second.push(std::span(x).subspan(60'000));

  const std::vector<std::byte> bytes = second.save();  // sent over the network, or kept over a restart
  first.merge(regroup::accumulator<lse>::load(lse{}, bytes));

  const float whole = regroup::reduce(regroup::par, x, lse{});
  std::printf("streamed, merged %.9g; at once %.9g; %zu bytes travelled\n", first.value(), whole, bytes.size());
  return first.value() == whole ? 0 : 1;
}

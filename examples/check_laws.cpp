// SPDX-License-Identifier: Apache-2.0
// The laws are checked, not promised. A first (max, sum of exp) operator looks right and passes every demo, until two
// empty states meet: -inf - -inf is NaN. Caught, fixed with one choice, and run everywhere: the README's story.
#include <iostream>
#include <numeric>
#include <span>
#include <vector>

#include "max_sum.hpp"
#include "regroup/check_laws.hpp"
#include "regroup/regroup.hpp"

int main() {
  using namespace regroup;
  const auto caught = check_laws<float>(obvious{});
  std::cout << caught << "\n" << check_laws<float>(fixed{}) << "\n" << check_laws<float>(packed{});

  const long rows = 100, columns = 1000;
  std::vector<float> x(static_cast<std::size_t>(rows * columns)), out(static_cast<std::size_t>(rows)), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 2003) / 100;

  float all  = reduce(par, x, fixed{});                        // all cores; the bits of reduce(seq, x, fixed{})
  reduce_rows(par, view(x, {rows, columns}), out, fixed{});
  inclusive_scan(par, x, y, fixed{});
  accumulator acc{fixed{}};
  for (const auto chunk : {std::span(x).first(70'001), std::span(x).subspan(70'001)}) acc.push(chunk);   // a stream
  const auto theirs = std::transform_reduce(x.begin(), x.end(), fixed{}.identity(), fixed{}, lifting{fixed{}});

  std::cout << "\nall at once " << all << ", streamed " << acc.value() << ", std " << fixed{}.lower(theirs) << "\n";
  const bool same = all == reduce(seq, x, fixed{}) && all == acc.value() &&
                    out[7] == reduce(seq, std::span(x).subspan(7000, 1000), fixed{});
  return !caught.passed() && check_laws<float>(fixed{}).passed() && check_laws<float>(packed{}).passed() && same ? 0 : 1;
}

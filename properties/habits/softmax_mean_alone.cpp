// SPDX-License-Identifier: Apache-2.0
// The attention state used without the rest of the library, as somebody else's kernel would: nothing is linked, and two empty
// states merge to the empty state.
#include <cstdio>

#include "regroup/monoids/softmax_mean.hpp"

int main() {
  using vector = regroup::fixed_vector<float, 2>;
  const regroup::softmax_mean<float, vector> attention{};
  const auto key = [&](float score, float a, float b) {
    return attention.lift(regroup::scored<float, vector>{score, {a, b}});
  };
  const auto nothing = attention(attention.identity(), attention.identity());
  const auto one = attention(nothing, key(1e4F, 3, -5));
  const auto two = attention(key(7, 0, 2), key(7, 4, 6));
  const vector none = attention.lower(nothing), same = attention.lower(one), mean = attention.lower(two);
  std::printf("%g %g, %g %g, %g %g\n", none[0], none[1], same[0], same[1], mean[0], mean[1]);
  const bool right = none[0] == 0 && none[1] == 0 && same[0] == 3 && same[1] == -5 && mean[0] == 2 && mean[1] == 4;
  return right ? 0 : 1;
}

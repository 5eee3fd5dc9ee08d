// SPDX-License-Identifier: Apache-2.0
// Three ways to softmax one row, as plain loops: to teach, and for tests, benchmarks and the demo to stand beside. The
// naive one overflows; the safe one shifts by the maximum and reads the row three times; the online one finds maximum
// and sum together, in two. `Number` is what every step is rounded to: `naive_softmax<float16>(x, y)`. x and y are
// ranges or views of rank 1 of one length, and may be the same. Level: thread.
#pragma once

#include <limits>
#include <string>

#include "regroup/math.hpp"
#include "regroup/source.hpp"

namespace regroup {

namespace softmax_parts {

/// x as `Number` holds it, ready to compute with.
template <class Number, class X>
constexpr widened<Number> rounded(const X& x) {
  return regroup::widen(static_cast<Number>(static_cast<widened<Number>>(regroup::widen(x))));
}

template <class Number>
constexpr widened<Number> rounded_exp(widened<Number> x) {
  return rounded<Number>(math::exp(rounded<Number>(x)));
}

/// y[i] = map(x[i]), x rounded to Number.
template <class Number, class X, class Y, class Map>
void write_plainly(const X& x, Y& y, const Map& map) {
  const auto out = view(y);
  for (index i = 0; i < x.size(); ++i) {
    out(i) = static_cast<typename decltype(out)::element_type>(map(rounded<Number>(x[i])));
  }
}

template <class X, class Y>
auto same_length(const X& x, const Y& y) {
  const auto in = as_source(x);
  const index places = as_source(y).size();
  if (places != in.size()) {
    throw_shape("a softmax needs one place an element; got " + std::to_string(in.size()) + " elements and " +
                std::to_string(places) + " places");
  }
  return in;
}

}  // namespace softmax_parts

/// exp(x) / sum exp(x). Infinite / infinite = NaN from x of about 11.1 on in float16, 88.8 in float.
template <class Number, class X, class Y>
void naive_softmax(const X& x, Y&& y) {
  using namespace softmax_parts;
  using real = widened<Number>;
  const auto in = same_length(x, y);
  real sum = 0;
  for (index i = 0; i < in.size(); ++i) sum = rounded<Number>(sum + rounded_exp<Number>(rounded<Number>(in[i])));
  write_plainly<Number>(in, y, [&](real xi) { return rounded<Number>(rounded_exp<Number>(xi) / sum); });
}

/// The maximum; the sum of exp(x - maximum); the quotients: three reads of x.
template <class Number, class X, class Y>
void three_pass_softmax(const X& x, Y&& y) {
  using namespace softmax_parts;
  using real = widened<Number>;
  const auto in = same_length(x, y);
  real m = -std::numeric_limits<real>::infinity();
  for (index i = 0; i < in.size(); ++i) m = math::max(m, rounded<Number>(in[i]));
  real sum = 0;
  for (index i = 0; i < in.size(); ++i) sum = rounded<Number>(sum + rounded_exp<Number>(rounded<Number>(in[i]) - m));
  write_plainly<Number>(in, y, [&](real xi) { return rounded<Number>(rounded_exp<Number>(xi - m) / sum); });
}

/// Maximum and sum in one sweep, the sum rescaled whenever the maximum rises; then the quotients: two reads of x
/// (Milakov and Gimelshein 2018).
template <class Number, class X, class Y>
void online_softmax(const X& x, Y&& y) {
  using namespace softmax_parts;
  using real = widened<Number>;
  const auto in = same_length(x, y);
  real m = -std::numeric_limits<real>::infinity();
  real sum = 0;
  for (index i = 0; i < in.size(); ++i) {
    const real xi = rounded<Number>(in[i]);
    const real higher = math::max(m, xi);
    const real old_weight = m == higher ? real{1} : rounded_exp<Number>(m - higher);  // never -inf - -inf
    const real new_weight = xi == higher ? real{1} : rounded_exp<Number>(xi - higher);
    sum = rounded<Number>(math::fma(sum, old_weight, new_weight));
    m = higher;
  }
  write_plainly<Number>(in, y, [&](real xi) { return rounded<Number>(rounded_exp<Number>(xi - m) / sum); });
}

}  // namespace regroup

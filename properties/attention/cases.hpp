// SPDX-License-Identifier: Apache-2.0
// What the attention tests share: tensors that own their memory and comparisons of bits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "regroup/algorithms/attention.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"

namespace cases {

using regroup::index;

/// An array with its memory, in C order.
template <class T>
struct tensor {
  regroup::shape extents;
  std::vector<T> values;

  tensor() = default;
  explicit tensor(const regroup::shape& e)
      : extents(e), values(static_cast<std::size_t>(regroup::view<T>(nullptr, e).size())) {}
  operator regroup::view<T>() { return {values.data(), extents}; }
  regroup::view<T> view() { return {values.data(), extents}; }
  [[nodiscard]] regroup::view<const T> view() const { return {values.data(), extents}; }
};

/// Normally distributed numbers; T is built from float (or double).
template <class T>
tensor<T> normal(const regroup::shape& extents, unsigned seed, double width = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> distribution(0, width);
  tensor<T> t(extents);
  for (T& x : t.values) x = static_cast<T>(static_cast<regroup::attention_real<T>>(distribution(random)));
  return t;
}

inline std::uint64_t bits(float x) { return x == x ? std::bit_cast<std::uint32_t>(x) : 0x7fc00000u; }
inline std::uint64_t bits(double x) { return x == x ? std::bit_cast<std::uint64_t>(x) : 0x7ff8000000000000u; }
inline std::uint64_t bits(regroup::float16 x) { return x.bits; }
inline std::uint64_t bits(regroup::bfloat16 x) { return x.bits; }

/// Bitwise equality, all NaN alike.
template <class T>
testing::AssertionResult same_bits(const regroup::view<const T>& a, const regroup::view<const T>& b) {
  if (!(a.extents() == b.extents())) return testing::AssertionFailure() << "shapes differ";
  for (index i = 0; i < a.size(); ++i) {
    const T x = a.data()[regroup::offset_of(i, a.extents(), a.strides())];
    const T y = b.data()[regroup::offset_of(i, b.extents(), b.strides())];
    if (bits(x) != bits(y)) {
      return testing::AssertionFailure() << "element " << i << " of " << to_string(a.extents()) << ": "
                                         << static_cast<double>(x) << " and " << static_cast<double>(y);
    }
  }
  return testing::AssertionSuccess();
}
template <class T>
testing::AssertionResult same_bits(const tensor<T>& a, const tensor<T>& b) {
  return same_bits<T>(a.view(), b.view());
}

/// The positions [first, last) along an axis.
template <class T>
regroup::view<T> slice(const regroup::view<T>& x, int axis, index first, index last) {
  regroup::shape extents = x.extents();
  extents[axis] = last - first;
  return {x.data() + first * x.stride(axis), extents, x.strides()};
}

/// Output and logsumexp of one call, with the rank of q.
template <class T, class Out = T>
struct answer {
  tensor<Out> out;
  tensor<regroup::attention_real<T>> lse;
};
/// Whether this run is about weights in 16 bits, or in fixed point: all of it, under a target that has them
/// (habits/on_target.py).
inline bool is_on(const std::initializer_list<std::string_view>& targets) {
  const char* const target = std::getenv("REGROUP_TARGET");
  return target != nullptr && std::ranges::find(targets, target) != targets.end();
}
inline bool narrows() { return is_on({"x86-64-v4-bf16", "x86-64-v4-amx"}); }
inline bool fixes_points() { return is_on({"x86-64-v4-vnni", "x86-64-v4-bf16", "x86-64-v4-amx"}); }
template <class T, class Out = T, class Executor>
answer<T, Out> attend(const Executor& ex, const regroup::view<const T>& q, const regroup::attention_source<T>& keys,
                      regroup::attention_options options = {}) {
  regroup::shape outer;
  for (int a = 0; a + 1 < q.rank(); ++a) outer.push_back(q.extent(a));
  regroup::shape full = outer;
  full.push_back(keys.v.extent(keys.v.rank() - 1));
  answer<T, Out> result{tensor<Out>(full), tensor<regroup::attention_real<T>>(outer)};
  options.logsumexp = result.lse.view();
  options.narrow_weights = narrows();
  options.fixed_point = fixes_points();
  regroup::attention(ex, q, keys, result.out.view(), options);
  return result;
}
template <class T, class Out>
testing::AssertionResult same_bits(const answer<T, Out>& a, const answer<T, Out>& b) {
  const auto out = same_bits(a.out, b.out);
  return out ? same_bits(a.lse, b.lse) : out;
}

/// f() throws an Error with a sentence.
template <class Error, class F>
void refused(const F& f) {
  try {
    f();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_GT(std::string(e.what()).size(), 30U) << e.what();
  }
}

}  // namespace cases

// SPDX-License-Identifier: Apache-2.0
// The monoids that `reduce` knows by name, over one element type. members_*.cpp instantiate them, one file for each element
// type, so that they compile separately.
#pragma once

#include <limits>
#include <type_traits>

#include "members.hpp"
#include "product.hpp"
#include "put.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/monoids/histogram.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/mean.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/monoids/top_k.hpp"

namespace regroup::tool {

/// What all members with a monoid M have in common. `write(row, lower(state))` stores an answer.
template <class X, class M, class Write>
class typed_member : public member<X> {
 public:
  typed_member(M m, Write write) : m_(std::move(m)), write_(std::move(write)) {}
  void combine(std::any& a, std::any b, index) const override {
    combine_into(m_, std::any_cast<state&>(a), std::any_cast<state&&>(std::move(b)));
  }
  void answer(index row, const std::any* s) const override {
    write_(row, regroup::lower(m_, s != nullptr ? std::any_cast<const state&>(*s) : m_.identity()));
  }

 protected:
  using state = state_of<M>;
  M m_;
  Write write_;
};

/// A member whose monoid is over X.
template <class X, class M, class Write>
class plain_member : public typed_member<X, M, Write> {
 public:
  using typed_member<X, M, Write>::typed_member;
  std::any leaf(const X* xs, index n) const override { return host::leaf_of(this->m_, xs, n); }
};

/// A member whose monoid is over `indexed<X>`; positions count from the left end of a state.
template <class X, class M, class Write>
class positioned_member : public typed_member<X, M, Write> {
  using base = typed_member<X, M, Write>;
  using typename base::state;

 public:
  using base::base;
  std::any leaf(const X* xs, index n) const override {
    indexed<X> numbered[tile_elements];
    for (index i = 0; i < n; ++i) numbered[i] = {xs[i], i};
    return host::leaf_of(this->m_, static_cast<const indexed<X>*>(numbered), n);
  }
  void combine(std::any& a, std::any b, index length) const override {
    shift(std::any_cast<state&>(b), length);
    base::combine(a, std::move(b), length);
  }

 private:
  static void shift(indexed<X>& s, index length) { s.position += length; }
  static void shift(std::vector<indexed<X>>& s, index length) {
    for (indexed<X>& place : s) place.position += length;
  }
};

/// Calls f(m, write, is_positioned) with the monoid of that name over X, or over indexed<X> if it is positioned.
/// write(row, answer) stores an answer.
template <class X, class F>
void with_monoid(const monoid_name& name, const target& t, const F& f) {
  const auto plain = [&f](const auto& m, const auto& write) { f(m, write, std::false_type{}); };
  const auto positioned = [&f](const auto& m, const auto& write) { f(m, write, std::true_type{}); };
  using real = std::conditional_t<std::is_same_v<X, float>, float, double>;
  const result& out = *t.values;
  const auto value = [&out](index row, const auto& answer) { put(out, row, answer); };
  const auto bounded = [&out](index row, X answer) {  // extremes of no elements, in the result's own type
    if constexpr (std::is_integral_v<X>) {
      const integer_limits limits(out.type());
      answer = std::clamp(answer, limits.lowest, limits.greatest);
    }
    put(out, row, answer);
  };
  const auto position = [&out](index row, const indexed<X>& answer) { put(out, row, answer.position); };

  if (name.name == "sum") return plain(plus<X>{}, value);
  if (name.name == "product") return plain(product<X>(), value);
  if (name.name == "min") return plain(minimum<X>{}, bounded);
  if (name.name == "max") return plain(maximum<X>{}, bounded);
  if (name.name == "argmin") return positioned(argmin<X>{}, position);
  if (name.name == "argmax") return positioned(argmax<X>{}, position);
  if (name.name == "count") return plain(count{}, value);
  if (name.name == "any") return plain(any{}, value);
  if (name.name == "all") return plain(all{}, value);
  if (name.name == "mean") return plain(mean<real>{}, value);
  if (name.name == "log_sum_exp") return plain(log_sum_exp<real>{}, value);
  if (name.name == "moments") {
    return plain(moments<real>{}, [&out](index row, const typename moments<real>::answer& a) {
      put(out, 3 * row, a.count);
      put(out, 3 * row + 1, a.mean);
      put(out, 3 * row + 2, a.variance);
    });
  }
  if (name.name == "histogram") {
    return plain(histogram<real>(name.low, name.high, name.bins),
                    [&out](index row, const std::vector<index>& counts) {
                      const auto bins = static_cast<index>(counts.size());
                      for (index i = 0; i < bins; ++i) put(out, bins * row + i, counts[static_cast<std::size_t>(i)]);
                    });
  }
  if (name.name == "top_k") {
    return positioned(top_k<X>(name.k), [&out, t](index row, const std::vector<indexed<X>>& largest) {
      const auto k = static_cast<index>(largest.size());
      index at = row / t.inner * k * t.inner + row % t.inner;
      for (const indexed<X>& place : largest) {
        put(out, at, place.value);
        put(*t.indices, at, place.position);
        at += t.inner;
      }
    });
  }
}

template <class X>
std::shared_ptr<const member<X>> make_member(const monoid_name& name, const target& t) {
  std::shared_ptr<const member<X>> made;
  with_monoid<X>(name, t, [&]<class M, class Write, bool Positioned>(const M& m, const Write& write,
                                                                     std::bool_constant<Positioned>) {
    using kind = std::conditional_t<Positioned, positioned_member<X, M, Write>, plain_member<X, M, Write>>;
    made = std::make_shared<const kind>(m, write);
  });
  return made;
}

}  // namespace regroup::tool

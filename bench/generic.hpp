// SPDX-License-Identifier: Apache-2.0
// Other people's loops that take any operator: the C++ standard library (on oneTBB), oneTBB, Thrust on OpenMP and on
// TBB, and OpenMP. Each returns the monoid's state of see(x[0]), see(x[1]), ...; `see` takes an element in its place.
#pragma once

#include <execution>
#include <numeric>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_reduce.h>

#ifdef REGROUP_HAS_THRUST
#include <thrust/system/omp/execution_policy.h>
#include <thrust/system/tbb/execution_policy.h>
#include <thrust/transform_reduce.h>
#endif

#include "bench.hpp"
#include "regroup/monoid.hpp"

namespace bench::generic {

using regroup::state_of;

/// One thread: `unseq`, all: `par_unseq`. Assumes that the operator commutes.
template <class M, class X, class See>
state_of<M> standard(int threads, const array<X>& x, const M& m, const See& see) {
  const auto lift = [&](const X& e) { return regroup::lift(m, see(e)); };
  return threads == 1 ? std::transform_reduce(std::execution::unseq, x.begin(), x.end(), m.identity(), m, lift)
                      : std::transform_reduce(std::execution::par_unseq, x.begin(), x.end(), m.identity(), m, lift);
}

template <class M, class X, class See>
state_of<M> one_tbb(const array<X>& x, const M& m, const See& see) {
  return tbb::parallel_reduce(
      tbb::blocked_range(x.begin(), x.end(), std::size_t{1} << 14), m.identity(),
      [&](const auto& range, state_of<M> s) {
        for (const X& e : range) s = m(s, regroup::lift(m, see(e)));
        return s;
      },
      m);
}

/// Assumes that the operator commutes.
template <class M, class X, class See>
state_of<M> open_mp(const array<X>& x, const See& see) {
  using state = state_of<M>;
  state total = M{}.identity();
#pragma omp declare reduction(combine:state : omp_out = M{}(omp_out, omp_in)) initializer(omp_priv = M{}.identity())
#pragma omp parallel for reduction(combine : total)
  for (const X* e = x.begin(); e < x.end(); ++e) total = M{}(total, regroup::lift(M{}, see(*e)));
  return total;
}

/// f(name, loop) for each loop that may be given this operator, loop(x, m, see) its call.
template <bool Commutative, class F>
void each(int threads, const F& f) {
  if constexpr (Commutative) {
    f("std", [=](const auto& x, const auto& m, const auto& see) { return standard(threads, x, m, see); });
    f("OpenMP", []<class M>(const auto& x, const M&, const auto& see) { return open_mp<M>(x, see); });
  }
  f("TBB", [](const auto& x, const auto& m, const auto& see) { return one_tbb(x, m, see); });
#ifdef REGROUP_HAS_THRUST
  const auto thrust_on = [](const auto& policy) {
    return [&policy]<class M>(const auto& x, const M& m, const auto& see) {
      return thrust::transform_reduce(
          policy, x.begin(), x.end(), [&](const auto& e) { return regroup::lift(m, see(e)); }, m.identity(), m);
    };
  };
  f("Thrust OpenMP", thrust_on(thrust::omp::par));
  f("Thrust TBB", thrust_on(thrust::tbb::par));
#endif
}

}  // namespace bench::generic

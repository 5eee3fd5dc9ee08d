// SPDX-License-Identifier: Apache-2.0
// A projection joined to the monoid that folds what it returns, so that elements are read in place, in the fastest way, and
// projected in the loop that combines them. Level: element.
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>

#include "regroup/batch.hpp"
#include "regroup/host/abreast.hpp"
#include "regroup/host/lanes.hpp"

namespace regroup::host {

// As in monoid.hpp.
#if defined(__clang__)
#pragma clang attribute push([[gnu::flatten]], apply_to = function)
#endif

/// The monoid `m` over projected elements.
template <class M, class Projection>
struct through {
  static constexpr bool is_commutative = regroup::is_commutative<M>;
  static constexpr bool is_exact = regroup::is_exact<M>;
  const M& m;
  const Projection& projection;

  constexpr state_of<M> identity() const { return m.identity(); }
  template <class X>
  constexpr state_of<M> lift(const X& x) const {
    return regroup::lift(m, std::invoke(projection, x));
  }
  template <class X>
  constexpr state_of<M> append(index n, const state_of<M>& s, const X& x) const {
    return regroup::append(m, n, s, std::invoke(projection, x));
  }
  constexpr state_of<M> operator()(const state_of<M>& a, const state_of<M>& b) const { return m(a, b); }
};

#if defined(__clang__)
#pragma clang attribute pop
#endif

/// Whether the compiler would contract a product at the end of a projection with the sum it is joined to, as g++ does in
/// programs for processors with fma: the bits would differ from those elsewhere.
inline constexpr bool joining_contracts =
#if defined(__FP_FAST_FMAF) && !defined(__clang__)
    true;
#else
    false;
#endif

/// Whether a batch has a projection that is joined to M: its elements are const and small and may be copied before they are
/// projected, and M folds the results one by one.
template <class M, class Batch>
inline constexpr bool joins_projection = false;
template <class M, class Batch, class Projection>
  requires(!std::same_as<Projection, std::identity> && !joining_contracts)
inline constexpr bool joins_projection<M, projected_batch<Batch, Projection>> = [] {
  using source = source_in<Batch>;
  using element = element_of<source>;
  if constexpr (std::same_as<decltype(std::declval<const source&>()[index{}]), const element&> &&
                !projected<source, Projection>::is_numbered &&
                std::same_as<widened<element>, element> && std::copyable<element> && is_movable<element> &&
                sizeof(element) <= 32 && is_plain<state_of<M>, element> && !has_members<M>) {
    return !has_lift_tile<M, tile<load_from<element_in<projected_batch<Batch, Projection>>>>>;
  }
  return false;
}();

/// Whether columns of a batch with a projection of elements and positions are folded side by side, each element projected
/// beside its combine. A projection that only numbers elements (`of`) has no product to contract.
template <class M, class Batch>
inline constexpr bool numbers_columns = false;
template <class M, class Batch, class Projection>
  requires(gridded<Batch> &&
           (!joining_contracts || requires(const Projection& p, const element_in<Batch>* x) { p.of(x, index{}); }))
inline constexpr bool numbers_columns<M, projected_batch<Batch, Projection>> = [] {
  using element = element_in<Batch>;
  if constexpr (projected<source_in<Batch>, Projection>::is_numbered) {
    using seen = element_in<projected_batch<Batch, Projection>>;
    return goes_abreast<M, Batch>() && folds_elements<M, seen>() && std::is_trivially_copyable_v<Projection> &&
           std::invocable<const Projection&, const element&, index>;
  }
  return false;
}();

/// Calls body(batch, monoid) with both as they are, or with the batch behind the projection and the two joined.
template <class Batch, class M, class Body>
void with_joined(const Batch& b, const M& m, const Body& body) {
  if constexpr (joins_projection<M, Batch>) {
    body(b.batch, through<M, std::remove_cvref_t<decltype(b.projection)>>{m, b.projection});
  } else {
    body(b, m);
  }
}

}  // namespace regroup::host

// SPDX-License-Identifier: Apache-2.0
// The laws of any monoid, checked in one line, with the smallest counterexample to each law that fails:
//     std::cout << regroup::check_laws(my_monoid{});                              // elements: what its `lift` takes
//     assert(regroup::check_laws<float>(my_monoid{}).passed());                   // or say which
//     regroup::check_laws(my_monoid{}, [](regroup::laws::choices& from) { return from.integer(0, 9); });
// rapidcheck makes and shrinks the cases (search.hpp); elements and their traps are ours (choices.hpp).
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/error.hpp"
#include "regroup/laws.hpp"
#include "regroup/laws/checker.hpp"
#include "regroup/laws/choices.hpp"
#include "regroup/laws/report.hpp"
#include "regroup/require_monoid.hpp"

namespace regroup {

/// Search options. The same seed gives the same cases everywhere.
template <bool Folds>
struct basic_law_options {
  static constexpr bool folds = Folds;
  int cases = 200;  ///< for each law; a tenth of them for laws that fold thousands of elements
  std::uint64_t seed = 1;
  /// Also require what is otherwise only a note: that the laws hold at NaN and infinities and for the sign of zero, and that
  /// a commutative monoid commutes bitwise. All monoids of the library pass.
  bool strict = false;
  bool idempotent = false;  ///< require s + s == s as well
};
using law_options = basic_law_options<true>;
/// Checks only the algebra, not reduce, scan and stream on any number of threads; compiles in a third of the time.
using algebra_options = basic_law_options<false>;

namespace laws {

/// A generator of elements: `x = generate(choices)`. An rc::Gen<X> or a vector of samples will do too.
template <class G>
concept generator = std::invocable<const G&, choices&>;

template <class Options>
concept law_settings = requires {
  Options::folds;
};

}  // namespace laws

/// Checks every law of regroup/laws.hpp for `m` on elements from `generate`, and that reduce, scan and stream on any number
/// of threads keep the sequential bits. Returns what it found: print it, or ask `passed()`. Takes about a second; link
/// regroup::laws.
///
/// `reference` (optional) maps a span of elements, which may be empty, to the answer by other means: the only law that tells
/// an operator from its mirror image.
///
/// Reals are compared bitwise where the law or `is_exact` asks for it, else within `laws::bound<M>` or the monoid's
/// `error_bound`. Otherwise the tolerance is measured: every number entering or leaving a combine is perturbed by 4 u, and
/// twice the largest change is allowed; if a perturbation makes a combine take another branch, only a part of that jump
/// counts (laws/checker.hpp), so an operator that wraps its sums, say, gives its own `error_bound`. What `lower` makes of a
/// state may jump. Accuracy that all groupings lose alike is seen only beside an `error_bound` and a reference. Aggregates are
/// compared member by member even if they have ==; ranges element by element, and by == too if they have one; types that cannot
/// be taken apart (members.hpp) by == alone.
///
/// A law that fails is reported, never thrown. An exception from an operator, the generator or `reference` ends the check and
/// passes through unchanged. Throws argument_error where options.cases is below 1, and for an `error_bound` that returns too
/// few errors, or one below 0.
///
/// Where laws fall only for elements that a program never has, say which it has: `check_laws(m, laws::reals<float>{0, 1})`.
template <class M, laws::generator Generate, laws::law_settings Options = law_options,
          class Reference = laws::no_reference>
laws::report check_laws(const M& m, const Generate& generate, const Options& options = {},
                        const Reference& reference = {}) {
  using element = std::remove_cvref_t<std::invoke_result_t<const Generate&, laws::choices&>>;
  require_monoid<M, element>();
  static_assert(requires { m.error_bound(std::span<const element>{}, index{}); } || !requires { &M::error_bound; },
                "regroup: `error_bound` is const and takes (std::span<const element>, index depth); nothing would call this");
  if (options.cases < 1) throw_argument("check_laws needs one case or more; got " + std::to_string(options.cases));
  return laws::detail::checker<M, element, Generate, Options, Reference>(m, generate, options, reference).run();
}

/// The same with elements `X`, made from numbers member by member; without `X`, they are of type `lifted_element<M>`.
template <class X = void, class M, laws::law_settings Options = law_options, class Reference = laws::no_reference>
laws::report check_laws(const M& m, const Options& options = {}, const Reference& reference = {}) {
  if constexpr (std::is_void_v<X>) {
    static_assert(laws::detail::element_is_known<M>,
                  "regroup: this lift takes many types; say which elements: check_laws<float>(m)");
    return check_laws(m, laws::arbitrary<lifted_element<M>>{}, options, reference);
  } else {
    return check_laws(m, laws::arbitrary<X>{}, options, reference);
  }
}

/// The same with a rapidcheck generator; include <rapidcheck.h> first.
template <class M, class X, laws::law_settings Options = law_options, class Reference = laws::no_reference>
laws::report check_laws(const M& m, const rc::Gen<X>& generate, const Options& options = {},
                        const Reference& reference = {}) {
  return check_laws(m, laws::from_rapidcheck<X>{generate}, options, reference);
}

/// The same with elements drawn from samples; earlier ones count as simpler. Throws argument_error where there are none.
template <class M, class X, laws::law_settings Options = law_options, class Reference = laws::no_reference>
laws::report check_laws(const M& m, const std::vector<X>& samples, const Options& options = {},
                        const Reference& reference = {}) {
  if (samples.empty()) throw_argument("check_laws draws elements from samples, and got none");
  return check_laws(m, laws::one_of<X>{samples}, options, reference);
}

}  // namespace regroup

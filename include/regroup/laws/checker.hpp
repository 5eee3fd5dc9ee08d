// SPDX-License-Identifier: Apache-2.0
// Runs the list of laws (subject.hpp) for one monoid: evaluates each on the elements of trials (draws.hpp), compares both sides
// bitwise or within a bound, and lets the search shrink counterexamples. The bound is laws::bound<M>, or the monoid's
// error_bound, or measured by perturbing every number (comparison.hpp). Level: one check.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/laws.hpp"
#include "regroup/laws/bounds.hpp"
#include "regroup/laws/comparison.hpp"
#include "regroup/laws/draws.hpp"
#include "regroup/laws/report.hpp"
#include "regroup/laws/search.hpp"
#include "regroup/laws/subject.hpp"

namespace regroup::laws {

struct no_reference {};

namespace detail {

template <class T>
constexpr std::string type_name() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("T = ") + 4);
  name = name.substr(0, std::min(name.find(';'), name.rfind(']')));
  std::string text(name);
  for (const std::string_view prefix : {"regroup::", "{anonymous}::", "(anonymous namespace)::"}) {
    for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) text.erase(at, prefix.size());
  }
  return text;
}

struct fallback {
  int lift;
};
template <class M>
struct lift_of_both : M, fallback {};
/// Whether a monoid has a member called lift, whatever it takes.
template <class M>
concept names_lift = std::is_class_v<M> && !std::is_final_v<M> && !requires {
  &lift_of_both<M>::lift;
};
/// Whether an accumulator and check_laws can tell what elements a monoid takes.
template <class M>
concept element_is_known = has_lift<M, lifted_element<M>> || !names_lift<M>;

template <class M, class X, class Generate, class Options, class Reference>
class checker {
 public:
  checker(const M& m, const Generate& generate, const Options& options, const Reference& reference)
      : m_(m), draws_(generate, host::copies_scalars<state_of<M>>()), options_(options), reference_(reference) {
    algebra(laws_);
    if (options.idempotent) {
      laws_.push_back({"idempotence", strength::within, 24, false, 1,
                       [](const scene<M, X>& s) {
                         s.equal.names = {{"s + s", "s"}};
                         idempotence(s.m, operands(s, 1)[0], s.equal);
                       }});
    }
    if constexpr (!std::same_as<Reference, no_reference>) {
      laws_.push_back({"fold = reference", strength::within, 24, false, 1,
                       [this](const scene<M, X>& s) {
                         s.equal.depth = s.n();
                         s.equal.answers = true;
                         s.equal.names = {{"fold", "reference"}};
                         s.equal(s.m.lower(fold(s.m, s.lifted().all(), {s.word})), reference_(s.xs));
                       }});
    }
    if constexpr (Options::folds) executors(laws_);
  }

  report run() {
    report r{type_name<M>(), type_name<X>(), options_.seed, options_.cases, {}};
    for (const law<M, X>& l : laws_) {
      finding f = check(l, options_.strict);
      if (!options_.strict && f.result == finding::outcome::holds) {
        finding more = check(l, true);
        if (more.result == finding::outcome::falls) {
          if (!falls_anyway_) {
            more.result = finding::outcome::note;
            more.remark = remark_;
            r.findings.push_back(std::move(f));
          }
          r.findings.push_back(std::move(more));
          continue;
        }
        f.cases += more.cases;
        f.worst = std::max(f.worst, more.worst);
      }
      r.findings.push_back(std::move(f));
    }
    return r;
  }

 private:
  using strength = typename law<M, X>::strength;
  static constexpr bool known_state = requires(const M& m, std::span<const X> xs) { bound<M>::state(m, xs, index{}); }
  || requires(const M& m, std::span<const X> xs) { m.error_bound(xs, index{}); };
  static constexpr bool known_answer = requires(const M& m, std::span<const X> xs) { bound<M>::answer(m, xs, index{}); }
  || (known_state && !has_lower<M>);
  static constexpr bool answers_are_made = has_lower<M> && !known_answer;

  void evaluate(const law<M, X>& l, std::span<const X> xs, std::uint64_t word, nudge& by, collector& into) const {
    const nudged<M> m{&m_, &by};
    l.run({m_, m, xs, word, into});
  }

  /// The errors allowed to each equation of a law; bitwise laws allow none.
  std::vector<errors> allowed(const law<M, X>& l, std::span<const X> xs, std::uint64_t word, const collector& found,
                              bool bitwise_too, bool& overflow) {
    std::vector<errors> all(found.all.size());
    if (l.asks == strength::bitwise || (l.asks == strength::declared && bitwise_too) || is_exact<M>) return all;
    bool estimate = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const sides& s = found.all[i];
      if (s.is_answer && known_answer) {
        if constexpr (requires { bound<M>::answer(m_, xs, index{}); }) {
          all[i] = bound<M>::answer(m_, xs, s.depth);
        } else if constexpr (known_state) {
          all[i] = state_errors(m_, xs, s.depth);
        }
      } else if (!s.is_answer && known_state) {
        if constexpr (known_state) all[i] = state_errors(m_, xs, s.depth);
      } else {
        estimate = true;
        continue;
      }
      const bool against_reference = l.name == "fold = reference";
      for (long double& e : all[i]) e *= against_reference ? 1 : 2;
    }
    if (estimate) estimate_errors(l, xs, word, found, all, overflow);
    estimated_ = estimated_ || estimate;
    return all;
  }

  /// Whether a state of this case is so large that what an operator computes of it may overflow.
  bool is_near_overflow(const law<M, X>& l, std::span<const X> xs, std::uint64_t word) const {
    nudge by(&identity_);
    by.start(1);
    collector into;
    evaluate(l, xs, word, by, into);
    return by.was_huge();
  }

  /// The tolerance of each real of the equations that have no known bound: every number entering or leaving a combine is
  /// perturbed by 4 u, and twice the largest change is taken. If a perturbation makes a combine take another branch, that
  /// jump is capped: perturbations `scale` times as large move what is smooth `scale` times as far, but not a jump, so at
  /// most 2 / sqrt(scale) of what they move is allowed (half of it at most). A jump of `lower` is allowed whole. What a
  /// combine keeps of its own rounding moves with the rounding mode instead, by a few units of the largest number.
  void estimate_errors(const law<M, X>& l, std::span<const X> xs, std::uint64_t word, const collector& found,
                       std::vector<errors>& all, bool& overflow) const {
    long double unit = 0, u = 0;
    const auto moves = [&](auto... start) {
      collector moved;
      nudge by(&identity_);
      by.start(start...);
      evaluate(l, xs, word, by, moved);
      overflow = overflow || by.was_huge();
      unit = std::fmax(unit, by.largest_unit());
      u = std::fmax(u, by.coarsest_u());
      return moved;
    };
    std::vector<errors> fine(all.size()), coarse(all.size()), modes(all.size());
    for (int pattern = 1; pattern <= nudge::patterns; ++pattern) add_moves(found, moves(pattern), answers_are_made, fine);
    const int scale = u <= 0x1p-24L ? 1024 : u <= 0x1p-11L ? 16 : 4;  // 4 u times that stays far below 1
    for (int pattern = 1; pattern <= nudge::patterns; ++pattern) {
      add_moves(found, moves(pattern, scale), answers_are_made, coarse);
    }
    for (const int mode : {FE_UPWARD, FE_DOWNWARD}) add_moves(found, moves(0, 1, mode), answers_are_made, modes);
    const long double units = nudge::units * unit * static_cast<long double>(xs.size());
    const long double smooth = std::fmin(2 / std::sqrt(static_cast<long double>(scale)), 0.5L);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].empty()) continue;
      const bool may_jump = has_lower<M> && found.all[i].is_answer;
      for (std::size_t k = 0; k < fine[i].size(); ++k) {
        const long double moved = may_jump ? 2 * fine[i][k] : std::fmin(2 * fine[i][k], smooth * coarse[i][k]);
        all[i].push_back(std::fmax(moved, 2 * std::fmin(modes[i][k], units)));
      }
    }
  }

  verdict judge_trial(const law<M, X>& l, const trial& t, bool strict, collector& into) {
    return judge_elements(l, draws_.elements(l, t, strict), t.shape, strict, into);
  }
  verdict judge_elements(const law<M, X>& l, const sequence<X>& xs, std::uint64_t word, bool strict, collector& into) {
    nudge still;
    still.start(0);
    evaluate(l, xs.all(), word, still, into);
    verdict v;
    const zeros z = strict ? zeros::signed_ : zeros::equal;
    const bool same_bits = std::ranges::all_of(
        into.all, [&](const sides& s) { return s.equal && (s.opaque || same(s.left, s.right, z)); });
    if (same_bits) return v;
    bool overflow = !strict && is_near_overflow(l, xs.all(), word);
    const std::vector<errors> bounds = allowed(l, xs.all(), word, into, strict, overflow);
    for (std::size_t i = 0; i < into.all.size(); ++i) {
      v.equation = i;
      if (!judge(into.all[i], bounds[i], overflow, answers_are_made, z, v)) return v;
    }
    return v;
  }

  /// Searches for a case in which a law falls. `strict`: see law_options.
  finding check(const law<M, X>& l, bool strict) {
    finding f;
    f.law = l.name;
    estimated_ = false;
    search_settings settings;
    settings.seed = mix(options_.seed) ^ hash_of(l.name);
    settings.cases = l.most == 0 ? 1 : l.is_long ? std::max(options_.cases / 10, 1) : options_.cases;
    settings.most_elements = l.most;
    settings.words = draws_.words_to_an_element();
    settings.extend = draws_.may_extend;
    const search_result found = search(settings, [&](const trial& t) {
      collector into;
      const verdict v = judge_trial(l, t, strict, into);
      f.excused += v.excused ? 1 : 0;
      f.worst = std::max(f.worst, static_cast<double>(v.ratio));
      return v.holds;
    });
    f.cases = found.cases;
    f.estimated = estimated_;
    if (found.counterexample) {
      explain(l, *found.counterexample, strict, f);
    } else if (f.excused > 0 && f.excused == f.cases) {
      f.result = finding::outcome::note;
      f.remark = "which no case could ask: every one overflowed or had no bound";
    }
    return f;
  }

  void explain(const law<M, X>& l, const trial& t, bool strict, finding& f) {
    collector into;
    into.explain = true;
    falls_anyway_ = true;
    const verdict v = judge_trial(l, t, strict, into);
    const sequence<X> xs = draws_.elements(l, t, strict);
    f.result = finding::outcome::falls;
    f.elements = t.elements.size();
    f.counterexample = draws_.describe(l, t, xs.all(), strict);
    if (v.holds) {  // it fell a moment ago
      f.remark = "evaluated again, it holds: the operator does not depend on its operands alone";
      return;
    }
    const sides& s = into.all[v.equation];
    f.left_name = s.left_name;
    f.right_name = s.right_name;
    f.left = s.left_text;
    f.right = s.right_text;
    f.difference = s.opaque ? "not ==, all that there is to ask a type that cannot be taken apart into numbers"
                   : s.equal ? text_of(static_cast<double>(v.difference))
                             : "not ==, though their elements are";
    f.bound = v.bitwise || s.opaque || !s.equal
                  ? "0 (bitwise)"
                  : text_of_bound(v.allowed) + (estimated_ ? ", estimated" : "");
    bool special = false;
    for (const X& x : xs.all()) {
      if constexpr (members::is_transparent<X>) {
        for (const cell& c : image_of(x)) special = special || !std::isfinite(c.value);
      }
    }
    collector again;
    falls_anyway_ = strict && !special && !judge_elements(l, xs, t.shape, false, again).holds;
    remark_ = special                        ? "with NaN or infinities among the elements"
              : l.asks == strength::declared ? "held within rounding but not bitwise"
                                             : "in the sign of a zero";
  }

  /// In few digits, unless it is no float.
  static std::string text_of_bound(long double bound) {
    const auto few = static_cast<float>(bound);
    return std::isinf(few) || few == 0 ? text_of(static_cast<double>(bound)) : text_of(few);
  }

  static image image_of_identity(const M& m) {
    if constexpr (members::is_transparent<state_of<M>>) return image_of(m.identity());
    return {};
  }

  const M& m_;
  image identity_ = image_of_identity(m_);
  draws<X, Generate> draws_;
  Options options_;
  const Reference& reference_;
  std::vector<law<M, X>> laws_;
  std::string remark_;
  bool estimated_ = false;     ///< whether a bound of the law at hand was measured
  bool falls_anyway_ = false;  ///< what was searched for strictly falls without it
};

}  // namespace detail
}  // namespace regroup::laws

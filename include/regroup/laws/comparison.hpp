// SPDX-License-Identifier: Apache-2.0
// When two evaluations of one expression count as equal: the same bits, or reals within what rounding can do. For a monoid
// whose error bound is not known, the tolerance is measured (stochastic arithmetic: Vignes; Parker): every number entering or
// leaving a combine is perturbed by 4 u, in several patterns of signs, and the largest change is taken. Rounding does no more
// than such perturbations; what they cannot do is a broken law. If a perturbation makes a combine take another branch, only a
// part of that jump counts: much larger perturbations do not increase it (checker.hpp). Level: element.
#pragma once

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regroup/laws.hpp"

namespace regroup::laws {

/// Perturbs the reals of states. Pattern 0 leaves them alone; 1 and 2 move all up or all down; the rest draw signs.
class nudge {
 public:
  static constexpr int patterns = 10;
  static constexpr int units = 4;  ///< of u, half a unit in the last place of 1

  /// Numbers of `identity`, a row of cells, say nothing of the elements, however large.
  explicit nudge(const image* identity = nullptr) : identity_(identity) {}

  /// `scale` multiplies these units; `mode` is the rounding mode of combines.
  void start(int pattern, int scale = 1, int mode = FE_TONEAREST) {
    pattern_ = pattern;
    scale_ = scale;
    mode_ = mode;
    draw_ = static_cast<std::uint64_t>(pattern);
  }
  [[nodiscard]] bool is_active() const { return pattern_ != 0; }
  [[nodiscard]] int mode() const { return mode_; }

  template <class State>
  void operand(State& s) {
    move(s, false);
  }
  template <class State>
  void result(State& s) {
    move(s, true);
  }
  /// Whether a number was so large that products of two of its kind may overflow.
  [[nodiscard]] bool was_huge() const { return huge_; }
  /// Half a unit in the last place of the largest number that was moved.
  [[nodiscard]] long double largest_unit() const { return largest_unit_; }
  /// u of the narrowest type of a number that was moved; 0 for none.
  [[nodiscard]] long double coarsest_u() const { return coarsest_u_; }

 private:
  struct mover {
    nudge& by;
    bool underflow;
    void size(std::size_t) {}
    template <class T>
    void operator()(T& x) {
      if constexpr (std::is_const_v<T>) {
      } else if constexpr (std::is_floating_point_v<T>) {
        x = by.moved(x, underflow, std::numeric_limits<T>::epsilon() / 2, std::numeric_limits<T>::min(),
                     std::numeric_limits<T>::max_exponent);
      } else if constexpr (std::same_as<T, float16>) {
        x = T(by.moved(regroup::widen(x), underflow, 0x1p-11f, 0x1p-14f, 16));
      } else if constexpr (std::same_as<T, bfloat16>) {
        x = T(by.moved(regroup::widen(x), underflow, 0x1p-8f, 0x1p-126f, 128));
      }
    }
  };
  template <class State>
  void move(State& s, bool underflow) {
    if constexpr (members::is_transparent<State>) {
      if (!is_active()) return;
      mover f{*this, underflow};
      members::visit(s, f);
    }
  }
  template <class Real>
  Real moved(Real x, bool underflow, Real u, Real smallest, int max_exponent) {
    if (!std::isfinite(x)) return x;
    if (std::fabs(x) >= std::ldexp(Real(1), max_exponent / 2 - 4) && !is_of_identity(x)) huge_ = true;
    largest_unit_ = std::fmax(largest_unit_, static_cast<long double>(std::fabs(x) * u));
    coarsest_u_ = std::fmax(coarsest_u_, static_cast<long double>(u));
    draw_ = mix(draw_);
    const bool up = pattern_ == 1 || (pattern_ > 2 && draw_ % 2 == 0);
    const Real by = (x * (units * u) + (underflow ? smallest : Real(0))) * static_cast<Real>(scale_);
    const Real moved = up ? x + by : x - by;
    return std::isfinite(moved) ? moved : x - (moved > 0 ? std::fabs(by) : -std::fabs(by));
  }

  /// Whether a number is one of the identity's, which may have moved several times.
  [[nodiscard]] bool is_of_identity(long double x) const {
    const auto is_near = [x](const cell& c) {
      return std::isfinite(c.value) && std::fabs(x - c.value) <= std::fabs(c.value) / 16;
    };
    return identity_ != nullptr && std::ranges::any_of(*identity_, is_near);
  }

  const image* identity_;
  int pattern_ = 0;
  int scale_ = 1;
  int mode_ = FE_TONEAREST;
  std::uint64_t draw_ = 0;
  bool huge_ = false;
  long double largest_unit_ = 0, coarsest_u_ = 0;
};

/// Sets a thread's rounding mode for the lifetime of the object.
class rounding_mode {
 public:
  explicit rounding_mode(int mode) : before_(std::fegetround()) { std::fesetround(mode); }
  rounding_mode(const rounding_mode&) = delete;
  rounding_mode& operator=(const rounding_mode&) = delete;
  ~rounding_mode() { std::fesetround(before_); }

 private:
  int before_;
};

/// A monoid whose combine is perturbed.
template <class M>
struct nudged {
  const M* m;
  nudge* by;

  state_of<M> identity() const { return m->identity(); }
  template <class X>
  state_of<M> lift(const X& x) const {
    return regroup::lift(*m, x);
  }
  state_of<M> operator()(state_of<M> a, state_of<M> b) const {
    by->operand(a);
    by->operand(b);
    state_of<M> s = by->mode() == FE_TONEAREST ? combined(*m, std::move(a), std::move(b)) : rounded(std::move(a), std::move(b));
    by->result(s);
    return s;
  }
  /// The combine in another rounding mode. Compilers assume the default one, so it is called through an opaque pointer.
  state_of<M> rounded(state_of<M> a, state_of<M> b) const {
    state_of<M> (*volatile combine)(const M&, state_of<M>, state_of<M>) = combined;
    const rounding_mode here(by->mode());
    return combine(*m, std::move(a), std::move(b));
  }
  static state_of<M> combined(const M& m, state_of<M> a, state_of<M> b) { return m(std::move(a), std::move(b)); }
  auto lower(const state_of<M>& s) const {
    if (!by->is_active()) return regroup::lower(*m, s);
    state_of<M> moved = s;
    by->operand(moved);
    auto answer = regroup::lower(*m, moved);
    by->result(answer);
    return answer;
  }
};

/// Both sides of an equation, as numbers.
struct sides {
  image left, right;
  bool opaque = false;  ///< not numbers: `equal` says whether == holds
  bool equal = true;    ///< also for ranges with == and no NaN, which may hold more than their elements
  bool is_answer = false;
  index depth = 0;
  std::string left_name, right_name;
  std::string left_text, right_text;
};

/// The equivalence that check_laws hands to the laws: it keeps both sides and lets the law go on.
class collector {
 public:
  bool explain = false;
  index depth = 0;
  bool answers = false;
  std::string_view left_name = "left", right_name = "right";
  std::vector<std::pair<std::string_view, std::string_view>> names;  ///< of the equations in turn, if given
  std::vector<sides> all;

  template <class L, class R>
  bool operator()(const L& left, const R& right) {
    sides s;
    s.is_answer = answers;
    s.depth = depth;
    if constexpr (members::is_transparent<L> && members::is_transparent<R>) {
      s.left = image_of(left);
      s.right = image_of(right);
      if constexpr (std::ranges::range<const L> && std::same_as<L, R> && has_equality<L>()) {
        s.equal = left == right || !same(s.left, s.right) || has_nan(s.left);
      }
    } else {
      s.opaque = true;
      s.equal = bitwise{}(left, right);
    }
    if (explain) {
      s.left_name = all.size() < names.size() ? names[all.size()].first : left_name;
      s.right_name = all.size() < names.size() ? names[all.size()].second : right_name;
      s.left_text = text_of(left);
      s.right_text = text_of(right);
    }
    all.push_back(std::move(s));
    return true;
  }
};

/// Updates `most`: how far each real of each equation has moved at most, on the left side and on the right side together. Of
/// an answer that is made of reals, by a `lower`, it is every cell of whatever kind; one that was not finite may be anything
/// once it has moved, and so may all, once there are more or fewer of them.
inline void add_moves(const collector& found, const collector& moved, bool answers_are_made,
                      std::vector<std::vector<long double>>& most) {
  for (std::size_t i = 0; i < found.all.size() && i < moved.all.size(); ++i) {
    const bool is_made = answers_are_made && found.all[i].is_answer;
    const auto add = [&](const image& before, const image& after) {
      std::size_t k = 0;
      for (std::size_t c = 0; c < before.size(); ++c) {
        if (!is_made && before[c].what != cell::kind::real) continue;
        if (most[i].size() <= k) most[i].resize(k + 1);
        if (is_made && before.size() != after.size()) {
          most[i][k] = HUGE_VALL;
        } else if (c < after.size() && std::isfinite(before[c].value)) {
          const long double move = std::fabs(after[c].value - before[c].value);
          most[i][k] = std::fmax(most[i][k], std::isnan(move) ? HUGE_VALL : move);
        } else if (is_made && !same(before[c], after[c], zeros::equal)) {
          most[i][k] = HUGE_VALL;
        }
        ++k;
      }
    };
    add(found.all[i].left, moved.all[i].left);
    add(found.all[i].right, moved.all[i].right);
  }
}

struct verdict {
  bool holds = true;
  bool excused = false;
  long double ratio = 0;     ///< difference / bound, the worst
  std::size_t equation = 0;  ///< the one that falls
  long double difference = 0;
  long double allowed = 0;
  bool bitwise = false;
};

/// Compares one equation against errors allowed to its reals (none: bitwise), or to all cells of an answer that is made of
/// reals. False where it falls.
inline bool judge(const sides& s, const std::vector<long double>& allowed, bool overflow, bool answers_are_made, zeros z,
                  verdict& v) {
  if (s.opaque || !s.equal) {
    v.holds = s.equal;
    return v.holds;
  }
  const auto fall = [&](long double difference, long double bound) {
    v.holds = false;
    v.difference = difference;
    v.allowed = bound;
    v.bitwise = allowed.empty();
    return false;
  };
  const bool is_made = answers_are_made && s.is_answer;
  const auto is_finite = [](const cell& c) { return std::isfinite(c.value); };
  const bool has_overflowed = overflow && !(std::ranges::all_of(s.left, is_finite) && std::ranges::all_of(s.right, is_finite));
  const bool differ_in_size = s.left.size() != s.right.size();
  const auto is_free = [](long double e) { return std::isinf(e); };
  const bool may_differ = is_made && (overflow || std::ranges::any_of(allowed, is_free));
  if (has_overflowed || (differ_in_size && may_differ)) {  // extrema carry an infinity into finite neighbours
    v.excused = true;
    return true;
  }
  if (differ_in_size) return fall(std::numeric_limits<long double>::quiet_NaN(), 0);
  std::size_t k = 0;
  for (std::size_t i = 0; i < s.left.size(); ++i) {
    cell l = s.left[i];
    cell r = s.right[i];
    const auto is_number = [](const cell& c) { return c.what != cell::kind::size; };
    if (l.what != r.what && is_number(l) && is_number(r)) l.what = r.what = cell::kind::real;  // a reference in integers
    if (l.what == cell::kind::real && r.what == cell::kind::real && l.digits != r.digits) {  // a reference in double
      if (l.digits == 24) r.value = static_cast<long double>(static_cast<float>(r.value));
      if (l.digits == 53) r.value = static_cast<long double>(static_cast<double>(r.value));
    }
    const bool counts = is_made || l.what == cell::kind::real;
    const long double bound = counts && k < allowed.size() ? allowed[k] : 0;
    if (counts) ++k;
    if (same(l, r, allowed.empty() ? z : zeros::equal)) continue;
    const long double difference = std::fabs(l.value - r.value);
    if (!counts || l.what != r.what) return fall(difference, 0);
    // An answer that is infinite at one place, as a logarithm's at 0, and uncertain by more than its size beside it.
    const bool is_singular = s.is_answer && std::isinf(difference) && bound >= 1 &&
                             bound >= std::fmin(std::fabs(l.value), std::fabs(r.value));
    if (std::isinf(bound) || is_singular || (is_made && overflow && l.what != cell::kind::real)) {
      v.excused = true;
      continue;
    }
    if (allowed.empty() || !(difference <= bound)) return fall(difference, bound);  // bitwise: zeros of two signs, too
    v.ratio = std::fmax(v.ratio, bound > 0 ? difference / bound : 0);
  }
  return true;
}

}  // namespace regroup::laws

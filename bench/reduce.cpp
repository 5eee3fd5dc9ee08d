// SPDX-License-Identifier: Apache-2.0
// reduce/MONOID/TYPE/N: our operator in our loop (`ours`), the textbook operator in our loop, a loop by hand, and both
// operators in every generic loop: same compiler, same flags. Two calls (maximum, then sum of exp) where a library is
// used so. The limit is reading the same array. Compiled a second time for -march=native, with ours in it as well, and a
// third time with -Ofast, which gives the others libm's exp in packs; our headers refuse it, so nothing of ours is in it.
#include "fast_math.hpp"

#include "generic.hpp"
#include "textbook.hpp"

#include <Eigen/Core>

#include "../examples/operators.hpp"
#include "by_hand/loops.hpp"
#include "limits.hpp"
#include "regroup/regroup.hpp"

namespace bench {
namespace {

#ifdef REGROUP_BENCH_FAST
constexpr bool with_ours = false;
#else
constexpr bool with_ours = true;
#endif

using numbers = std::vector<double>;

/// What a result is compared by.
numbers flat(float x) { return {static_cast<double>(x)}; }
numbers flat(double x) { return {x}; }
numbers flat(index x) { return {static_cast<double>(x)}; }
template <class T>
numbers flat(const regroup::indexed<T>& x) {
  return {static_cast<double>(x.value), static_cast<double>(x.position)};
}
template <class T>
numbers flat(const regroup::affine_map<T>& x) {
  return {static_cast<double>(x.a), static_cast<double>(x.b)};
}
template <class S>
requires requires(S s) {
  s.min;
  s.max;
} &&(!requires(S s) { s.spread; })numbers flat(const S& s) {
  return {static_cast<double>(s.min), static_cast<double>(s.max)};
}
template <class S>
requires requires(S s) { s.variance; }
numbers flat(const S& s) { return {static_cast<double>(s.mean), static_cast<double>(s.variance)}; }
template <class S>
requires requires(S s) {
  s.deviation;
  s.count;
}
numbers flat(const S& s) {
  return {static_cast<double>(s.mean), static_cast<double>(s.deviation) / static_cast<double>(s.count)};
}
template <class S>
requires requires(S s) {
  s.aa;
  s.bb;
}
numbers flat(const S& s) { return {s.aa, s.ab, s.ba, s.bb}; }
numbers flat(const textbook::four::state& s) {
  numbers all = flat(s.spread);
  all.push_back(static_cast<double>(s.min)), all.push_back(static_cast<double>(s.max));
  return all;
}
numbers flat(const by_hand::log_sum& s) { return {static_cast<double>(s.m + std::log(s.s))}; }
template <class... T>
numbers flat(const std::tuple<index, T...>& all) {  // the count first, which nobody else gives
  numbers result;
  std::apply(
      [&](index, const auto&... x) {
        (..., [&] {
          for (double y : flat(x)) result.push_back(y);
        }());
      },
      all);
  return result;
}

/// The four of fanout: default-constructible, as OpenMP asks.
struct four
    : regroup::fanout<regroup::count, regroup::moments<float>, regroup::minimum<float>, regroup::maximum<float>> {
  four() : fanout({}, {}, {}, {}) {}
};
/// log_sum_exp as a plain scalar operator: the same without its tile lift.
struct log_sum_exp_scalar {
  using whole = regroup::log_sum_exp<float>;
  static constexpr bool is_commutative = true;
  constexpr whole::state identity() const { return whole{}.identity(); }
  constexpr whole::state lift(float x) const { return whole{}.lift(x); }
  constexpr whole::state operator()(whole::state a, whole::state b) const { return whole{}(a, b); }
  constexpr float lower(whole::state s) const { return whole{}.lower(s); }
};

/// Adds body(), whose value is the result.
template <class Body>
void add(program& p, const std::string& who, Body body) {
  auto result = std::make_shared<numbers>();
  p.add(
      who, [=] { *result = flat(body()); }, [=] { return *result; });
}

/// Everybody who folds any operator. `source` is what our verb reads, `see` shows an element to other loops.
template <class M, class Theirs, class X, class Source, class See>
void contend(program& p, const M& m, const Theirs& theirs, const array<X>& x, const Source& source, const See& see) {
  constexpr bool own = !std::same_as<M, Theirs>;  // integers: nothing to write differently
  if constexpr (with_ours) {
    p.with_executor([&](const auto& ex) {
      add(p, "ours", [=, keep = x] { return regroup::reduce(ex, source, m); });
      if constexpr (own) {
        add(p, "our loop, textbook operator", [=, keep = x] { return regroup::reduce(ex, source, theirs); });
      }
    });
  }
  generic::each<regroup::is_commutative<M>>(p.threads, [&](const std::string& name, const auto& loop) {
    if constexpr (with_ours) add(p, name + ", our operator", [=] { return regroup::lower(m, loop(x, m, see)); });
    if constexpr (own)
      add(p, name + ", textbook operator", [=] { return regroup::lower(theirs, loop(x, theirs, see)); });
  });
}
template <class M, class Theirs, class X>
void contend(program& p, const M& m, const Theirs& theirs, const array<X>& x) {
  contend(p, m, theirs, x, std::span<const X>(x.data(), static_cast<std::size_t>(x.size())),
          [](const X& e) -> const X& { return e; });
}

/// A loop by hand on each thread's piece of whole tiles; join folds what the pieces gave, left to right.
template <class X, class Loop, class Join>
void contend_by_hand(program& p, const array<X>& x, Loop loop, Join join) {
  constexpr index tile = 4096;
  if (x.size() % tile != 0) return;
  add(p, "by hand", [=, threads = p.threads] {
    using part = decltype(loop(x.data(), index{}));
    std::vector<part> parts(static_cast<std::size_t>(threads));
    in_pieces(threads, x.size() / tile, [&](index first, index last) {
      auto& mine = parts[static_cast<std::size_t>(threads == 1 ? 0 : omp_get_thread_num())];
      mine = loop(x.data() + first * tile, (last - first) * tile);
    });
    return join(parts);
  });
}

using vector = Eigen::Map<const Eigen::ArrayXf>;
/// Eigen on each thread's piece.
template <class F, class G>
double eigen(int threads, const array<float>& x, double first, const F& f, const G& join) {
  double all = first;
  in_pieces(threads, x.size(), [&](index from, index to) {
    const auto part = static_cast<double>(f(vector(x.data() + from, to - from)));
#pragma omp critical
    all = join(all, part);
  });
  return all;
}
constexpr auto sum = [](double a, double b) { return a + b; };
constexpr auto larger = [](double a, double b) { return std::max(a, b); };
constexpr auto smaller = [](double a, double b) { return std::min(a, b); };
constexpr double infinity = std::numeric_limits<double>::infinity();

/// The fused alternative that needs no operator: the maximum, then the sum of exp(x - maximum).
void contend_in_two_calls(program& p, const array<float>& x) {
  const auto same = [](const float& e) { return e; };
  generic::each<true>(p.threads, [&](const std::string& name, const auto& loop) {
    add(p, name + ", two calls", [=] {
      const float m = loop(x, regroup::maximum<float>{}, same);
      return m + std::log(loop(x, regroup::plus<float>{}, [m](const float& e) { return std::exp(e - m); }));
    });
  });
  add(p, "Eigen, two calls", [=, threads = p.threads] {
    const auto m = static_cast<float>(eigen(
        threads, x, -infinity, [](const auto& v) { return v.maxCoeff(); }, larger));
    return static_cast<double>(m) + std::log(eigen(
                                        threads, x, 0, [m](const auto& v) { return (v - m).exp().sum(); }, sum));
  });
}

void contend_log_sum_exp(program& p) {
  const auto x = p.input<float>("x");
  if (p.work.what == "log_sum_exp") {
    contend(p, regroup::log_sum_exp<float>{}, textbook::log_sum_exp{}, x);
  } else {
    contend(p, log_sum_exp_scalar{}, textbook::log_sum_exp{}, x);
  }
  contend_by_hand(p, x, loops().log_sum_exp, [](const auto& parts) {
    by_hand::log_sum all = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const float m = std::max(all.m, parts[i].m);
      all = {m, all.s * std::exp(all.m - m) + parts[i].s * std::exp(parts[i].m - m)};
    }
    return all;
  });
  contend_in_two_calls(p, x);
}

/// Sixteen bits: ours, and the other loops with our operator (they have no such elements of their own).
template <class X>
void contend_widened(program& p) {
  contend(p, regroup::log_sum_exp<float>{}, textbook::log_sum_exp{}, p.input<X>("x"));
}

void contend_statistics(program& p) {
  const auto x = p.input<float>("x");
  const int threads = p.threads;
  const auto joined = [](const auto& parts) {
    auto all = textbook::four{}.identity();
    const auto each = static_cast<index>(1) << 20;  // equal shares: only their ratio matters
    for (const auto& s : parts) {
      all = textbook::four{}(all, {{each, s.mean, s.deviation}, s.min, s.max});
    }
    return all;
  };
  const auto scale = [x, threads](textbook::four::state s) {  // deviations add up over all n elements
    s.spread.count = x.size();
    return s;
  };
  if (p.work.what == "moments") {
    contend(p, regroup::moments<float>{}, textbook::moments{}, x);
    contend_by_hand(p, x, loops().moments, [=](const auto& parts) { return scale(joined(parts)).spread; });
    add(p, "Eigen, two calls", [=] {
      const double n = static_cast<double>(x.size());
      const double mean = eigen(
                              threads, x, 0, [](const auto& v) { return v.sum(); }, sum) /
                          n;
      const auto m = static_cast<float>(mean);
      return std::tuple(index{}, mean,
                        eigen(
                            threads, x, 0, [m](const auto& v) { return (v - m).square().sum(); }, sum) /
                            n);
    });
  } else if (p.work.what == "minmax") {
    contend(p, regroup::minmax<float>{}, textbook::minmax{}, x);
    contend_by_hand(p, x, loops().minmax, [=](const auto& parts) {
      const auto all = joined(parts);
      return textbook::minmax::state{all.min, all.max};
    });
    add(p, "Eigen, two calls", [=] {
      return std::tuple(index{},
                        eigen(
                            threads, x, infinity, [](const auto& v) { return v.minCoeff(); }, smaller),
                        eigen(
                            threads, x, -infinity, [](const auto& v) { return v.maxCoeff(); }, larger));
    });
  } else {
    contend(p, four{}, textbook::four{}, x);
    contend_by_hand(p, x, loops().moments_and_minmax, [=](const auto& parts) { return scale(joined(parts)); });
  }
}

void contend_argmax(program& p) {
  const auto x = p.input<float>("x");
  const auto see = [first = x.data()](const float& e) { return regroup::indexed<float>{e, &e - first}; };
  contend(p, regroup::argmax<float>{}, textbook::argmax{}, x,
          regroup::generate(x.size(), regroup::enumerate(static_cast<const float*>(x.data()))), see);
  const auto by_hand_on = [start = x.data()](const float* first, index n) {
    auto best = loops().argmax(first, n);
    return regroup::indexed<float>{best.value, best.position + (first - start)};
  };
  contend_by_hand(p, x, by_hand_on, [](const auto& parts) {
    auto best = parts[0];
    for (const auto& s : parts) best = textbook::argmax{}(best, s);
    return best;
  });
  if (p.threads == 1) {
    add(p, "Eigen", [=] {
      Eigen::Index at = 0;
      const float value = vector(x.data(), x.size()).maxCoeff(&at);
      return regroup::indexed<float>{value, at};
    });
  }
}

/// The monoids that do not commute; `as` turns the hand loop's state into theirs.
template <class X, class Y, class M, class Theirs, class Hand, class As>
void contend_in_order(program& p, const M& m, const Theirs& theirs, Hand (*loop)(const Y*, std::ptrdiff_t), As as) {
  const auto x = p.input<X>("x");
  contend(p, m, theirs, x);
  contend_by_hand(
      p, x, [=](const X* first, index n) { return as(loop(reinterpret_cast<const Y*>(first), n)); },
      [=](const auto& parts) {
        auto all = theirs.identity();
        for (const auto& s : parts) all = theirs(all, s);
        return regroup::lower(theirs, all);
      });
}

void contend_all(program& p) {
  const std::string& what = p.work.what;
  if (what.starts_with("log_sum_exp") && p.work.type == "fp32") {
    contend_log_sum_exp(p);
  } else if (what == "log_sum_exp" && p.work.type == "bf16") {
    contend_widened<regroup::bfloat16>(p);
  } else if (what == "log_sum_exp" && p.work.type == "fp16") {
    contend_widened<regroup::float16>(p);
  } else if (what == "moments" || what == "minmax" || what == "fanout") {
    contend_statistics(p);
  } else if (what == "argmax") {
    contend_argmax(p);
  } else if (what == "plus") {
    contend(p, regroup::plus<float>{}, textbook::plus{}, p.input<float>("x"));
  } else if (what == "affine") {
    contend_in_order<regroup::affine_map<float>>(p, regroup::affine<float>{}, textbook::affine{}, loops().affine,
                                                 [](map_f32 s) {
                                                   return regroup::affine_map<float>{s.a, s.b};
                                                 });
  } else if (what == "longest_run") {
    using longest_run = examples::longest_run;
    contend_in_order<unsigned char>(p, longest_run{}, longest_run{}, loops().longest_run, [](run_state s) {
      return longest_run::state{s.prefix, s.suffix, s.best, s.length};
    });
  } else if (what == "min_plus") {
    contend_in_order<examples::min_plus::state>(p, examples::min_plus{}, textbook::min_plus{}, loops().min_plus,
                                                [](min_plus_state s) {
                                                  return textbook::min_plus::state{s.aa, s.ab, s.ba, s.bb};
                                                });
  } else {
    throw std::invalid_argument("no such work: reduce/" + what + "/" + p.work.type);
  }
  add_read_limits(p, p.input<char>("x"));
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main_of(argc, argv, bench::contend_all); }

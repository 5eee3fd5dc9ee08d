// SPDX-License-Identifier: Apache-2.0
// Attention over some of the keys as a value: m, l and unnormalised O for every query. States over disjoint keys merge
// by softmax_mean's combine, in any grouping and order within the error bound; the state of no keys changes nothing.
// Level: rank (merge what devices, shards or files hold), or one process that splits its keys.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "regroup/algorithms/attention_workload.hpp"
#include "regroup/outputs.hpp"

namespace regroup {

namespace attention_fold {

/// One query's output and logsumexp from its state, by the `lower` of softmax_mean and log_sum_exp. NaN loses its payload.
template <class Real>
struct lowered {
  Real m;
  Real l;
  Real operator()(Real o) const {
    const Real x = softmax_mean<Real, fixed_vector<Real, 1>>{}.lower({m, l, {{o}}})[0];
    return x == x ? x : std::numeric_limits<Real>::quiet_NaN();
  }
  [[nodiscard]] Real logsumexp() const {
    const Real x = log_sum_exp<Real>{}.lower({m, l});
    return x == x ? x : std::numeric_limits<Real>::quiet_NaN();
  }
};

/// Where results go: writes lowered states to out (..., H, Nq, dv) and logsumexp (..., H, Nq) in logarithms of `Base`,
/// each merged once with its head's sink, the state (sink, 1, O = 0).
template <class Real, class Out, log_base Base = log_base::e>
class results {
 public:
  results(const view<Out>& out, const logsumexp_output& lse, const shape& outer, index dv, const head_numbers& sinks = {})
      : out_(out) {
    if (outer.size() > 3) {
      throw_shape("attention's results have at most the axes (batch, heads, queries) before dv; got " + to_string(outer));
    }
    shape full = outer;
    full.push_back(dv);
    if (!(out.extents() == full)) {
      throw_shape("attention's output has shape (..., heads, queries, dv), here " + to_string(full) + "; got " +
                  to_string(out.extents()));
    }
    require_distinct(out_);
    if (lse.wanted()) lse_ = lse.as<Real>(outer);
    if (lse_) regroup::require_apart(view<const Out>(out_), *lse_, false, "another output");
    if (sinks.is_given()) sinks_ = sinks.as<Real>(outer.size() < 2 ? 1 : outer[outer.size() - 2], "sinks");
  }
  template <class T>
  void require_apart_from(const view<const T>& in) const {
    regroup::require_apart(in, out_, false);
    if (lse_) regroup::require_apart(in, *lse_, false);
  }
  void put(index batch, index head, index query, Real m, Real l, const Real* o) const {
    const Real sink = sinks_.empty() ? Real{hidden} : sinks_[static_cast<std::size_t>(head)];
    std::optional<rescale<Real>> with_sink;
    if (sink != Real{hidden}) with_sink = rescale<Real>{m, sink};
    const lowered<Real> answer = with_sink ? lowered<Real>{with_sink->m, (*with_sink)(l, Real{1})} : lowered<Real>{m, l};
    const index at[] = {batch, head, query};
    const int rank = out_.rank();
    index row = 0;
    for (int a = 0; a + 1 < rank; ++a) row += at[4 - rank + a] * out_.stride(a);
    const index n = out_.extent(rank - 1), step = out_.stride(rank - 1);
    Out* const to = n > 0 ? out_.data() + row : nullptr;
    const auto write = [=](const auto& numerator) {
      const auto lower = [=](Real x) { return static_cast<Out>(answer(numerator(x))); };
      if (step == 1) {
        host::dispatch([=] { std::transform(o, o + n, to, lower); });  // a copy of `lower`, which no store can change
      } else {
        for (index c = 0; c < n; ++c) to[c * step] = lower(o[c]);
      }
    };
    if (with_sink) {
      write([both = *with_sink](Real x) { return both(x, -Real{}); });
    } else {
      write([](Real x) { return x; });
    }
    if (!lse_) return;
    Real* place = lse_->data();
    for (int a = 0; a + 1 < rank; ++a) place += at[4 - rank + a] * lse_->stride(a);
    *place = in_base<Base>(answer.logsumexp());
  }

 private:
  view<Out> out_;
  std::optional<view<Real>> lse_;
  std::vector<Real> sinks_;
};

/// Checks of states, on a host and on a device.
inline void require_state_shapes(const shape& m, const shape& l, const shape& o) {
  shape full = m;
  full.push_back(o.size() == 0 ? 0 : o[o.size() - 1]);
  if (!(l == m && o == full)) {
    throw_shape(
        "an attention state has m and l of shape (..., heads, queries) and o of (..., heads, queries, dv); got " +
        to_string(m) + ", " + to_string(l) + " and " + to_string(o));
  }
}
inline void require_state_shape(const shape& outer, index dv) {
  if (dv < 0 || std::ranges::any_of(outer, [](index n) { return n < 0; })) {
    throw_shape("an attention state has extents of 0 or more; got " + to_string(outer) + " queries and values of length " +
                std::to_string(dv));
  }
  if (outer.size() > 3) {
    throw_shape("an attention state has at most 3 axes before dv (batch, heads, queries); got " + to_string(outer));
  }
}
inline void require_ragged_output(const shape& tokens, index dv, const shape& out) {
  shape full = tokens;
  full.push_back(dv);
  if (!(out == full)) {
    throw_shape("ragged attention's output has shape (tokens, heads, dv), here " + to_string(full) + "; got " + to_string(out));
  }
}
inline void require_same_queries(const shape& o, const shape& other) {
  if (!(o == other)) {
    throw_shape("attention states merge where they hold the same queries; got o of " + to_string(o) + " and " +
                to_string(other));
  }
}
inline void require_no_results(bool are_asked_for) {
  if (are_asked_for) {
    throw_argument("an attention_state takes logsumexp and sinks when it is normalised, not before");
  }
}

}  // namespace attention_fold

/// Attention over some keys as other systems hold it: O (..., H, Nq, dv) divided by l, and logsumexp (..., H, Nq), -inf for a
/// query that saw no key. The type names the base of the logarithm, so that bases cannot be mixed up.
template <std::floating_point Real, log_base Base = log_base::e>
struct normalised_attention {
  view<const Real> o;
  view<const Real> logsumexp;
};

/// The state of queries q (..., H, Nq, d) over some keys: m and l (..., H, Nq), O (..., H, Nq, dv) unnormalised, in the
/// frame of m; float, or double for double. A query that saw no key has m = -inf, l = 0, O = 0. Owns its memory.
template <std::floating_point Real>
class attention_state {
 public:
  /// The state of no queries, which merging replaces.
  attention_state() = default;
  /// The state of no keys for queries of shape `outer` = (..., H, Nq), rank 3 at most, and values of length dv. Throws
  /// shape_error.
  attention_state(const shape& outer, index dv) : outer_(outer), dv_(dv) {
    attention_fold::require_state_shape(outer, dv);
    const auto queries = static_cast<std::size_t>(view<Real>(nullptr, outer).size());
    states_ = {std::vector(queries, Real{hidden}), std::vector(queries, Real{}),
               std::vector(queries * static_cast<std::size_t>(dv), -Real{})};
  }
  /// Folds keys: `attention_state(par, q, dense(k, v), {.mask = causal{}})`. Ragged queries (tokens, H, d) give the outer
  /// shape (H, tokens). Work, memory and errors are those of `attention`; logsumexp and sinks are argument_errors here and go
  /// to `normalise`.
  template <executor Executor, class Q, class Keys>
  attention_state(const Executor& ex, const Q& q, const Keys& keys, const attention_options& options = {}) {
    attention_fold::require_no_results(options.logsumexp.wanted() || options.sinks.is_given());
    attention_fold::check_split(options.split);
    fold(worker_of(ex), attention_fold::workload_of(q, keys, options), options.split);
  }
  /// Folds `split` ranges of a call's keys.
  template <class Executor, class T>
  attention_state(const Executor& ex, const attention_fold::workload<T>& work, index split) {
    fold(ex, work, split);
  }
  /// From what m(), l() and o() returned; m = -inf is the state of no keys, whatever l and o hold. Throws shape_error where
  /// their extents do not fit.
  attention_state(const view<const Real>& m, const view<const Real>& l, const view<const Real>& o);
  /// From another system's (O, logsumexp): the state (logsumexp, 1, O). Throws shape_error where their extents do not fit.
  template <log_base Base>
  explicit attention_state(const normalised_attention<Real, Base>& other)
      : attention_state(from_normalised(other.o, other.logsumexp, from_base<Base>(Real{1}))) {}

  /// Adds the state of the same queries over other keys. O(queries dv). Throws shape_error where the queries differ.
  void merge(const attention_state& other);
  friend attention_state merge(attention_state a, const attention_state& b) {
    a.merge(b);
    return a;
  }
  /// Adds the state of the same queries over more keys: merge(attention_state(ex, q, keys, options)).
  template <executor Executor, class Q, class Keys>
  attention_state& append(const Executor& ex, const Q& q, const Keys& keys, const attention_options& options = {}) {
    merge(attention_state(ex, q, keys, options));
    return *this;
  }

  /// out (..., H, Nq, dv) = O / l; 0 for a query without keys, NaN where a score was +inf. `out` has any floating type. `lse`
  /// is a logarithm to base `Base`. Sinks are counted here, once, whatever was merged before. Throws shape_error,
  /// overlap_error, and argument_error where `lse` is not of Real.
  template <log_base Base = log_base::e, executor Executor, class Out>
  void normalise(const Executor& ex, Out&& out, const logsumexp_output& lse = {}, const head_numbers& sinks = {}) const {
    const auto to = regroup::writable(std::forward<Out>(out));
    require_place_for<typename decltype(to)::element_type, Real>();
    const attention_fold::results<Real, typename decltype(to)::element_type, Base> results(to, lse, outer_, dv_, sinks);
    const int rank = outer_.size();
    const auto extent = [&](int a) { return rank + a < 0 ? index{1} : outer_[rank + a]; };
    const double cost = 10.0 + static_cast<double>(dv_) / 4;
    worker_of(ex).for_each(static_cast<index>(states_.m.size()), cost, [&](index i) {
      const auto at = static_cast<std::size_t>(i);
      results.put(i / (extent(-2) * extent(-1)), i / extent(-1) % extent(-2), i % extent(-1), states_.m[at],
                  states_.l[at], states_.o.data() + i * dv_);
    });
  }
  template <log_base Base = log_base::e, class Out>
  requires(!executor<std::remove_cvref_t<Out>>)
  void normalise(Out&& out, const logsumexp_output& lse = {}, const head_numbers& sinks = {}) const {
    normalise<Base>(seq, std::forward<Out>(out), lse, sinks);
  }

  /// Whether this is the state of no queries.
  [[nodiscard]] bool is_empty() const noexcept { return states_.m.empty(); }
  [[nodiscard]] view<const Real> m() const { return {states_.m.data(), outer_}; }
  [[nodiscard]] view<const Real> l() const { return {states_.l.data(), outer_}; }
  [[nodiscard]] view<const Real> o() const {
    shape full = outer_;
    full.push_back(dv_);
    return {states_.o.data(), full};
  }

  /// Bytes with the order version and a checksum, for machines of the same byte order. `load` throws format_error.
  [[nodiscard]] std::vector<std::byte> save() const;
  [[nodiscard]] static attention_state load(std::span<const std::byte> bytes);

 private:
  template <class Executor, class T>
  void fold(const Executor& ex, const attention_fold::workload<T>& work, index split) {
    const shape& outer = work.outer();
    const int rank = outer.size();
    const index heads = rank < 2 ? 1 : outer[rank - 2];
    const index parts = work.parts(split);
    *this = attention_state(outer, work.dv());
    for (index part = 0; part < parts; ++part) {
      work.run(ex, part, parts, [&](index batch, index head, index query, Real m, Real l, const Real* o) {
        const index i = (batch * heads + head) * outer[rank - 1] + query;
        const auto at = static_cast<std::size_t>(i);
        attention_fold::merge(1, dv_, &states_.m[at], &states_.l[at], states_.o.data() + i * dv_, &m, &l, o);
      });
    }
  }
  static attention_state from_normalised(const view<const Real>& o, const view<const Real>& logsumexp, Real to_natural);

  /// Default-constructed or moved from: takes whatever it is merged with. (A state of zero queries is different: its shape is
  /// fixed.)
  [[nodiscard]] bool is_of_nothing() const noexcept {
    return (outer_ == shape{0, 0} && dv_ == 0) || static_cast<index>(states_.m.size()) != l().size();
  }

  shape outer_{0, 0};
  index dv_ = 0;
  struct {
    std::vector<Real> m, l, o;
  } states_;
};

template <class Executor, class Q, class Keys>
attention_state(const Executor&, const Q&, const Keys&, const attention_options& = {})
    -> attention_state<attention_real<typename Keys::element>>;
template <class Real, log_base Base>
attention_state(const normalised_attention<Real, Base>&) -> attention_state<Real>;

}  // namespace regroup

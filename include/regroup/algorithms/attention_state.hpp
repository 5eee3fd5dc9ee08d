// SPDX-License-Identifier: Apache-2.0
// Attention over some of the keys as a value: m, l and unnormalised O for every query. States over disjoint keys merge
// by softmax_mean's combine, in any grouping and order within the error bound; the state of no keys changes nothing.
// Level: rank (merge what devices, shards or files hold), or one process that splits its keys.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "regroup/algorithms/attention_fold.hpp"

namespace regroup {

/// Where logsumexp goes, (..., H, Nq): a view, span or container of float, or of double for double inputs; or nowhere.
class logsumexp_output {
 public:
  logsumexp_output() = default;
  template <class Out>
  requires(!std::same_as<std::remove_cvref_t<Out>, logsumexp_output>) && requires(Out&& out) { view(out); }
  logsumexp_output(Out&& out) : out_(view(out)) {}  // NOLINT: implicit on purpose

  [[nodiscard]] bool wanted() const noexcept { return out_.index() != 0; }
  /// The view, if it holds Real of shape `outer`; throws shape_error or argument_error otherwise.
  template <class Real>
  [[nodiscard]] const view<Real>& as(const shape& outer) const {
    const auto* const v = std::get_if<view<Real>>(&out_);
    if (v == nullptr) throw_argument("logsumexp is float, or double where the inputs are double");
    if (!(v->extents() == outer)) {
      throw_shape("logsumexp has shape (..., heads, queries), here " + to_string(outer) + "; got " +
                  to_string(v->extents()));
    }
    return *v;
  }

 private:
  std::variant<std::monostate, view<float>, view<double>> out_;
};

/// How attention scores and what it returns: `{.scale = 0.125, .mask = causal{}, .logsumexp = lse, .split = 4}`.
struct attention_options {
  std::optional<double> scale = {};  ///< of the scores; 1 / sqrt(d) by default
  attention_mask mask = {};          ///< no_mask, causal, additive, boolean, masks, or a function object
  logsumexp_output logsumexp = {};   ///< natural logarithm
  index split = 1;  ///< fold this many ranges of keys apart and merge them (regroups: within the bound)
};

namespace attention_fold {

/// Range `part` of `options.split` ranges of keys.
inline key_range part_of(index keys, index part, index parts) {
  return {keys * part / parts, keys * (part + 1) / parts};
}
inline void check_split(index split) {
  if (split < 1) throw_argument("attention's split must be 1 or more; got " + std::to_string(split));
}

/// One query's state as its output and logsumexp: softmax_mean's and log_sum_exp's lower. NaN loses its payload.
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

/// Where results go: writes lowered states to out (..., H, Nq, dv) and logsumexp (..., H, Nq).
template <class Real, class Out>
class results {
 public:
  results(const view<Out>& out, const logsumexp_output& lse, const shape& outer, index dv) : out_(out) {
    shape full = outer;
    full.push_back(dv);
    if (!(out.extents() == full)) {
      throw_shape("attention's output has shape (..., heads, queries, dv), here " + to_string(full) + "; got " +
                  to_string(out.extents()));
    }
    if (lse.wanted()) lse_ = lse.as<Real>(outer);
    if (lse_) require_apart(view<const Out>(out_), *lse_, false);
  }
  template <class T>
  void require_apart_from(const view<const T>& in) const {
    require_apart(in, out_, false);
    if (lse_) require_apart(in, *lse_, false);
  }
  void put(index batch, index head, index query, Real m, Real l, const Real* o) const {
    const lowered<Real> answer{m, l};
    const index at[] = {batch, head, query};
    const int rank = out_.rank();
    index row = 0;
    for (int a = 0; a + 1 < rank; ++a) row += at[4 - rank + a] * out_.stride(a);
    Out* const to = out_.data() + row;
    const index n = out_.extent(rank - 1), step = out_.stride(rank - 1);
    if (step == 1) {
      host::dispatch([=] {
        for (index c = 0; c < n; ++c) to[c] = static_cast<Out>(answer(o[c]));
      });
    } else {
      for (index c = 0; c < n; ++c) to[c * step] = static_cast<Out>(answer(o[c]));
    }
    if (!lse_) return;
    Real* place = lse_->data();
    for (int a = 0; a + 1 < rank; ++a) place += at[4 - rank + a] * lse_->stride(a);
    *place = answer.logsumexp();
  }

 private:
  view<Out> out_;
  std::optional<view<Real>> lse_;
};

}  // namespace attention_fold

/// The state of queries q (..., H, Nq, d) over some keys: m and l (..., H, Nq), O (..., H, Nq, dv) unnormalised, in the
/// frame of m; float, or double for double. A query that saw no key has m = -inf, l = 0, O = 0. Owns its memory.
template <std::floating_point Real>
class attention_state {
 public:
  /// The state of no queries, which merging replaces.
  attention_state() = default;
  /// The state of no keys for queries of shape `outer` = (..., H, Nq) and values of length dv.
  attention_state(const shape& outer, index dv)
      : outer_(outer), dv_(dv), states_(view<Real>(nullptr, outer).size(), dv) {}
  /// Folds keys: `attention_state(par, q, dense(k, v), {.mask = causal{}})`. Work, memory and errors as `attention`.
  template <executor Executor, class Q, class T>
  attention_state(const Executor& ex, const Q& q, const attention_source<T>& keys,
                  const attention_options& options = {}) {
    attention_fold::check_split(options.split);
    if (options.logsumexp.wanted())
      throw_argument("an attention_state gives logsumexp when it is normalised, not before");
    const attention_fold::problem<T> p(attention_keys::queries<T>(q), keys, options.mask, options.scale);
    for (index part = 0; part < options.split; ++part) {
      attention_state piece(p.outer, p.dv);
      attention_fold::run(ex, p, attention_fold::part_of(p.extents.keys, part, options.split),
                          [&](index b, index h, index i, Real m, Real l, const Real* o) {
                            piece.put((b * p.extents.heads + h) * p.extents.queries + i, m, l, o);
                          });
      if (part == 0)
        *this = std::move(piece);
      else
        merge(piece);
    }
  }
  /// From what m(), l() and o() gave. Throws shape_error where their extents do not fit.
  attention_state(const view<const Real>& m, const view<const Real>& l, const view<const Real>& o);

  /// Adds the state of the same queries over other keys. O(queries dv). Throws shape_error.
  void merge(const attention_state& other);
  friend attention_state merge(attention_state a, const attention_state& b) {
    a.merge(b);
    return a;
  }

  /// out (..., H, Nq, dv) = O / l; 0 for a query without keys, NaN where a score was +inf. `out` of any floating type.
  template <class Out>
  void normalise(Out&& out, const logsumexp_output& lse = {}) const {
    const auto to = view(out);
    const attention_fold::results<Real, typename decltype(to)::element_type> results(to, lse, outer_, dv_);
    const int rank = outer_.size();
    const auto extent = [&](int a) { return rank + a < 0 ? index{1} : outer_[rank + a]; };
    for (index i = 0; i < static_cast<index>(states_.m.size()); ++i) {
      const auto at = static_cast<std::size_t>(i);
      results.put(i / (extent(-2) * extent(-1)), i / extent(-1) % extent(-2), i % extent(-1), states_.m[at],
                  states_.l[at], states_.o.data() + i * dv_);
    }
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

  /// Bytes with the order's version and a checksum, for the same kind of machine. `load` throws format_error.
  [[nodiscard]] std::vector<std::byte> save() const;
  [[nodiscard]] static attention_state load(std::span<const std::byte> bytes);

 private:
  void put(index i, Real m, Real l, const Real* o) {
    states_.m[static_cast<std::size_t>(i)] = m;
    states_.l[static_cast<std::size_t>(i)] = l;
    std::copy(o, o + dv_, states_.o.data() + i * dv_);
  }

  shape outer_{0, 0};
  index dv_ = 0;
  attention_fold::fragment<Real> states_{0, 0};
};

template <class Executor, class Q, class T>
attention_state(const Executor&, const Q&, const attention_source<T>&, const attention_options& = {})
    -> attention_state<attention_real<T>>;

}  // namespace regroup

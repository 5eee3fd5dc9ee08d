// SPDX-License-Identifier: Apache-2.0
// softmax(scale q k^T) v for every query, without the matrix: softmax_mean's reduction over tiles of keys (FlashAttention:
// Dao et al. 2022). One query has the same bits alone, in a batch, in prefill, in chunked prefill and in decode, with any
// threads, strides, pages, and grouped or repeated heads: its order (attention_fold.hpp) depends on its keys only.
#pragma once

#include "regroup/algorithms/attention_state.hpp"

namespace regroup {

/// Attention of queries q (..., H, Nq, d) over keys k (..., Hkv, Nk, d) and values v (..., Hkv, Nk, dv), rank 2 to 4, any
/// strides, float, double, float16 or bfloat16: `attention(par, q, dense(k, v), out, {.mask = causal{}, .logsumexp = lse})`.
/// H is a multiple of Hkv (query head h uses key head h / (H / Hkv)). `out` (..., H, Nq, dv) has q's element type, or float;
/// it and logsumexp share no memory with anything else. A hidden key contributes nothing, even where it holds NaN or
/// infinity; a query that sees no key gets 0 and logsumexp -inf; a score of +inf gives NaN and +inf; NaN stays in the
/// queries that see it. Accumulates in float (double for double). O(H Nq Nk (d + dv)) work, O(H Nq dv) memory at most
/// beyond the results. Throws shape_error, argument_error (lengths, pages, scale, split), overlap_error.
template <executor Executor, class Q, class T, class Out>
void attention(const Executor& ex, const Q& q, const attention_source<T>& keys, Out&& out,
               const attention_options& options = {}) {
  using Real = attention_real<T>;
  const auto to = view(out);
  using element = typename decltype(to)::element_type;
  static_assert(std::same_as<element, T> || std::same_as<element, float> || std::same_as<element, Real>,
                "regroup: attention's output has the queries' element type, or float");
  attention_fold::check_split(options.split);
  const attention_fold::problem<T> p(attention_keys::queries<T>(q), keys, options.mask, options.scale);
  const attention_fold::results<Real, element> results(to, options.logsumexp, p.outer, p.dv);
  results.require_apart_from(p.q);
  results.require_apart_from(keys.k);
  results.require_apart_from(keys.v);
  if (options.split > 1) {
    attention_options plain = options;
    plain.logsumexp = {};
    attention_state<Real>(ex, q, keys, plain).normalise(to, options.logsumexp);
    return;
  }
  attention_fold::run(ex, p, {}, [&](index batch, index head, index query, Real m, Real l, const Real* o) {
    results.put(batch, head, query, m, l, o);
  });
}

}  // namespace regroup

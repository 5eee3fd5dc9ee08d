// SPDX-License-Identifier: Apache-2.0
// softmax(scale q k^T) v for every query, without the matrix: softmax_mean's reduction over tiles of keys (FlashAttention:
// Dao et al. 2022). One query has the same bits alone, in a batch, in prefill, in chunked prefill and in decode, with any
// threads, strides, pages, and grouped or repeated heads: its order (attention_fold.hpp) depends on its keys only.
#pragma once

#include <cstddef>
#include <limits>

#include "regroup/algorithms/attention_state.hpp"

namespace regroup {

namespace attention_fold {

template <class Executor, class T, class Out>
void attend(const Executor& ex, const workload<T>& work, const view<Out>& out, const attention_options& options,
            const logsumexp_output& logsumexp) {
  using Real = attention_real<T>;
  static_assert(std::same_as<Out, T> || std::same_as<Out, float> || std::same_as<Out, Real>,
                "regroup: attention's output has the queries' element type, or float");
  const results<Real, Out> results(out, logsumexp, work.outer(), work.dv(), options.sinks);
  results.require_apart_from(work.q());
  results.require_apart_from(work.k());
  results.require_apart_from(work.v());
  if (out.size() == 0 && !logsumexp.wanted()) return;  // however many queries there are
  if (work.parts(options.split) > 1) {
    attention_state<Real>(ex, work, options.split).normalise(ex, out, logsumexp, options.sinks);
    return;
  }
  work.run(ex, 0, 1, [&](index batch, index head, index query, Real m, Real l, const Real* o) {
    results.put(batch, head, query, m, l, o);
  });
}

}  // namespace attention_fold

/// Attention of queries over keys and values: `attention(par, q, dense(k, v), out, {.mask = causal{}, .logsumexp = lse})`.
///
/// Shapes: q (..., H, Nq, d), keys (..., Hkv, Nk, d), values (..., Hkv, Nk, dv) and out (..., H, Nq, dv), rank 2 to 4, any
/// strides; float, double, float16 or bfloat16. H is a multiple of Hkv: query head h uses key head h / (H / Hkv). `out` has
/// q's element type, or float. `out` and logsumexp share no memory with anything else; that is checked for q, k and v, not for
/// the arrays of a mask.
///
/// Special values: a hidden key contributes nothing, even where it holds NaN or infinity. A query that sees no key gets 0 and
/// logsumexp -inf (with a sink: 0 and the sink). A score of +inf gives NaN and logsumexp +inf. A NaN stays in the queries
/// that see it.
///
/// Accuracy: accumulates in float (double for double). The unnormalised sum, up to Nk times the largest |v|, must not
/// overflow.
///
/// Cost: O(H Nq Nk (d + dv)) work, minus the keys that range masks skip. Less than 4 MiB of memory a thread beyond inputs and
/// outputs in the tests (65,536 tokens with d = 64; copied rows with d up to 512), copies of lengths, offsets and page tables
/// apart; with `split` above 1 also a state of all queries, O(H Nq dv).
///
/// Throws shape_error (ranks, extents, sinks, masks), argument_error (lengths, pages, scale, split, piece, logsumexp of
/// another type) and overlap_error.
template <executor Executor, class Q, class T, class Out>
requires requires(const Q& q) { view(q); }
void attention(const Executor& ex, const Q& q, const attention_source<T>& keys, Out&& out,
               const attention_options& options = {}) {
  attention_fold::check_split(options.split);
  const auto to = regroup::writable(std::forward<Out>(out));
  attention_fold::attend(worker_of(ex), attention_fold::workload_of(q, keys, options), to, options, options.logsumexp);
}

/// The same for B requests concatenated along the token axis: `attention(par, ragged(q, q_offsets), ragged(k, v, k_offsets),
/// out)` with q (tokens, H, d), out (tokens, H, dv) and logsumexp (tokens, H). Keys may be ragged, `paged` with one row of
/// the table a request, or `dense` (B, Hkv, Nk, d) with lengths. Each request has the bits it has alone. To masks request b
/// is batch b: arrays broadcast to (B, H, Nq, Nk) of the longest request, and positions count from the request's own lengths.
/// Throws as above.
template <executor Executor, class T, class Keys, class Out>
void attention(const Executor& ex, const ragged_queries<T>& q, const Keys& keys, Out&& out,
               const attention_options& options = {}) {
  attention_fold::check_split(options.split);
  const auto to = regroup::writable(std::forward<Out>(out));
  const auto work = attention_fold::workload_of(q, keys, options);
  const shape tokens = {work.outer()[1], work.outer()[0]};
  attention_fold::require_ragged_output(tokens, work.dv(), to.extents());
  attention_fold::attend(worker_of(ex), work, to.permuted({1, 0, 2}), options, options.logsumexp.transposed(tokens));
}

/// A sentence for keys and values that come apart.
template <executor Executor, class Q, class K, class V, class... Rest>
requires requires(const Q& q, const K& k, const V& v) { view(q), view(k), view(v); }
void attention(const Executor&, const Q&, const K&, const V&, Rest&&...) {
  static_assert(sizeof...(Rest) == std::numeric_limits<std::size_t>::max(),
                "regroup: keys and values are one argument, which says how they lie: attention(par, q, dense(k, v), out), or "
                "paged or ragged");
}

}  // namespace regroup

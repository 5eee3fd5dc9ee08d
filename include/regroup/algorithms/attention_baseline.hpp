// SPDX-License-Identifier: Apache-2.0
// A named baseline to measure and compare with: attention that writes the whole matrix of scores, three passes over it
// (scores; softmax of its rows; times V). Not the order of `attention`, and O(Nq Nk) memory for each head in turn.
#pragma once

#include <algorithm>
#include <vector>

#include "regroup/algorithms/attention.hpp"

namespace regroup {

/// What `attention` computes, within rounding, by materialising the Nq x Nk matrix of one head after another. Throws as
/// `attention`, and argument_error for paged keys, `split` and `piece`.
template <executor Executor, class Q, class T, class Out>
void materialised_attention(const Executor& ex, const Q& q, const attention_source<T>& keys, Out&& out,
                            const attention_options& options = {}) {
  using Real = attention_real<T>;
  if (keys.is_paged || options.split != 1 || options.piece) {
    throw_argument("materialised_attention takes dense keys, all of them at once; use attention for pages, split and piece");
  }
  const auto to = regroup::writable(std::forward<Out>(out));
  const attention_fold::problem<T> p(attention_keys::queries<T>(q), keys, options.mask, options);
  const attention_fold::results<Real, typename decltype(to)::element_type> results(to, options.logsumexp, p.outer, p.dv,
                                                                                   options.sinks);
  results.require_apart_from(p.q);
  results.require_apart_from(p.k);
  results.require_apart_from(p.v);
  const index n = p.extents.keys;
  const auto sized = [](index rows, index columns) {
    return std::vector<Real>(static_cast<std::size_t>(rows * columns));
  };
  std::vector<Real> matrix = sized(p.extents.queries, n);
  std::vector<Real> k = sized(p.d, n);  // transposed
  std::vector<Real> v = sized(n, p.dv);
  const auto row = [&](index i) { return matrix.data() + i * n; };

  for (index b = 0; b < p.extents.batches; ++b) {
    const index length = p.extents.lengths[static_cast<std::size_t>(b)];
    for (index h = 0; h < p.extents.heads; ++h) {
      for (index j = 0; j < length; ++j) {
        for (index c = 0; c < p.d; ++c) k[static_cast<std::size_t>(c * n + j)] = regroup::widen(p.k(b, h / p.group, j, c));
        for (index c = 0; c < p.dv; ++c) v[static_cast<std::size_t>(j * p.dv + c)] = regroup::widen(p.v(b, h / p.group, j, c));
      }
      const auto each_query = [&](index columns, const auto& body) {
        ex.for_each(p.extents.queries, static_cast<double>(n * columns) / 8,
                    [&](index i) { host::dispatch([&] { body(i, row(i)); }); });
      };
      each_query(p.d, [&](index i, Real* s) {
        std::fill(s, s + n, Real{});
        for (index c = 0; c < p.d; ++c) {
          const Real x = regroup::widen(p.q(b, h, i, c));
          const Real* const column = k.data() + c * n;
          for (index j = 0; j < length; ++j) s[j] = math::fma(x, column[j], s[j]);
        }
      });
      std::vector<Real> m = sized(p.extents.queries, 1);
      std::vector<Real> l = m;
      each_query(1, [&](index i, Real* s) {
        for (index j = 0; j < length; ++j) s[j] *= p.scale;
        if (p.mask->has_function()) p.mask->apply(score_tile<Real>{s, length, 1, 0, b, &h, &i});
        const key_range seen = p.mask->range(b, h, i);
        Real highest = hidden;
        for (index j = 0; j < length; ++j) {
          if (j < seen.first || j >= seen.last) s[j] = hidden;
          highest = math::max(highest, s[j]);
        }
        Real sum = 0;
        for (index j = 0; j < length; ++j) sum += s[j] = softmax_weight<Real>{highest}(s[j]);
        m[static_cast<std::size_t>(i)] = highest;
        l[static_cast<std::size_t>(i)] = sum;
      });
      each_query(p.dv, [&](index i, const Real* s) {
        std::vector<Real> o(static_cast<std::size_t>(p.dv), Real{});
        for (index j = 0; j < length; ++j) {
          if (s[j] == 0) continue;
          for (index c = 0; c < p.dv; ++c) {
            auto& to_c = o[static_cast<std::size_t>(c)];
            to_c = math::fma(s[j], v[static_cast<std::size_t>(j * p.dv + c)], to_c);
          }
        }
        results.put(b, h, i, m[static_cast<std::size_t>(i)], l[static_cast<std::size_t>(i)], o.data());
      });
    }
  }
}

}  // namespace regroup

// SPDX-License-Identifier: Apache-2.0
// What a small attention should give: attention by definition, one row (a query of a head of a batch) at a time, in long
// double, with the bound of properties/attention/reference.hpp.
#pragma once

#include "small_attention.hpp"

namespace fuzz {

template <class T>
struct attention_definition {
  using Real = regroup::attention_real<T>;
  const small_attention<T>& p;

  [[nodiscard]] std::vector<row_of> rows() const {
    std::vector<row_of> all;
    for (index b = 0; b < p.batches; ++b) {
      for (index h = 0; h < p.heads; ++h) {
        for (index i = 0; i < p.query_count(b); ++i) all.push_back({b, h, i});
      }
    }
    return all;
  }
  /// Where a row of the output and its logsumexp are.
  [[nodiscard]] auto places(const row_of& r, const regroup::view<T>& out, const regroup::view<Real>& lse) const {
    const index at[] = {r.batch, r.head, r.query};
    Real* to = lse.data();
    if (p.ragged) {
      to = &lse(p.q_offsets[static_cast<std::size_t>(r.batch)] + r.query, r.head);
    } else {
      for (int a = 0; a < lse.rank(); ++a) to += at[3 - lse.rank() + a] * lse.stride(a);
    }
    return std::pair(row(out, p.q_offsets, r), to);
  }

  /// `depth` adds combines to those of the tree.
  [[nodiscard]] cases::expected operator()(const row_of& r, double depth) const {
    std::vector<cases::seen_key> visible;
    bool is_nan = false;
    for (index j = 0; j < p.length(r.batch); ++j) {
      row_of at = {r.batch, r.head / (p.heads / p.key_heads), j};
      if (p.paged) {
        at.batch = p.table[static_cast<std::size_t>(r.batch * p.pages + j / p.page_size)];
        at.query = j % p.page_size;
      }
      cases::seen_key key = scored(row(p.q->in(), p.q_offsets, r), row(p.k->in(), p.k_offsets, at));
      bool is_seen = true;
      for (const auto& step : p.steps) is_seen = step(key, r, p.first_key + j) && is_seen;
      if (!is_seen) continue;
      is_nan = is_nan || key.score != key.score;
      const auto values = row(p.v->in(), p.k_offsets, at);
      for (index e = 0; e < p.dv; ++e) key.values.push_back(regroup::widen(values(e)));
      visible.push_back(std::move(key));
    }
    const float sink = p.sinks.empty() ? float{regroup::hidden} : p.sinks[static_cast<std::size_t>(r.head)];
    const auto width = static_cast<std::size_t>(p.dv);
    if (sink != float{regroup::hidden}) visible.push_back({sink, 0, std::vector<long double>(width, 0)});
    constexpr double output_u = std::same_as<T, double>             ? 0x1p-53
                                : std::same_as<T, float>            ? 0x1p-24
                                : std::same_as<T, regroup::float16> ? 0x1p-11
                                                                    : 0x1p-8;
    constexpr double u = std::same_as<Real, double> ? 0x1p-53 : 0x1p-24;
    cases::expected e = cases::define(visible, p.d, p.dv, u, output_u, depth);
    if (is_nan) {
      e.lse = NAN;
      e.out.assign(width, NAN);
    }
    return e;
  }

 private:
  [[nodiscard]] cases::seen_key scored(const regroup::view<const T>& q, const regroup::view<const T>& k) const {
    const double wanted = p.options.scale.value_or(p.d == 0 ? 1.0 : 1 / std::sqrt(static_cast<double>(p.d)));
    const auto scale = static_cast<Real>(wanted);
    cases::seen_key key{0, 0, {}};
    for (index e = 0; e < p.d; ++e) {
      const long double product = static_cast<long double>(regroup::widen(q(e))) * scale * regroup::widen(k(e));
      key.score += product;
      key.magnitude += std::abs(product);
    }
    return key;
  }
  /// A row of an array (..., heads, rows, width), or of a ragged one.
  template <class E>
  [[nodiscard]] regroup::view<E> row(const regroup::view<E>& x, const std::vector<index>& offsets,
                                     const row_of& r) const {
    if (p.ragged) return x[offsets[static_cast<std::size_t>(r.batch)] + r.query][r.head];
    regroup::view<E> rest = x;
    if (x.rank() == 4) rest = rest[r.batch];
    if (x.rank() >= 3) rest = rest[r.head];
    return rest[r.query];
  }
};

}  // namespace fuzz

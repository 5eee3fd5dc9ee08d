// SPDX-License-Identifier: Apache-2.0
#include "regroup/algorithms/attention_fold.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention_tile.hpp"
#include "regroup/host/dispatch.hpp"

namespace regroup::attention_fold {

template <class Real>
void merge(index count, index dv, Real* m_a, Real* l_a, Real* o_a, const Real* m_b, const Real* l_b, const Real* o_b) {
  host::dispatch([=] {
    for (index i = 0; i < count; ++i) {
      const rescale<Real> both{m_a[i], m_b[i]};
      m_a[i] = both.m;
      l_a[i] = both(l_a[i], l_b[i]);
      Real* const a = o_a + i * dv;
      const Real* const b = o_b + i * dv;
      for (index c = 0; c < dv; ++c) a[c] = both(a[c], b[c]);
    }
  });
}

template <class T>
block<T>::block(const problem<T>& p, index number, key_range range) : p_(p) {
  const index of_head = p.blocks_of_head();
  const index first = number % of_head * block_queries;
  key_head_ = number / of_head % p.key_heads;
  batch_ = number / of_head / p.key_heads;
  count_ = std::min(block_queries, p.rows() - first);
  lanes_ = count_ <= 8 ? 8 : count_ <= 16 ? 16 : block_queries;
  range.last = std::min(range.last, p.extents.lengths[static_cast<std::size_t>(batch_)]);
  all_ = {std::numeric_limits<index>::max(), 0};
  for (index lane = 0; lane < lanes_; ++lane) {
    const index r = first + std::min(lane, count_ - 1);
    heads_.push_back(key_head_ * p.group + r % p.group);
    queries_.push_back(r / p.group);
    key_range seen = p.mask->range(batch_, heads_.back(), queries_.back());
    seen = {std::max(seen.first, range.first), std::min(seen.last, range.last)};
    seen_.push_back(seen);
    if (seen.first < seen.last) all_ = {std::min(all_.first, seen.first), std::max(all_.last, seen.last)};
  }
  if (all_.first >= all_.last) all_ = {0, 0};
}

template <class T>
block<T>::block(const block& whole, index lane)
    : p_(whole.p_),
      is_careful_(true),
      batch_(whole.batch_),
      key_head_(whole.key_head_),
      count_(1),
      lanes_(8),
      heads_(8, whole.head(lane)),
      queries_(8, whole.query(lane)),
      seen_(8, whole.seen_[static_cast<std::size_t>(lane)]),
      all_(seen_[0]) {}

template <class T>
key_range block<T>::leaves() const noexcept {
  if (all_.first >= all_.last) return {0, 0};
  return {all_.first / attention_leaf_keys, (all_.last - 1) / attention_leaf_keys + 1};
}

template <class T>
void block<T>::gather_queries() {
  q_.resize(p_.d * lanes_);
  s_.resize(attention_tile_keys * lanes_);
  m_.resize(lanes_);
  l_.resize(lanes_);
  factor_.resize(lanes_);
  for (index lane = 0; p_.d > 0 && lane < count_; ++lane) {
    const T* const from = &p_.q(batch_, head(lane), query(lane), index{0});
    for (index c = 0; c < p_.d; ++c) q_.data()[c * lanes_ + lane] = widen(from[c * p_.q.stride(3)]);
  }
}

template <class T>
const T* block<T>::row(const view<const T>& x, index key) const {
  if (!p_.keys.is_paged) return x.data() + batch_ * x.stride(0) + key_head_ * x.stride(1) + key * x.stride(2);
  const index page = p_.keys.table[static_cast<std::size_t>(batch_ * p_.keys.pages + key / p_.page_size)];
  return x.data() + page * x.stride(0) + key_head_ * x.stride(1) + key % p_.page_size * x.stride(2);
}

/// Whether one stride reaches all rows of these keys, in the type we compute with.
template <class T>
bool block<T>::is_regular(index first, index last) const {
  return std::same_as<T, Real> && (!p_.keys.is_paged || first / p_.page_size == (last - 1) / p_.page_size);
}

template <class T>
void block<T>::copy_rows(const view<const T>& x, index first, index last, buffer<Real>& to) const {
  const index n = x.extent(3);
  const index stride = x.stride(3);
  to.resize(attention_tile_keys * n);
  host::dispatch([&] {
    for (index j = first; j < last; ++j) {
      const T* const from = row(x, j);
      Real* const row_to = to.data() + (j - first) * n;
      if (stride == 1) {
        for (index c = 0; c < n; ++c) row_to[c] = widen(from[c]);
      } else {
        for (index c = 0; c < n; ++c) row_to[c] = widen(from[c * stride]);
      }
    }
  });
}

/// s_ = the scores of keys [first, last): products, scale, masks. What a lane does not see is -inf.
template <class T>
void block<T>::score(index first, index last) {
  const index n = last - first;
  const index lanes = lanes_;
  Real* const s = s_.data();
  std::fill(s, s + n * lanes, Real{});
  const Real* k = nullptr;
  index row_step = p_.d, step = 1;
  if constexpr (std::same_as<T, Real>) {
    if (p_.d > 0 && is_regular(first, last)) {
      k = row(p_.k, first);
      row_step = p_.k.stride(2);
      step = p_.k.stride(3);
    }
  }
  if (k == nullptr && p_.d > 0) {
    copy_rows(p_.k, first, last, k_);
    k = k_.data();
  }
  if (p_.d > 0)
    tiles::multiply_add(tiles::products<Real>{k, row_step, step, q_.data(), lanes, s, lanes, n, lanes, p_.d});
  host::dispatch([s, scale = p_.scale, count = n * lanes] {
    for (index i = 0; i < count; ++i) s[i] *= scale;
  });
  if (p_.mask->has_function()) {
    p_.mask->apply(score_tile<Real>{s, n, lanes, first, batch_, heads_.data(), queries_.data()});
  }
  for (index lane = 0; lane < lanes; ++lane) {
    const key_range seen = seen_[static_cast<std::size_t>(lane)];
    if (seen.first <= first && last <= seen.last) continue;
    for (index j = 0; j < n; ++j) {
      if (first + j < seen.first || first + j >= seen.last) s[j * lanes + lane] = hidden;
    }
  }
}

/// Turns the scores of one tile into weights, in the frame of the new m; l grows by them, over keys ascending. Returns
/// whether some m grew; then `factor` corrects O. Loops run over stripes of one constant length, whatever the lanes are.
template <class Real>
static bool weigh(Real* s, index n, index lanes, Real* m, Real* l, Real* factor) {
  constexpr index stripe = block_queries;
  const index padded = (n * lanes + stripe - 1) / stripe * stripe;
  std::fill(s + n * lanes, s + padded, Real{hidden});
  bool grows = false;
  host::dispatch([=, &grows] {
    Real top[stripe];
    for (index i = 0; i < stripe; ++i) top[i] = m[i % lanes];
    for (index first = 0; first < padded; first += stripe) {
      for (index i = 0; i < stripe; ++i) top[i] = s[first + i] > top[i] ? s[first + i] : top[i];
    }
    for (index h = stripe / 2; h >= lanes; h /= 2) {
      for (index i = 0; i < h; ++i) top[i] = top[i + h] > top[i] ? top[i + h] : top[i];
    }
    for (index q = 0; q < lanes; ++q) grows |= top[q] > m[q];
    if (grows) {
      for (index q = 0; q < lanes; ++q) {
        factor[q] = rescale<Real>{m[q], top[q]}.factor;
        m[q] = top[q];
        l[q] *= factor[q];
      }
    }
    for (index i = 0; i < stripe; ++i) top[i] = m[i % lanes];
    for (index first = 0; first < padded; first += stripe) {
      for (index i = 0; i < stripe; ++i) s[first + i] = softmax_weight<Real>{top[i]}(s[first + i]);
    }
    const auto sum = [=]<index Lanes>(std::integral_constant<index, Lanes>) {
      Real total[static_cast<std::size_t>(Lanes)];
      for (index q = 0; q < Lanes; ++q) total[q] = l[q];
      for (index j = 0; j < n; ++j) {
        for (index q = 0; q < Lanes; ++q) total[q] += s[j * Lanes + q];
      }
      for (index q = 0; q < Lanes; ++q) l[q] = total[static_cast<std::size_t>(q)];
    };
    if (lanes == 8) return sum(std::integral_constant<index, 8>{});
    if (lanes == 16) return sum(std::integral_constant<index, 16>{});
    sum(std::integral_constant<index, stripe>{});
  });
  return grows;
}

/// Folds keys [first, last) of one tile, which some lane may see, into the states.
template <class T>
void block<T>::tile(index first, index last, fragment<Real>& f) {
  score(first, last);
  const index n = last - first;
  const index dv = p_.dv;
  const index lanes = lanes_;
  Real* const s = s_.data();
  const Real* v = nullptr;
  index v_step = dv;
  if constexpr (std::same_as<T, Real>) {
    if (dv > 0 && is_regular(first, last) && !is_careful_ && (p_.v.stride(3) == 1 || dv == 1)) {
      v = row(p_.v, first);
      v_step = p_.v.stride(2);
    }
  }
  if (v == nullptr && dv > 0) {
    copy_rows(p_.v, first, last, v_);
    v = v_.data();
    for (index j = 0; is_careful_ && j < n; ++j) {
      if (s[j * lanes] == Real{hidden}) std::fill(v_.data() + j * dv, v_.data() + (j + 1) * dv, Real{});
    }
  }
  const bool grows = weigh(s, n, lanes, m_.data(), l_.data(), factor_.data());
  for (index q = 0; grows && q < count_; ++q) {
    const Real factor = factor_.data()[q];
    if (factor == 1) continue;
    Real* const o = f.o.data() + q * dv;
    for (index c = 0; c < dv; ++c) o[c] *= factor;
  }
  tiles::multiply_add(tiles::products<Real>{s, 1, lanes, v, v_step, f.o.data(), dv, count_, dv, n});
}

template <class T>
auto block<T>::leaf(index t) -> fragment<Real> {
  if (s_.empty()) gather_queries();
  fragment<Real> f(count_, p_.dv);
  std::fill(f.o.begin(), f.o.end(), Real{});
  std::fill(m_.data(), m_.data() + lanes_, Real{hidden});
  std::fill(l_.data(), l_.data() + lanes_, Real{});
  const index end = std::min(all_.last, (t + 1) * attention_leaf_keys);
  for (index first = t * attention_leaf_keys; first < end; first += attention_tile_keys) {
    const index from = std::max(first, all_.first);
    const index to = std::min(first + attention_tile_keys, end);
    if (from < to) tile(from, to, f);
  }
  for (index q = 0; q < count_; ++q) {
    const auto at = static_cast<std::size_t>(q);
    const Real l = l_.data()[q];
    f.l[at] = l;
    f.m[at] = l == l ? m_.data()[q] + Real{} : l;  // one zero; NaN in every member
    Real* const o = f.o.data() + q * p_.dv;
    const Real zero = f.m[at] == Real{hidden} ? -Real{} : Real{};
    for (index c = 0; c < p_.dv; ++c) o[c] = f.m[at] == Real{hidden} ? zero : o[c] + zero;
  }
  if (!is_careful_) mend(t, f);
  return f;
}

/// A hidden key's weight is 0, but 0 times an infinite or NaN value is not: such queries are folded again without it.
template <class T>
void block<T>::mend(index t, fragment<Real>& f) {
  for (index q = 0; q < count_; ++q) {
    const auto at = static_cast<std::size_t>(q);
    Real* const o = f.o.data() + q * p_.dv;
    if (f.l[at] != f.l[at] || std::all_of(o, o + p_.dv, [](Real x) { return x - x == 0; })) continue;
    const fragment<Real> alone = block(*this, q).leaf(t);
    std::copy(alone.o.begin(), alone.o.end(), o);
  }
}

template class block<float>;
template class block<double>;
template class block<float16>;
template class block<bfloat16>;
template void merge(index, index, float*, float*, float*, const float*, const float*, const float*);
template void merge(index, index, double*, double*, double*, const double*, const double*, const double*);

}  // namespace regroup::attention_fold

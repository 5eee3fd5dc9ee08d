// SPDX-License-Identifier: Apache-2.0
#include "regroup/algorithms/attention_fold.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "attention_tile.hpp"
#include "regroup/host/dispatch.hpp"

namespace regroup::attention_fold {

static_assert(tiles::tile_keys == attention_tile_keys && tiles::most_lanes == block_queries);

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
  has_key_lanes_ = count_ <= tiles::most_queries;
  lanes_ = has_key_lanes_ ? count_ : (count_ + tiles::group_lanes - 1) / tiles::group_lanes * tiles::group_lanes;
  range.last = std::min(range.last, p.extents.lengths[static_cast<std::size_t>(batch_)]);
  all_ = {std::numeric_limits<index>::max(), 0};
  common_ = {0, std::numeric_limits<index>::max()};
  for (index lane = 0; lane < lanes_; ++lane) {
    const index r = first + std::min(lane, count_ - 1);
    heads_.push_back(key_head_ * p.group + r % p.group);
    queries_.push_back(r / p.group);
    key_range seen = p.mask->range(batch_, heads_.back(), queries_.back());
    seen = {std::max(seen.first, range.first), std::min(seen.last, range.last)};
    seen_.push_back(seen);
    common_ = {std::max(common_.first, seen.first), std::min(common_.last, seen.last)};
    if (seen.first < seen.last) all_ = {std::min(all_.first, seen.first), std::max(all_.last, seen.last)};
  }
  if (all_.first >= all_.last) all_ = {0, 0};
}

template <class T>
block<T>::block(const block& whole, index lane)
    : p_(whole.p_),
      is_careful_(true),
      has_key_lanes_(true),
      batch_(whole.batch_),
      key_head_(whole.key_head_),
      count_(1),
      lanes_(1),
      heads_(1, whole.head(lane)),
      queries_(1, whole.query(lane)),
      seen_(1, whole.seen_[static_cast<std::size_t>(lane)]),
      all_(seen_[0]),
      common_(seen_[0]) {}

template <class T>
key_range block<T>::leaves() const noexcept {
  if (all_.first >= all_.last) return {0, 0};
  return {all_.first / attention_leaf_keys, (all_.last - 1) / attention_leaf_keys + 1};
}

/// Memory, and the queries times scale, or in pairs: (queries, d), or (d, lanes).
template <class T>
void block<T>::prepare() {
  const bool widens = !has_key_lanes_ && !p_.takes_pairs && !std::same_as<T, Real>;
  is_copied_ = p_.k.stride(3) != 1 || p_.v.stride(3) != 1 || widens || (p_.takes_pairs && p_.d % 2 != 0);
  s_.resize(attention_tile_keys * std::max(lanes_, index{1}));
  for (buffer<Real>* const x : {&m_, &l_, &factor_}) x->resize(lanes_);
  const index d = p_.takes_pairs ? (p_.d + 1) / 2 : p_.d;
  q_.resize(std::max(d, index{1}) * lanes_);  // where d or dv is 0, still something to point to
  if (is_careful_) {
    const index bytes = p_.dv * index{sizeof(Real)};
    nothing_.resize(bytes);
    std::fill(nothing_.data(), nothing_.data() + bytes, std::byte{});
  }
  if (!has_key_lanes_) o_.resize(std::max(p_.dv, index{1}) * lanes_);
  if (!has_key_lanes_ && p_.takes_pairs) pairs_.resize(attention_tile_keys / 2 * p_.dv);
  if (d == 0) return;
  buffer<Real> rows;  // (lanes, d)
  if (!has_key_lanes_) rows.resize(d * lanes_);
  Real* const to = has_key_lanes_ ? q_.data() : rows.data();
  host::dispatch([&, scale = p_.scale, stride = p_.q.stride(3)] {
    for (index lane = 0; lane < lanes_; ++lane) {
      const T* const from = &p_.q(batch_, head(lane), query(lane), index{0});
      Real* const row = to + lane * d;
      if (p_.takes_pairs) {
        row[d - 1] = 0;
        auto* const pairs = reinterpret_cast<std::byte*>(row);
        for (index c = 0; c < p_.d; ++c) std::memcpy(pairs + c * index{sizeof(T)}, from + c * stride, sizeof(T));
      } else if (stride == 1) {
        for (index c = 0; c < d; ++c) row[c] = widen(from[c]) * scale;
      } else {
        for (index c = 0; c < d; ++c) row[c] = widen(from[c * stride]) * scale;
      }
    }
  });
  if (has_key_lanes_) return;
  const tiles::query_lanes<Real>& kernel = tiles::current(false);
  kernel.transpose({to, d, q_.data(), lanes_, lanes_, d});
}

template <class T>
index block<T>::tile_end(index first) const {
  return std::min((first / attention_tile_keys + 1) * attention_tile_keys, all_.last);
}

/// The last row is repeated up to a whole tile.
template <class T>
void block<T>::find_rows(index first, index last, rows<T>& to) const {
  to.first = first;
  const T* const k = p_.k.data() + key_head_ * p_.k.stride(1);
  const T* const v = p_.v.data() + key_head_ * p_.v.stride(1);
  const index k_step = p_.k.stride(2), v_step = p_.v.stride(2);
  const index page_size = p_.keys.is_paged ? p_.page_size : std::numeric_limits<index>::max();
  for (index j = first; j < last;) {
    index plane = batch_, key = j;
    if (p_.keys.is_paged) {
      plane = p_.keys.table[static_cast<std::size_t>(batch_ * p_.keys.pages + j / page_size)];
      key = j % page_size;
    }
    const index run = std::min(last - j, page_size - key);
    const T* const k_row = k + plane * p_.k.stride(0) + key * k_step;
    const T* const v_row = v + plane * p_.v.stride(0) + key * v_step;
    for (index i = 0; i < run; ++i) {
      to.k[j - first + i] = k_row + i * k_step;
      to.v[j - first + i] = v_row + i * v_step;
    }
    j += run;
  }
  std::fill(to.k + (last - first), to.k + attention_tile_keys, to.k[last - first - 1]);
  std::fill(to.v + (last - first), to.v + attention_tile_keys, to.v[last - first - 1]);
}

/// Rows of E, with zeros up to an even width.
template <class T>
template <class E>
void block<T>::copy_rows(const view<const T>& x, const T* const* from, index n, buffer<E>& to,
                         const E** rows_to) const {
  const index width = x.extent(3), padded = width + width % 2;
  const index stride = x.stride(3);
  to.resize(attention_tile_keys * padded);
  for (index j = 0; j < attention_tile_keys; ++j) rows_to[j] = to.data() + std::min(j, n - 1) * padded;
  host::dispatch([&] {
    for (index j = 0; j < n; ++j) {
      const T* const row = from[j];
      E* const row_to = to.data() + j * padded;
      const auto copy = [&](const auto& element) {
        for (index c = 0; c < width; ++c) {
          if constexpr (std::same_as<E, T>) {
            row_to[c] = element(c);
          } else {
            row_to[c] = widen(element(c));
          }
        }
      };
      if (stride == 1) {
        copy([&](index c) { return row[c]; });
      } else {
        copy([&](index c) { return row[c * stride]; });
      }
      if (padded > width) row_to[width] = E{};
    }
  });
}

/// What each lane sees of the tile [first, last), counted from its first key.
template <class T>
void block<T>::find_seen(index first, index last) {
  is_whole_ = common_.first <= first && last <= common_.last;
  std::fill(group_first_, group_first_ + 4, static_cast<std::int32_t>(is_whole_ ? 0 : last - first));
  std::fill(group_last_, group_last_ + 4, static_cast<std::int32_t>(is_whole_ ? last - first : 0));
  for (index lane = 0; lane < lanes_ && (has_key_lanes_ || !is_whole_); ++lane) {
    const key_range seen = seen_[static_cast<std::size_t>(lane)];
    const auto from = static_cast<std::int32_t>(std::clamp(seen.first, first, last) - first);
    const auto to = std::max(from, static_cast<std::int32_t>(std::clamp(seen.last, first, last) - first));
    first_[lane] = from;
    last_[lane] = to;
    const index g = lane / tiles::group_lanes;
    if (from == to) continue;
    group_first_[g] = std::min(group_first_[g], from);
    group_last_[g] = std::max(group_last_[g], to);
  }
}

/// Masks see scores as (keys, lanes).
template <class T>
void block<T>::mask(index first, index last) {
  const index n = last - first;
  Real* const s = s_.data();
  if (!has_key_lanes_) {
    return p_.mask->apply(score_tile<Real>{s, n, lanes_, first, batch_, heads_.data(), queries_.data()});
  }
  Real turned[static_cast<std::size_t>(attention_tile_keys * tiles::most_queries)];
  for (index j = 0; j < n; ++j) {
    for (index q = 0; q < lanes_; ++q) turned[j * lanes_ + q] = s[q * attention_tile_keys + j];
  }
  p_.mask->apply(score_tile<Real>{turned, n, lanes_, first, batch_, heads_.data(), queries_.data()});
  for (index j = 0; j < n; ++j) {
    for (index q = 0; q < lanes_; ++q) s[q * attention_tile_keys + j] = turned[j * lanes_ + q];
  }
}

/// The tile whose rows are `at`: scores, weights, values.
template <class T>
template <class E>
void block<T>::fold_rows(index first, index last, rows<E>& at, const rows<E>& next, Real* o) {
  const tiles::instruction_set& all = tiles::current(p_.takes_pairs);
  const tiles::kernels<E>* kernel = &static_cast<const tiles::key_lanes<E>&>(all);
  if constexpr (std::derived_from<tiles::instruction_set, tiles::query_lanes<E>>) {
    if (!has_key_lanes_) kernel = &static_cast<const tiles::query_lanes<E>&>(all);
  }
  bool grows[4];
  const tiles::tile<E> t{.n = last - first,
                         .d = p_.d,
                         .dv = p_.dv,
                         .queries = lanes_,
                         .k = at.k,
                         .v = at.v,
                         .next_k = next.k,
                         .q = q_.data(),
                         .scale = p_.scale,
                         .pairs = pairs_.data(),
                         .s = s_.data(),
                         .o = o,
                         .m = m_.data(),
                         .l = l_.data(),
                         .factor = factor_.data(),
                         .grows = grows,
                         .is_whole = is_whole_,
                         .first = first_,
                         .last = last_,
                         .group_first = group_first_,
                         .group_last = group_last_};
  if (p_.mask->has_function() && !is_whole_) std::fill(t.s, t.s + attention_tile_keys * lanes_, Real{});
  kernel->scores(t);
  if (p_.mask->has_function()) mask(first, last);
  for (index j = 0; is_careful_ && j < attention_tile_keys; ++j) {
    const bool hides = j < first_[0] || j >= last_[0] || t.s[j] == Real{hidden};
    if (hides) at.v[j] = reinterpret_cast<const E*>(nothing_.data());
  }
  kernel->weights(t);
  kernel->values(t);
}

template <class T>
template <class E>
void block<T>::fold_copies(index first, index last, buffer<E>& k, buffer<E>& v, Real* o) {
  rows<E> copies;
  copy_rows(p_.k, at_.k, last - first, k, copies.k);
  copy_rows(p_.v, at_.v, last - first, v, copies.v);
  fold_rows(first, last, copies, copies, o);
}

/// Folds keys [first, last) of one tile, which some lane may see, into m_, l_ and o.
template <class T>
void block<T>::fold_tile(index first, index last, Real* o) {
  find_seen(first, last);
  if (next_.first == first) {
    std::swap(at_, next_);
  } else {
    find_rows(first, last, at_);
  }
  if (is_copied_ && p_.takes_pairs) return fold_copies(first, last, k_copy_, v_copy_, o);
  if (is_copied_) return fold_copies(first, last, k_, v_, o);
  const bool has_next = has_key_lanes_ && last < all_.last;
  if (has_next) find_rows(last, tile_end(last), next_);
  fold_rows(first, last, at_, has_next ? next_ : at_, o);
}

template <class T>
auto block<T>::leaf(index t) -> fragment<Real> {
  if (s_.empty()) prepare();
  fragment<Real> f(count_, p_.dv);
  Real* const o = has_key_lanes_ ? f.o.data() : o_.data();
  std::fill(o, o + lanes_ * p_.dv, Real{});
  std::fill(m_.data(), m_.data() + lanes_, Real{hidden});
  std::fill(l_.data(), l_.data() + lanes_, Real{});
  const index end = std::min(all_.last, (t + 1) * attention_leaf_keys);
  for (index first = std::max(t * attention_leaf_keys, all_.first); first < end; first = tile_end(first)) {
    fold_tile(first, tile_end(first), o);
  }
  if (!has_key_lanes_) {
    const tiles::query_lanes<Real>& kernel = tiles::current(false);
    kernel.transpose({o_.data(), lanes_, f.o.data(), p_.dv, p_.dv, count_});
  }
  finish(f);
  if (!is_careful_) mend(t, f);
  return f;
}

/// The states as softmax_mean has them: one zero, NaN in every member, O of nothing -0.
template <class T>
void block<T>::finish(fragment<Real>& f) {
  std::copy(l_.data(), l_.data() + count_, f.l.begin());
  for (index q = 0; q < count_; ++q) {
    const auto at = static_cast<std::size_t>(q);
    f.m[at] = f.l[at] == f.l[at] ? m_.data()[q] + Real{} : f.l[at];
    Real* const o = f.o.data() + q * p_.dv;
    if (f.m[at] == Real{hidden}) {
      std::fill(o, o + p_.dv, -Real{});
      finite_[q] = true;
      continue;
    }
    bool is_finite = true;
    host::dispatch([=, n = p_.dv, &is_finite] {
      int infinite = 0;
      for (index c = 0; c < n; ++c) {
        infinite |= o[c] - o[c] == 0 ? 0 : 1;
        o[c] += Real{};
      }
      is_finite = infinite == 0;
    });
    finite_[q] = is_finite;
  }
}

/// A hidden key's weight is 0, but 0 times an infinite or NaN value is not: such queries are folded again without it.
template <class T>
void block<T>::mend(index t, fragment<Real>& f) {
  for (index q = 0; q < count_; ++q) {
    const auto at = static_cast<std::size_t>(q);
    if (f.l[at] != f.l[at] || finite_[q]) continue;
    const fragment<Real> alone = block(*this, q).leaf(t);
    std::copy(alone.o.begin(), alone.o.end(), f.o.data() + q * p_.dv);
  }
}

template class block<float>;
template class block<double>;
template class block<float16>;
template class block<bfloat16>;
template void merge(index, index, float*, float*, float*, const float*, const float*, const float*);
template void merge(index, index, double*, double*, double*, const double*, const double*, const double*);

}  // namespace regroup::attention_fold

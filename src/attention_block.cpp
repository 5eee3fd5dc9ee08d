// SPDX-License-Identifier: Apache-2.0
// Attention's blocks of queries: how they are set up, how their states become those of softmax_mean once keys are folded, how
// queries that met hidden values are folded again, and how states merge.
#include <algorithm>
#include <cstring>
#include <limits>

#include "attention_tile.hpp"
#include "regroup/algorithms/attention_fold.hpp"
#include "regroup/host/dispatch.hpp"
#include "regroup/host/transpose.hpp"

namespace regroup::attention_fold {

static_assert(tiles::most_lanes == block_queries && 2 * tiles::group_lanes == packed_queries);

using tiles::whole;

template <class T>
block<T>::block(const problem<T>& p, index number, key_range range) : p_(p) {
  const index of_head = p.blocks_of_head();
  const index first = number % of_head * p.block_rows();
  key_head_ = number / of_head % p.key_heads;
  batch_ = number / of_head / p.key_heads;
  count_ = std::min(p.block_rows(), p.rows() - first);
  has_key_lanes_ = !p.packs() && count_ <= tiles::most_queries;
  lanes_ = has_key_lanes_ ? count_ : whole(count_, tiles::group_lanes);
  const tiles::query_lanes<Real>& kernel = tiles::current(false);  // only these kernels have panels
  panel_ = kernel.panel == 0 ? lanes_ : kernel.panel;
  by_rows_ = p.takes_matrices && p.rows() <= tiles::group_lanes;
  end_ = range.last = std::min(range.last, p.extents.lengths[static_cast<std::size_t>(batch_)]);
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
      has_key_lanes_(!whole.p_.packs()),
      by_rows_(whole.p_.takes_matrices),
      batch_(whole.batch_),
      key_head_(whole.key_head_),
      count_(1),
      lanes_(has_key_lanes_ ? 1 : tiles::group_lanes),
      panel_(lanes_),
      heads_(static_cast<std::size_t>(lanes_), whole.head(lane)),
      queries_(heads_.size(), whole.query(lane)),
      seen_(heads_.size(), whole.seen_[static_cast<std::size_t>(lane)]),
      all_(seen_[0]),
      common_(seen_[0]),
      end_(whole.end_) {}

template <class T>
key_range block<T>::leaves() const noexcept {
  if (all_.first >= all_.last) return {0, 0};
  return {all_.first / attention_leaf_keys, (all_.last - 1) / attention_leaf_keys + 1};
}

/// Takes memory and copies the queries, times scale or in pairs, as (queries, d), or as (d, lanes) in panels.
template <class T>
void block<T>::prepare() {
  const bool are_pairs = p_.takes_pairs || p_.packs();
  is_copied_ = p_.copies(has_key_lanes_);
  for (buffer<Real>* const x : {&m_, &l_, &frame_, &factor_, &q_scale_, &p_scale_}) x->resize(lanes_);
  const index d = p_.takes_matrices ? whole(p_.d, 32) / 2 : are_pairs ? (p_.d + 1) / 2 : p_.d;
  q_.resize(std::max(d, index{1}) * lanes_);  // not empty where d or dv is 0: it is pointed to
  if (is_careful_) {
    const index bytes = p_.dv * index{sizeof(Real)};
    nothing_.resize(bytes);
    std::fill(nothing_.data(), nothing_.data() + bytes, std::byte{});
  }
  if (p_.takes_integers) return round_queries();
  if (d == 0) return;
  buffer<Real> rows;  // (lanes, d)
  if (!has_key_lanes_) rows.resize(d * lanes_);
  Real* const to = has_key_lanes_ ? q_.data() : rows.data();
  host::dispatch([&, scale = p_.scale, stride = p_.q.stride(3)] {
    for (index lane = 0; lane < lanes_; ++lane) {
      const T* const from = &p_.q(batch_, head(lane), query(lane), index{0});
      Real* const row = to + lane * d;
      if (are_pairs) {
        std::fill(row + p_.d / 2, row + d, Real{});
        auto* const pairs = reinterpret_cast<std::byte*>(row);
        if (stride == 1) std::memcpy(pairs, from, static_cast<std::size_t>(p_.d) * sizeof(T));
        for (index c = 0; stride != 1 && c < p_.d; ++c) {
          std::memcpy(pairs + c * index{sizeof(T)}, from + c * stride, sizeof(T));
        }
      } else if (stride == 1) {
        for (index c = 0; c < d; ++c) row[c] = regroup::widen(from[c]) * scale;
      } else {
        for (index c = 0; c < d; ++c) row[c] = regroup::widen(from[c * stride]) * scale;
      }
    }
  });
  if (has_key_lanes_) return;
  for (index lane = 0; lane < lanes_; lane += panel_) {
    host::transpose(to + lane * d, d, q_.data() + lane * d, panel_, panel_, d);
  }
}

template <class T>
void block<T>::prepare(workspace<T>& w) const {
  w.s.resize(attention_tile_keys * std::max(lanes_, index{1}));
  if (!has_key_lanes_) w.o.resize(std::max(width_of_o(), index{1}) * lanes_);
  if (!has_key_lanes_ && p_.takes_pairs) w.pairs.resize(attention_tile_keys / 2 * p_.dv);
  if (!p_.packs()) return;
  w.pairs.resize(attention_tile_keys / 2 * lanes_);
  w.k_tiles.resize(w.tiles * attention_tile_keys * whole(p_.d, 32));
  w.v_tiles.resize(w.tiles * attention_tile_keys * whole(p_.dv, 32));
  if (!p_.takes_integers) return;
  w.k_scales.resize(w.tiles * attention_tile_keys);
  w.v_scales.resize(w.tiles * attention_tile_keys);
}

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

/// Brings the states into softmax_mean's form: only one zero (+0), NaN in every member if in one, and O = -0 without keys.
template <class T>
void block<T>::finish(const fragment<Real>& f) {
  host::dispatch([&, n = p_.dv, count = count_] {
    const auto is_finite = [](Real* o, index size) {
      int infinite = 0;
      for (index i = 0; i < size; ++i) {
        infinite |= o[i] - o[i] == 0 ? 0 : 1;
        o[i] += Real{};
      }
      return infinite == 0;
    };
    const bool all_finite = is_finite(f.o(), count * n);
    for (index q = 0; q < count; ++q) {
      const Real l = l_.data()[q], m = l == l ? m_.data()[q] + Real{} : l;
      f.l()[q] = l;
      f.m()[q] = m;
      Real* const o = f.o() + q * n;
      if (m == Real{hidden}) std::fill_n(o, n, -Real{});
      finite_[q] = all_finite || is_finite(o, n);
    }
  });
}

/// A hidden key's weight is 0, but 0 times an infinite or NaN value is NaN. Queries that may have met one are folded again
/// without hidden keys.
template <class T>
void block<T>::mend(index t, const fragment<Real>& f, typename fragment<Real>::memory& memory) {
  for (index q = 0; q < count_; ++q) {
    if (f.l()[q] != f.l()[q] || finite_[q]) continue;
    workspace<T> own;
    const fragment<Real> alone = block(*this, q).leaf(t, own, memory);
    std::copy_n(alone.o(), p_.dv, f.o() + q * p_.dv);
  }
}

template class block<float>;
template class block<double>;
template class block<float16>;
template class block<bfloat16>;
template void merge(index, index, float*, float*, float*, const float*, const float*, const float*);
template void merge(index, index, double*, double*, double*, const double*, const double*, const double*);

}  // namespace regroup::attention_fold

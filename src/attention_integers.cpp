// SPDX-License-Identifier: Apache-2.0
// Attention's fold over one leaf in fixed point: rows of Q, K and V as 16-bit integers, each with a scale. Those of K and
// V stay in the workspace for the next blocks of queries. Rows without a scale, because they hold numbers that are not finite
// or their size is too large or small, are scored and added one by one.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "attention_tile.hpp"
#include "regroup/algorithms/attention_fold.hpp"

namespace regroup::attention_fold {

template <class T>
void block<T>::round_queries() {
  if constexpr (sizeof(T) == 2) {
    const index stride = p_.q.stride(3), steps = (p_.d + 1) / 2;
    buffer<T> copies;
    if (stride != 1) copies.resize(lanes_ * p_.d);
    const T* rows[static_cast<std::size_t>(packed_queries)];
    for (index lane = 0; lane < lanes_; ++lane) {
      const T* const from = &p_.q(batch_, head(lane), query(lane), index{0});
      rows[lane] = stride == 1 ? from : copies.data() + lane * p_.d;
      for (index c = 0; stride != 1 && c < p_.d; ++c) copies.data()[lane * p_.d + c] = from[c * stride];
    }
    auto* const to = reinterpret_cast<std::int32_t*>(q_.data());
    for (index lane = 0; lane < lanes_; lane += tiles::group_lanes) {
      tiles::integers<T>()->round_queries(rows + lane, p_.d, to + lane * steps, q_scale_.data() + lane);
    }
    for (index lane = 0; lane < lanes_; ++lane) {
      Real& scale = q_scale_.data()[lane];
      scale *= p_.scale;
      if (!std::isfinite(scale)) scale = std::numeric_limits<Real>::quiet_NaN();
      has_queries_without_scale_ |= scale != scale;
    }
  }
}

/// Scores these keys for every query, and every key for queries without a scale, by the chain of fma of the plain order.
template <class T>
void block<T>::score_one_by_one(std::uint64_t keys) {
  const index q_step = p_.q.stride(3), k_step = p_.k.stride(3);
  for (index lane = 0; lane < lanes_; ++lane) {
    const bool all = q_scale_.data()[lane] != q_scale_.data()[lane];
    const T* const q = &p_.q(batch_, head(lane), query(lane), index{0});
    for (index j = 0; j < attention_tile_keys; ++j) {
      if (!all && (keys >> j & 1) == 0) continue;
      Real s = 0;
      for (index c = 0; c < p_.d; ++c)
        s = math::fma(regroup::widen(q[c * q_step]) * p_.scale, Real{regroup::widen(here().k[j][c * k_step])}, s);
      w_->s.data()[j * lanes_ + lane] = s;
    }
  }
}

/// o = o + w v for these keys. `scores`, (keys, lanes), were copied before they became weights.
template <class T>
void block<T>::add_values_one_by_one(std::uint64_t which, const Real* scores) {
  for (; which != 0; which &= which - 1) {
    const index j = std::countr_zero(which);
    for (index lane = 0; lane < lanes_; ++lane) {
      const Real s = scores[j * lanes_ + lane], m = m_.data()[lane];
      const bool sees = is_whole_ || (first_[lane] <= j && j < last_[lane]);
      if (!sees || s == Real{hidden}) continue;
      const Real w = s == m ? 1 : math::decay(s - m);
      for (index c = 0; c < p_.dv; ++c) {
        Real& o = w_->o.data()[c * lanes_ + lane];
        o = math::fma(w, Real{regroup::widen(here().v[j][c * p_.v.stride(3)])}, o);
      }
    }
  }
}

/// Folds the tiles from `first` on that begin before `end`. Whole tiles are packed, whatever part of them the block sees.
template <class T>
void block<T>::fold_by_integers([[maybe_unused]] index first, [[maybe_unused]] index end) {
  if constexpr (sizeof(T) == 2) {
    const tiles::integer_kernels<T>& kernels = *tiles::integers<T>();
    const bool has_function = p_.mask->has_function();
    bool grows[2];
    for (index last; first < end; first = last) {
      last = std::min(first + attention_tile_keys, end_);
      find_seen(first, last);
      const index slot = first / attention_tile_keys % w_->tiles, row = slot * attention_tile_keys;
      const bool is_packed = w_->first[slot] == first;
      rows<T> copies;
      const rows<T>& at = is_packed ? here() : rows_to_pack(first, last, end, copies);
      const tiles::integer_tile<T> t{
          .n = last - first,
          .d = p_.d,
          .dv = p_.dv,
          .lanes = lanes_,
          .k = at.k,
          .v = at.v,
          .next_k = !is_packed && last < end ? next().k : nullptr,
          .next_v = next().v,
          .k_pairs = reinterpret_cast<std::int32_t*>(w_->k_tiles.data() + row * tiles::whole(p_.d, 32)),
          .v_pairs = reinterpret_cast<std::int32_t*>(w_->v_tiles.data() + row * tiles::whole(p_.dv, 32)),
          .k_scale = w_->k_scales.data() + row,
          .v_scale = w_->v_scales.data() + row,
          .q = reinterpret_cast<const std::int32_t*>(q_.data()),
          .q_scale = q_scale_.data(),
          .s = w_->s.data(),
          .p = reinterpret_cast<std::int32_t*>(w_->pairs.data()),
          .p_scale = p_scale_.data(),
          .o = w_->o.data(),
          .m = m_.data(),
          .l = l_.data(),
          .factor = factor_.data(),
          .grows = grows,
          .is_whole = is_whole_,
          .first = first_,
          .last = last_,
          .group_first = group_first_,
          .group_last = group_last_};
      if (!is_packed) {
        const auto [keys, values] = kernels.pack(t);
        w_->keys_without_scale[slot] = keys;
        w_->values_without_scale[slot] = values;
        w_->first[slot] = first;
      }
      const std::uint64_t keys = w_->keys_without_scale[slot], values = w_->values_without_scale[slot];
      const bool is_plain = keys == 0 && values == 0 && !has_queries_without_scale_;
      if (!is_plain) find_rows(first, last, here());
      if (!is_plain || has_function) std::fill(t.s, t.s + attention_tile_keys * lanes_, Real{});
      kernels.scores(t);
      if (keys != 0 || has_queries_without_scale_) score_one_by_one(keys);
      if (has_function) mask(first, last, t.s);
      if (values != 0) {
        scores_.resize(attention_tile_keys * lanes_);
        std::copy(t.s, t.s + attention_tile_keys * lanes_, scores_.data());
      }
      kernels.weights(t);
      kernels.values(t);
      if (values != 0) add_values_one_by_one(values, scores_.data());
    }
  }
}

template void block<float>::fold_by_integers(index, index);
template void block<double>::fold_by_integers(index, index);
template void block<float16>::fold_by_integers(index, index);
template void block<bfloat16>::fold_by_integers(index, index);
template void block<float>::round_queries();
template void block<double>::round_queries();
template void block<float16>::round_queries();
template void block<bfloat16>::round_queries();

}  // namespace regroup::attention_fold

// SPDX-License-Identifier: Apache-2.0
#include "regroup/algorithms/attention_fold.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "attention_tile.hpp"
#include "regroup/host/dispatch.hpp"
#include "regroup/host/halves.hpp"
#include "regroup/host/transpose.hpp"

namespace regroup::attention_fold {

static_assert(tiles::tile_keys == attention_tile_keys);

template <class T>
index block<T>::tile_end(index first) const {
  return std::min((first / attention_tile_keys + 1) * attention_tile_keys, all_.last);
}

/// Finds the rows of the keys [first, last). The last row is repeated up to a whole tile.
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
      plane = p_.keys.table[static_cast<std::size_t>(batch_ * p_.keys.entries + j / page_size)];
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

/// Makes the tile that begins at `first` the current one. Its rows may have been found already.
template <class T>
void block<T>::turn_to(index first, index last) {
  if (next().first == first) {
    is_turned_ = !is_turned_;
  } else {
    find_rows(first, last, here());
  }
}

namespace {

/// The width of a copied row.
constexpr index copied_width(index width) { return width + width % 2; }

/// Where n consecutive rows begin. The last is repeated up to a whole tile.
template <class E>
void place_rows(const E* first, index width, index n, const E** rows) {
  for (index j = 0; j < attention_tile_keys; ++j) rows[j] = first + std::min(j, n - 1) * copied_width(width);
}

}  // namespace

/// Copies rows as elements of E, padded with a zero to an even width. Where elements of consecutive rows are adjacent rather
/// than those of one row, as in keys that are kept transposed, they are transposed 64 columns at a time.
template <class T>
template <class E>
void block<T>::copy_rows(const view<const T>& x, const T* const* from, index n, E* to) const {
  const index width = x.extent(3), padded = copied_width(width);
  const index stride = x.stride(3);
  const auto copy = [](const auto& element, E* row_to, index count) {
    for (index c = 0; c < count; ++c) {
      if constexpr (std::same_as<E, T>) {
        row_to[c] = element(c);
      } else {
        row_to[c] = regroup::widen(element(c));
      }
    }
  };
  const auto copy_beside = [copy](const T* row, E* row_to, index count) {
    if constexpr (std::same_as<T, float16> && std::same_as<E, float>) {
      host::widen_all(row, row_to, count);
    } else {
      copy([row](index c) { return row[c]; }, row_to, count);
    }
  };
  const auto transpose_rows = [&](const T* first, E* rows_to, index count) {
    constexpr index some = 64;
    alignas(64) std::array<T, static_cast<std::size_t>(attention_tile_keys * some)> transposed;
    for (index c = 0; c < width; c += some) {
      const index wide = std::min(some, width - c);
      host::transpose(first + c * stride, stride, transposed.data(), some, wide, count);
      for (index i = 0; i < count; ++i) copy_beside(transposed.data() + i * some, rows_to + i * padded + c, wide);
    }
  };
  const auto beside = [&](index j) {
    index run = 1;
    while (j + run < n && from[j + run] == from[j] + run) ++run;
    return run;
  };
  host::dispatch([&] {
    for (index j = 0, run = 1; j < n; j += run) {
      run = stride == 1 ? 1 : beside(j);
      if (stride == 1) {
        copy_beside(from[j], to + j * padded, width);
      } else if (run > 1) {
        transpose_rows(from[j], to + j * padded, run);
      } else {
        copy([row = from[j], stride](index c) { return row[c * stride]; }, to + j * padded, width);
      }
    }
    for (index j = 0; padded > width && j < n; ++j) to[j * padded + width] = E{};
  });
}

/// The rows of the keys [first, last) of a tile that is to be packed, copied where they must be. Also finds the rows of the
/// next tile, if it begins before `end`.
template <class T>
auto block<T>::rows_to_pack(index first, index last, index end, rows<T>& copies) -> rows<T>& {
  turn_to(first, last);
  if (last < end) find_rows(last, std::min(last + attention_tile_keys, end_), next());
  if (!is_copied_) return here();
  k_copy_.resize(attention_tile_keys * copied_width(p_.d));
  v_copy_.resize(attention_tile_keys * copied_width(p_.dv));
  copy_rows(p_.k, here().k, last - first, k_copy_.data());
  copy_rows(p_.v, here().v, last - first, v_copy_.data());
  place_rows(k_copy_.data(), p_.d, last - first, copies.k);
  place_rows(v_copy_.data(), p_.dv, last - first, copies.v);
  return copies;
}

/// Finds which keys of the tile [first, last) each lane sees, counted from the tile's first key.
template <class T>
void block<T>::find_seen(index first, index last) {
  is_whole_ = common_.first <= first && last <= common_.last;
  std::fill(group_first_, group_first_ + 4, static_cast<std::int32_t>(is_whole_ ? 0 : last - first));
  std::fill(group_last_, group_last_ + 4, static_cast<std::int32_t>(is_whole_ ? last - first : 0));
  for (index lane = 0; lane < lanes_ && (has_key_lanes_ || is_careful_ || !is_whole_); ++lane) {
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

/// Applies the mask to the scores, which it is given as (keys, lanes), one panel at a time.
template <class T>
void block<T>::mask(index first, index last, Real* s) {
  const index n = last - first;
  if (!has_key_lanes_) {
    for (index lane = 0; lane < lanes_; lane += panel_) {
      p_.mask->apply(score_tile<Real>{s + lane * attention_tile_keys, n, panel_, first, batch_, heads_.data() + lane,
                                      queries_.data() + lane});
    }
    return;
  }
  Real transposed[static_cast<std::size_t>(attention_tile_keys * tiles::most_queries)];
  host::transpose(s, attention_tile_keys, transposed, lanes_, lanes_, n);
  p_.mask->apply(score_tile<Real>{transposed, n, lanes_, first, batch_, heads_.data(), queries_.data()});
  host::transpose(transposed, lanes_, s, attention_tile_keys, n, lanes_);
}

/// Folds the tile whose rows are `at`: scores, weights, values.
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
                         .next_v = nullptr,
                         .q = q_.data(),
                         .scale = p_.scale,
                         .pairs = w_->pairs.data(),
                         .k_step = 0,
                         .k_tiles = nullptr,
                         .v_tiles = nullptr,
                         .s = w_->s.data(),
                         .o = o,
                         .m = m_.data(),
                         .l = l_.data(),
                         .by_rows = false,
                         .frame = nullptr,
                         .factor = factor_.data(),
                         .grows = grows,
                         .scales_first = false,
                         .is_whole = is_whole_,
                         .first = first_,
                         .last = last_,
                         .group_first = group_first_,
                         .group_last = group_last_};
  if (p_.mask->has_function() && !is_whole_) std::fill(t.s, t.s + attention_tile_keys * lanes_, Real{});
  kernel->scores(t);
  if (p_.mask->has_function()) mask(first, last, t.s);
  if (is_careful_) leave_out_hidden(t.s, 1, at);
  kernel->weights(t);
  kernel->values(t);
}

/// Replaces the values of keys that the only query does not see by zeros. A key is not seen if it is outside the query's range
/// or its score is -inf; scores are `step` apart.
template <class T>
template <class E>
void block<T>::leave_out_hidden(const Real* s, index step, rows<E>& at) const {
  for (index j = 0; j < attention_tile_keys; ++j) {
    const bool hides = j < first_[0] || j >= last_[0] || s[j * step] == Real{hidden};
    if (hides) at.v[j] = reinterpret_cast<const E*>(nothing_.data());
  }
}

/// Folds keys through copies of their rows. Whole tiles are copied, whatever part of them the block sees.
template <class T>
template <class E>
void block<T>::fold_copies(index first, index last, buffer<E>& k_tiles, buffer<E>& v_tiles, Real* o) {
  const index tile = first / attention_tile_keys * attention_tile_keys, slot = tile / attention_tile_keys % w_->tiles;
  const index k_width = copied_width(p_.d), v_width = copied_width(p_.dv);
  k_tiles.resize(w_->tiles * attention_tile_keys * k_width);
  v_tiles.resize(w_->tiles * attention_tile_keys * v_width);
  E* const k = k_tiles.data() + slot * attention_tile_keys * k_width;
  E* const v = v_tiles.data() + slot * attention_tile_keys * v_width;
  if (w_->first[slot] != tile) {
    const index n = std::min(attention_tile_keys, end_ - tile);
    find_rows(tile, tile + n, here());
    copy_rows(p_.k, here().k, n, k);
    copy_rows(p_.v, here().v, n, v);
    w_->first[slot] = tile;
  }
  rows<E> at;
  place_rows(k + (first - tile) * k_width, p_.d, last - first, at.k);
  place_rows(v + (first - tile) * v_width, p_.dv, last - first, at.v);
  fold_rows(first, last, at, at, o);
}

/// Whether a head's keys and values exceed the second cache, so that every block of queries reads them from further away.
template <class T>
bool block<T>::passes_second_cache() const {
  constexpr index bytes = index{1} << 20;
  return (all_.last - all_.first) * p_.row_length() * index{sizeof(T)} > bytes;
}

/// Folds keys [first, last) of one tile, which some lane may see, into m_, l_ and o.
template <class T>
void block<T>::fold_tile(index first, index last, Real* o) {
  find_seen(first, last);
  if (is_copied_ && p_.takes_pairs) return fold_copies(first, last, w_->k_tiles, w_->v_tiles, o);
  if (is_copied_) return fold_copies(first, last, w_->k_rows, w_->v_rows, o);
  turn_to(first, last);
  const bool has_next = last < all_.last && (has_key_lanes_ || passes_second_cache());
  if (has_next) find_rows(last, tile_end(last), next());
  fold_rows(first, last, here(), has_next ? next() : here(), o);
}

template <class T>
auto block<T>::leaf(index t, workspace<T>& w, typename fragment<Real>::memory& memory) -> fragment<Real> {
  if (m_.empty()) prepare();
  prepare(w);
  w_ = &w;
  fragment<Real> f(count_, p_.dv, memory);
  fold_leaf(t, f);
  finish(f);
  if (!is_careful_ && !p_.takes_integers) mend(t, f, memory);  // integers skip hidden values themselves
  return f;
}

template <class T>
void block<T>::fold_leaf(index t, const fragment<Real>& f) {
  Real* const o = has_key_lanes_ ? f.o() : w_->o.data();
  std::fill(o, o + lanes_ * width_of_o(), Real{});
  std::fill(m_.data(), m_.data() + lanes_, Real{hidden});
  std::fill(l_.data(), l_.data() + lanes_, Real{});
  const index together = p_.packs() ? attention_tile_keys : p_.takes_pairs ? 2 : 1;  // from multiples of it
  const index first = std::max(t * attention_leaf_keys, all_.first / together * together);
  const index end = std::min(all_.last, (t + 1) * attention_leaf_keys);
  if (p_.takes_matrices) {
    fold_by_matrices(first, end);
  } else if (p_.takes_integers) {
    fold_by_integers(first, end);
  } else {
    for (index j = first; j < end; j = tile_end(j)) fold_tile(j, tile_end(j), o);
  }
  if (by_rows_) {
    const index width = tiles::whole(p_.dv, 32);
    for (index q = 0; q < count_; ++q) std::copy_n(o + q * width, p_.dv, f.o() + q * p_.dv);
  } else if (!has_key_lanes_) {
    for (index lane = 0; lane < count_; lane += panel_) {
      host::transpose(o + lane * p_.dv, panel_, f.o() + lane * p_.dv, p_.dv, p_.dv, std::min(panel_, count_ - lane));
    }
  }
}

template class block<float>;
template class block<double>;
template class block<float16>;
template class block<bfloat16>;
// Used by attention_matrices.cpp.
template void block<bfloat16>::leave_out_hidden(const float*, index, rows<bfloat16>&) const;

}  // namespace regroup::attention_fold

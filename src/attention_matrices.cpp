// SPDX-License-Identifier: Apache-2.0
// Attention's fold over one leaf by matrices (AMX): the products for a tile's scores are taken together with those for the
// values of the tile before. Matrices of K and V stay in the workspace for the next blocks of queries.
#include <algorithm>

#include "attention_tile.hpp"
#include "regroup/algorithms/attention_fold.hpp"

namespace regroup::attention_fold {

namespace {

/// Holds the registers for matrices while it exists.
struct matrices_in_use {
  const tiles::matrix_kernels& kernels;
  explicit matrices_in_use(const tiles::matrix_kernels& k) : kernels(k) { kernels.enter(); }
  matrices_in_use(const matrices_in_use&) = delete;
  matrices_in_use& operator=(const matrices_in_use&) = delete;
  ~matrices_in_use() { kernels.leave(); }
};

}  // namespace

/// Folds the tiles from `first` on that begin before `end`. Whole tiles are packed, whatever part of them the block sees.
template <class T>
void block<T>::fold_by_matrices([[maybe_unused]] index first, [[maybe_unused]] index end) {
  if constexpr (std::same_as<T, bfloat16>) {
    const tiles::matrix_kernels& kernels = *tiles::current(true).matrices;
    std::fill(frame_.data(), frame_.data() + lanes_, Real{hidden});
    const matrices_in_use in_use(kernels);
    const bool are_matrices = by_rows_ && !is_copied_ && p_.d % 32 == 0 && (!p_.keys.is_paged || p_.page_size % 16 == 0);
    const index k_step = are_matrices ? p_.k.stride(2) : 0;
    tiles::tile<T> both[2];
    std::int32_t group_first[2][2], group_last[2][2];
    bool grows[2];
    const tiles::tile<T>* previous = nullptr;
    Real* unsaved = nullptr;
    for (index last; first < end; first = last) {
      last = std::min(first + attention_tile_keys, end_);
      find_seen(first, last);
      const index slot = first / attention_tile_keys % w_->tiles, parity = first / attention_tile_keys % 2;
      std::copy(group_first_, group_first_ + 2, group_first[parity]);
      std::copy(group_last_, group_last_ + 2, group_last[parity]);
      const bool is_packed = w_->first[slot] == first;
      rows<T> copies;
      rows<T>* const at = is_packed ? &here() : &rows_to_pack(first, last, by_rows_ ? all_.last : end, copies);
      const bool fetches = !is_packed && last < (by_rows_ ? all_.last : end);
      tiles::tile<T>& t = both[parity];
      t = {.n = last - first,
           .d = p_.d,
           .dv = p_.dv,
           .queries = lanes_,
           .k = at->k,
           .v = at->v,
           .next_k = fetches ? next().k : nullptr,
           .next_v = fetches ? next().v : nullptr,
           .q = q_.data(),
           .scale = p_.scale,
           .pairs = w_->pairs.data(),
           .k_step = last - first == attention_tile_keys ? k_step : 0,
           .k_tiles = w_->k_tiles.data() + slot * attention_tile_keys * tiles::whole(p_.d, 32),
           .v_tiles = w_->v_tiles.data() + slot * attention_tile_keys * tiles::whole(p_.dv, 32),
           .s = w_->s.data(),
           .o = w_->o.data(),
           .m = m_.data(),
           .l = l_.data(),
           .by_rows = by_rows_,
           .frame = frame_.data(),
           .factor = factor_.data(),
           .grows = grows,
           .scales_first = p_.mask->has_function() || is_careful_,
           .is_whole = is_whole_,
           .first = first_,
           .last = last_,
           .group_first = group_first[parity],
           .group_last = group_last[parity]};
      if (!is_packed && t.k_step == 0) kernels.pack_keys(t);
      if (t.scales_first) std::fill(t.s, t.s + attention_tile_keys * lanes_, Real{});
      unsaved = kernels.multiply(&t, previous, unsaved);
      if (p_.mask->has_function()) {
        if (unsaved != nullptr) kernels.save(lanes_, unsaved);
        unsaved = nullptr;
        kernels.leave();  // a user's function may use the registers itself
        mask(first, last, t.s);
        kernels.enter();
      }
      if (is_careful_) leave_out_hidden(t.s, lanes_, *at);
      if (!is_packed && !by_rows_) kernels.pack_values(t);
      if (!is_careful_) w_->first[slot] = first;
      kernels.weights(t);
      if (by_rows_) {
        kernels.multiply(nullptr, &t, nullptr);
      } else {
        previous = &t;
      }
    }
    if (previous != nullptr) kernels.multiply(nullptr, previous, unsaved);
    kernels.settle(lanes_, p_.dv, m_.data(), frame_.data(), l_.data(), w_->o.data(), by_rows_);
  }
}

template void block<float>::fold_by_matrices(index, index);
template void block<double>::fold_by_matrices(index, index);
template void block<float16>::fold_by_matrices(index, index);
template void block<bfloat16>::fold_by_matrices(index, index);

}  // namespace regroup::attention_fold

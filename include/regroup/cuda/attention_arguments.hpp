// SPDX-License-Identifier: Apache-2.0
// The arguments of attention on a device: queries, keys and values in device memory, padded, ragged or paged, and options.
// Level: device.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>

#include "regroup/algorithms/attention_masks.hpp"
#include "regroup/cuda/view.hpp"

namespace regroup::cuda {

/// Queries in device memory: a device_view (..., H, Nq, d), or what `ragged` makes. The values of offsets are not checked:
/// tokens that they leave out are not touched, nor is anything outside the tokens.
template <class T>
struct attention_queries {
  device_view<const T> q;
  std::optional<device_view<const int>> offsets = {};
  index most = 0;
  template <class U>
    requires std::same_as<const U, const T>
  attention_queries(const device_view<U>& padded) : q(padded) {}  // NOLINT: implicit on purpose
  attention_queries(const device_view<const T>& tokens, const device_view<const int>& from, index most_queries)
      : q(tokens), offsets(from), most(most_queries) {}
};
template <class Q>
inline constexpr bool is_attention_queries = false;
template <class T>
inline constexpr bool is_attention_queries<attention_queries<T>> = true;
template <class Q>
concept queries_on_a_device = is_device_view<Q> || is_attention_queries<Q>;
template <class T, class Q>
attention_queries<T> queries_of(const Q& q) {
  static_assert(std::convertible_to<Q, attention_queries<T>>,
                "regroup: queries, keys and values have one element type");
  return q;
}
/// Queries q (tokens, H, d) of B requests, concatenated along the token axis: request b has the tokens [offsets[b], offsets[b
/// + 1]) (B + 1 contiguous `int`), at most `most_queries` of them, which sets the size of the grid. Further queries of a
/// longer request are ignored, and their results left unchanged.
template <class Q>
attention_queries<std::remove_const_t<Q>> ragged(const device_view<Q>& q, const device_view<const int>& offsets,
                                                 index most_queries) {
  return {q, offsets, most_queries};
}

/// Keys and values in device memory; made by `dense`, `ragged` and `paged`. Lengths, offsets and tables are of `int`. Their
/// values are not checked: lengths are clamped to [0, Nk] and offsets to [0, tokens], but a page must be one of the pool's.
template <class T>
struct attention_keys {
  device_view<const T> k, v;
  std::optional<device_view<const int>> lengths = {}, table = {}, offsets = {};
  index most = 0;  // keys of a request, where ragged
};
/// Keys k (..., Hkv, Nk, d) and values v (..., Hkv, Nk, dv) of the queries' rank, any strides.
template <class K, class V>
attention_keys<std::remove_const_t<K>> dense(const device_view<K>& k, const device_view<V>& v) {
  return {k, v};
}
/// The same where batch b has only lengths[b] keys (`int`).
template <class K, class V, class Length>
attention_keys<std::remove_const_t<K>> dense(const device_view<K>& k, const device_view<V>& v,
                                             const device_view<Length>& lengths) {
  return {k, v, lengths};
}
/// Keys k (tokens, Hkv, d) and values v (tokens, Hkv, dv) of the requests of ragged queries, with offsets of their own; keys
/// of a request past `most_keys` are ignored.
template <class K, class V>
attention_keys<std::remove_const_t<K>> ragged(const device_view<K>& k, const device_view<V>& v,
                                              const device_view<const int>& offsets, index most_keys) {
  return {k, v, std::nullopt, std::nullopt, offsets, most_keys};
}
/// Pools of pages (P, Hkv, page size, d) and (P, Hkv, page size, dv), and a table (B, pages) of int.
template <class K, class V, class Page>
attention_keys<std::remove_const_t<K>> paged(const device_view<K>& k_pool, const device_view<V>& v_pool,
                                             const device_view<Page>& table) {
  return {k_pool, v_pool, std::nullopt, table};
}
template <class K, class V, class Page, class Length>
attention_keys<std::remove_const_t<K>> paged(const device_view<K>& k_pool, const device_view<V>& v_pool,
                                             const device_view<Page>& table, const device_view<Length>& lengths) {
  return {k_pool, v_pool, lengths, table};
}

/// attention_options of a device: `cuda::attention_options{.mask = causal{}, .logsumexp = lse}`. The mask is part of the
/// type, so that a kernel inlines it: causal, window, softcap, cuda::alibi, cuda::additive, cuda::boolean, a function object
/// of the user's that is trivially copyable and constexpr, or several by `&`.
template <class Mask = no_mask>
struct attention_options {
  std::optional<double> scale = {};                        ///< multiplies the scores; 1 / sqrt(d) by default
  Mask mask = {};
  std::optional<device_view<float>> logsumexp = {};        ///< (..., H, Nq) or (tokens, H), natural logarithm
  std::optional<device_view<const float>> sinks = {};      ///< one extra logit a head, in the denominator only
};

}  // namespace regroup::cuda

// SPDX-License-Identifier: Apache-2.0
// Where keys and values live, apart from what is scored: side by side (`dense`), or scattered over the pages of a pool
// (`paged`: PagedAttention, Kwon et al. 2023). Both hand out tiles of keys; the bits of a result do not depend on which.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>
#include <vector>

#include "regroup/view.hpp"

namespace regroup {

namespace attention_keys {

/// The integers of a view of rank 1 or 2, in C order.
template <class View>
std::vector<index> integers(const View& numbers, int rank, const char* what) {
  const auto v = view(numbers);
  using element = std::remove_const_t<typename decltype(v)::element_type>;
  static_assert(std::integral<element> && !std::same_as<element, bool>,
                "regroup: page tables and lengths are integers");
  if (v.rank() != rank) {
    throw_shape(std::string(what) + " has rank " + std::to_string(rank) + "; got shape " + to_string(v.extents()));
  }
  std::vector<index> result;
  result.reserve(static_cast<std::size_t>(v.size()));
  for (index i = 0; i < v.size(); ++i) {
    result.push_back(static_cast<index>(v.data()[offset_of(i, v.extents(), v.strides())]));
  }
  return result;
}

/// The element type of whatever makes a view.
template <class View>
using element_of_view = std::remove_const_t<typename decltype(view(std::declval<const View&>()))::element_type>;

/// Queries, which have the keys' element type.
template <class T, class Q>
view<const T> queries(const Q& q) {
  static_assert(std::same_as<element_of_view<Q>, T>, "regroup: queries, keys and values have one element type");
  return view(q);
}

}  // namespace attention_keys

/// Keys and values as `attention` reads them. Made by `dense` or `paged`, which say what the members mean.
template <class T>
struct attention_source {
  using element = T;
  view<const T> k;
  view<const T> v;
  bool is_paged = false;
  std::vector<index> table = {};  ///< (B, pages), where paged
  index batches = 0, pages = 0;
  std::optional<std::vector<index>> lengths = {};  ///< one a batch
};

/// Keys k (..., Hkv, Nk, d) and values v (..., Hkv, Nk, dv) of the queries' rank, with any strides.
template <class K, class V>
attention_source<attention_keys::element_of_view<K>> dense(const K& k, const V& v) {
  static_assert(std::same_as<attention_keys::element_of_view<K>, attention_keys::element_of_view<V>>,
                "regroup: keys and values have one element type");
  return {.k = view(k), .v = view(v)};
}
/// The same where batch b has `lengths[b]` keys only (integers, shape (B,)): what lies past them is never read.
template <class K, class V, class Lengths>
auto dense(const K& k, const V& v, const Lengths& lengths) {
  auto keys = dense(k, v);
  keys.lengths = attention_keys::integers(lengths, 1, "the key lengths' array");
  return keys;
}

/// Keys and values in pools of pages, k_pool (P, Hkv, page size, d) and v_pool (P, Hkv, page size, dv), with any strides:
/// the keys of batch b from p times the page size on are page `page_table(b, p)` (integers, shape (B, pages)). Then
/// Nk = pages x page size, for masks too.
template <class K, class V, class Table>
auto paged(const K& k_pool, const V& v_pool, const Table& page_table) {
  auto keys = dense(k_pool, v_pool);
  keys.is_paged = true;
  keys.table = attention_keys::integers(page_table, 2, "a page table (batches, pages)");
  const auto table = view(page_table);
  keys.batches = table.extent(0);
  keys.pages = table.extent(1);
  return keys;
}
/// The same where batch b has `lengths[b]` keys only; entries of pages wholly past them are ignored, whatever they hold.
template <class K, class V, class Table, class Lengths>
auto paged(const K& k_pool, const V& v_pool, const Table& page_table, const Lengths& lengths) {
  auto keys = paged(k_pool, v_pool, page_table);
  keys.lengths = attention_keys::integers(lengths, 1, "the key lengths' array");
  return keys;
}

}  // namespace regroup

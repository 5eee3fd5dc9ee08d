// SPDX-License-Identifier: Apache-2.0
// Where keys and values live: in one array (`dense`), concatenated along the token axis (`ragged`), or scattered over the
// pages of a pool (`paged`: PagedAttention, Kwon et al. 2023). The bits of a result do not depend on which. Lengths, offsets
// and page tables are arrays of any integer type but bool, and are copied.
#pragma once

#include <algorithm>
#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>
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

/// The queries as a view; they must have the keys' element type.
template <class T, class Q>
view<const T> queries(const Q& q) {
  static_assert(std::same_as<element_of_view<Q>, T>, "regroup: queries, keys and values have one element type");
  return view(q);
}

/// Throws offsets_error unless the offsets of requests begin at 0, never decrease and end at `total`, the number of tokens.
inline void check_offsets(const std::vector<index>& offsets, index total, const char* what) {
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != total || !std::ranges::is_sorted(offsets)) {
    throw_offsets(std::string("the offsets of ragged ") + what + " go from 0 up to the number of tokens, " +
                  std::to_string(total) + ", and never down");
  }
}
template <class T>
void check_ragged(const view<const T>& x, const char* what) {
  if (x.rank() != 3) {
    throw_shape(std::string("ragged ") + what + " have shape (tokens, heads, d); got " + to_string(x.extents()));
  }
}
/// Request b of a ragged array (tokens, heads, d), as (1, heads, its tokens, d).
template <class T>
view<T> request(const view<T>& x, const std::vector<index>& offsets, std::size_t b) {
  return {x.data() + offsets[b] * x.stride(0),
          {1, x.extent(1), offsets[b + 1] - offsets[b], x.extent(2)},
          {0, x.stride(1), x.stride(0), x.stride(2)}};
}

}  // namespace attention_keys

/// Keys and values as `attention` reads them. Made by `dense` or `paged`; `attention` checks what they hold.
template <class T>
struct attention_source {
  static_assert(std::same_as<widened<T>, float> || std::same_as<T, double>,
                "regroup: attention takes float16, bfloat16, float or double");
  using element = T;
  view<const T> k;
  view<const T> v;
  bool is_paged = false;
  std::vector<index> table = {};  ///< (B, entries), where paged
  index batches = 0, pages = 0;
  index entries = 0;  ///< pages of each batch that the table holds: of `pages`, the first that lengths need
  std::optional<std::vector<index>> lengths = {};  ///< one a batch
};

namespace attention_keys {
/// Keys in pages of a pool, by the first `entries` pages of each batch.
template <class T, class Page>
attention_source<T> paged(attention_source<T> keys, const view<Page>& table, index entries) {
  const bool is_table = table.rank() == 2;  // `integers` refuses any other
  keys.table = integers(is_table ? view<Page>(table.data(), {table.extent(0), entries}, table.strides()) : table, 2,
                        "a page table (batches, pages)");
  keys.is_paged = true;
  keys.batches = table.extent(0);
  keys.pages = table.extent(1);
  keys.entries = entries;
  return keys;
}
}  // namespace attention_keys

/// Keys k (..., Hkv, Nk, d) and values v (..., Hkv, Nk, dv) of the queries' rank, with any strides. `attention` checks shapes.
template <class K, class V>
attention_source<element_of_view<K>> dense(const K& k, const V& v) {
  static_assert(std::same_as<element_of_view<K>, element_of_view<V>>,
                "regroup: keys and values have one element type");
  return {.k = view(k), .v = view(v)};
}
/// The same where batch b has only `lengths[b]` keys (integers, shape (B,)): what lies past them is never read. Throws
/// shape_error unless lengths have rank 1; `attention` throws shape_error for another number of them, and argument_error for
/// one that is not from 0 to Nk.
template <class K, class V, class Lengths>
auto dense(const K& k, const V& v, const Lengths& lengths) {
  auto keys = dense(k, v);
  keys.lengths = attention_keys::integers(lengths, 1, "the key lengths' array");
  return keys;
}

/// Keys and values in pools of pages, k_pool (P, Hkv, page size, d) and v_pool (P, Hkv, page size, dv), with any strides:
/// page p of batch b is page `page_table(b, p)` of the pools (integers, shape (B, pages)). Nk = pages x page size, for masks
/// too. Throws shape_error unless the table has rank 2; `attention` throws shape_error for another number of rows, and
/// argument_error for a page outside the pool.
template <class K, class V, class Table>
auto paged(const K& k_pool, const V& v_pool, const Table& page_table) {
  const auto table = view(page_table);
  return attention_keys::paged(dense(k_pool, v_pool), table, table.rank() == 2 ? table.extent(1) : 0);
}
/// The same where batch b has only `lengths[b]` keys, as in `dense`; entries for pages wholly past them are ignored.
template <class K, class V, class Table, class Lengths>
auto paged(const K& k_pool, const V& v_pool, const Table& page_table, const Lengths& lengths) {
  auto keys = dense(k_pool, v_pool, lengths);
  const auto table = view(page_table);
  const index page_size = keys.k.rank() == 4 ? std::max<index>(keys.k.extent(2), 1) : 1;
  const index longest = keys.lengths->empty() ? 0 : std::max<index>(*std::ranges::max_element(*keys.lengths), 0);
  const index needed = longest / page_size + (longest % page_size > 0 ? 1 : 0);
  return attention_keys::paged(std::move(keys), table, table.rank() == 2 ? std::min(needed, table.extent(1)) : 0);
}

/// Queries of several requests, concatenated along the token axis.
template <class T>
struct ragged_queries {
  view<const T> q;
  std::vector<index> offsets;
};
/// Keys and values of several requests, concatenated along the token axis.
template <class T>
struct ragged_source {
  using element = T;
  view<const T> k;
  view<const T> v;
  std::vector<index> offsets;
};

/// Queries q (tokens, H, d) of B requests: request b has the tokens [offsets[b], offsets[b + 1]) (integers, shape (B + 1,),
/// from 0 to the number of tokens). Throws shape_error for other ranks, and offsets_error.
template <class Q, class Offsets>
ragged_queries<element_of_view<Q>> ragged(const Q& q, const Offsets& offsets) {
  ragged_queries<element_of_view<Q>> result{view(q), attention_keys::integers(offsets, 1, "an offsets array")};
  attention_keys::check_ragged(result.q, "queries");
  attention_keys::check_offsets(result.offsets, result.q.extent(0), "queries");
  return result;
}
/// Keys k (tokens, Hkv, d) and values v (tokens, Hkv, dv) of B requests, with offsets of their own. Throws as for queries.
template <class K, class V, class Offsets>
ragged_source<element_of_view<K>> ragged(const K& k, const V& v, const Offsets& offsets) {
  static_assert(std::same_as<element_of_view<K>, element_of_view<V>>,
                "regroup: keys and values have one element type");
  ragged_source<element_of_view<K>> result{view(k), view(v),
                                            attention_keys::integers(offsets, 1, "an offsets array")};
  attention_keys::check_ragged(result.k, "keys");
  attention_keys::check_ragged(result.v, "values");
  attention_keys::check_offsets(result.offsets, result.k.extent(0), "keys");
  attention_keys::check_offsets(result.offsets, result.v.extent(0), "values");
  return result;
}

/// x (heads, keys, d) as (batches, heads, keys, d), with the same memory for every batch: a prefix that requests share.
/// Throws shape_error unless x has rank 3.
template <class X>
view<const element_of_view<X>> shared(const X& x, index batches) {
  const view<const element_of_view<X>> v = view(x);
  if (v.rank() != 3) throw_shape("what batches share has shape (heads, keys, d); got " + to_string(v.extents()));
  return {v.data(), {batches, v.extent(0), v.extent(1), v.extent(2)}, {0, v.stride(0), v.stride(1), v.stride(2)}};
}

}  // namespace regroup

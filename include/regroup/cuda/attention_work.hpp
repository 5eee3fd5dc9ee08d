// SPDX-License-Identifier: Apache-2.0
// A checked call of attention on a device: the checks of its arrays (the host's own, with its messages), what kernels get to
// know of it, and where results go. Plain host code. Level: device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "regroup/algorithms/attention.hpp"
#include "regroup/cuda/attention_arguments.hpp"
#include "regroup/cuda/attention_call.hpp"
#include "regroup/cuda/mma.hpp"

namespace regroup::cuda {

template <class T>
view<T> as_host_view(const device_view<T>& x) {  // to be looked at from outside, not into
  return {x.data(), x.extents(), x.strides()};
}
template <class T>
attention_array<T> as_array(const view<T>& x) {
  attention_array<T> a{x.data(), {}};
  for (int axis = 0; axis < x.rank(); ++axis) a.strides[4 - x.rank() + axis] = x.stride(axis);
  return a;
}
/// Whether every row of `width` elements is whole pieces of 16 bytes, each aligned, wherever in the array it stands.
template <class T>
bool has_aligned_rows(const attention_array<T>& x, index width) {
  constexpr index piece = 16 / sizeof(T);
  const auto whole = [](index n) { return n % piece == 0; };
  return reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && x.strides[3] == 1 && whole(width) &&
         std::all_of(x.strides, x.strides + 3, whole);
}
/// (batch, head, position) with an axis of nothing at its end.
template <class T>
attention_array<T> as_numbers(const view<T>& x) {
  shape extents = x.extents(), strides = x.strides();
  extents.push_back(1);
  strides.push_back(1);
  return as_array(view<T>(x.data(), extents, strides));
}
inline void require_sinks(const device_view<const float>& sinks, index heads) {
  if (!(sinks.extents() == shape{heads})) {
    throw_shape("sinks have one number a head, here " + std::to_string(heads) + "; got " + to_string(sinks.extents()));
  }
}

template <class Mask>
constexpr void require_device_rule() {
  constexpr bool fits = [] {
    if constexpr (requires(const Mask& m, const device_extents& e) { mask_rules::bound(m, e); }) {
      using rule = decltype(mask_rules::bound(std::declval<const Mask&>(), std::declval<const device_extents&>()));
      return travels<rule>;
    }
    return false;
  }();
  static_assert(fits,
                "regroup: a kernel inlines its mask and copies it as bytes: causal, window, softcap, cuda::alibi, "
                "cuda::additive, cuda::boolean, or a function object of your own; not an attention_mask, and nothing that "
                "owns or points to the host's arrays");
}

/// Puts a query's output and logsumexp where the caller wants them, each merged once with its head's sink.
template <class T, class Out>
struct put_attention {
  attention_call<T> call;
  attention_array<Out> out;
  attention_array<float> logsumexp;  // with an axis of nothing at its end; null where nobody wants it
  const float* sinks;
  index sinks_stride;

  template <class Shape>
  constexpr void operator()(Shape, const attention_place& at, int row, int lane, typename Shape::state s) const {
    const typename Shape::monoid m;
    const index head = call.head_of(at, row), query = call.queries.first(at.batch) + call.query_of(at, row);
    if (sinks != nullptr && sinks[head * sinks_stride] != -math::detail::infinity<float>) {
      s = m(s, {sinks[head * sinks_stride], 1, m.identity().o});
    }
    const auto plain = [](float x) { return x == x ? x : math::detail::not_a_number<float>; };
    const auto o = m.lower(s);
    Out* const to = out.row(at.batch, head, query);
    constexpr int own = Shape::columns / Shape::row_lanes;
    constexpr bool has_pieces = Shape::column_of(0, own - 1) == own - 1 && own * sizeof(Out) % 16 == 0;
    constexpr int together = has_pieces ? static_cast<int>(16 / sizeof(Out)) : Shape::column_of(0, 1) == 1 ? 2 : 1;
    struct alignas(together * sizeof(Out)) neighbours {
      Out of[static_cast<std::size_t>(together)];
    };
    const bool are_side_by_side = out.strides[3] == 1 && reinterpret_cast<std::uintptr_t>(to) % sizeof(neighbours) == 0;
    unrolled<own / together>([&](int k) {
      neighbours values;
      unrolled<together>([&](int i) { values.of[i] = static_cast<Out>(plain(o.values[together * k + i])); });
      const int column = at.first_column + Shape::column_of(lane, together * k);
      if (are_side_by_side && column + together <= call.dv) {
        *reinterpret_cast<neighbours*>(to + column) = values;
        return;
      }
      unrolled<together>([&](int i) {
        const int one = at.first_column + Shape::column_of(lane, together * k + i);
        if (one < call.dv) to[one * out.strides[3]] = values.of[i];
      });
    });
    if (logsumexp.data != nullptr && lane == 0 && at.first_column == 0) {
      const log_sum_exp<float>::state sum{s.m, s.l};
      *logsumexp.row(at.batch, head, query) = plain(log_sum_exp<float>{}.lower(sum));
    }
  }
};

/// A call whose arguments are checked: what kernels are told, its bound rule, and where results go.
template <class T, class Rule, class Out>
struct attention_work {
  attention_call<T> call;
  Rule rule;
  put_attention<T, Out> put;
  index leaves;  // of the longest batch that there may be
};

/// A call without its rule. Throws shape_error, argument_error and overlap_error as the host's attention does.
template <class T, class Out>
struct checked_attention {
  attention_work<T, no_mask, Out> work;
  device_extents extents;
};
/// Ragged tokens (tokens, heads, d) as (B, heads, most, d), the same memory for every batch: for its extents and
/// strides.
template <class T>
view<const T> as_batches(const device_view<const T>& x, const device_view<const int>& offsets, index most,
                         const char* what) {
  regroup::attention_keys::check_ragged(as_host_view(x), what);
  if (offsets.rank() != 1 || offsets.size() == 0 || (offsets.size() > 1 && offsets.strides()[0] != 1)) {
    throw_shape(std::string("the offsets of ragged ") + what + " have shape (requests + 1,), side by side; got shape " +
                to_string(offsets.extents()) + " and strides " + to_string(offsets.strides()));
  }
  if (most < 0) {
    throw_argument(std::string("the most ") + what + " of a request must be 0 or more; got " + std::to_string(most));
  }
  const shape& e = x.extents();
  const shape& s = x.strides();
  return {x.data(), {offsets.size() - 1, e[1], most, e[2]}, {0, s[1], s[0], s[2]}};
}
/// The keys as the host's checks see them, without a look into lengths, offsets and tables.
template <class T>
attention_source<T> as_host_source(const attention_keys<T>& keys) {
  attention_source<T> source{.k = as_host_view(keys.k), .v = as_host_view(keys.v), .is_paged = keys.table.has_value()};
  if (keys.offsets) {
    source.k = as_batches(keys.k, *keys.offsets, keys.most, "keys");
    source.v = as_batches(keys.v, *keys.offsets, keys.most, "values");
    if (keys.k.extents()[0] != keys.v.extents()[0]) {
      throw_shape("ragged keys and values have the same tokens; got keys " + to_string(keys.k.extents()) +
                  " and values " + to_string(keys.v.extents()));
    }
  }
  if (keys.table) {
    if (keys.table->rank() != 2) {
      throw_shape("a page table (batches, pages) has rank 2; got shape " + to_string(keys.table->extents()));
    }
    source.batches = keys.table->extents()[0];
    source.pages = keys.table->extents()[1];
  }
  if (keys.lengths) {
    if (keys.lengths->rank() != 1) {
      throw_shape("the key lengths' array has rank 1; got shape " + to_string(keys.lengths->extents()));
    }
    source.lengths.emplace(static_cast<std::size_t>(keys.lengths->size()), 0);
  } else if (keys.table) {
    source.lengths.emplace(static_cast<std::size_t>(std::max<index>(source.batches, 0)), 0);  // no entry is looked at
  }
  return source;
}
template <class T, class Out>
checked_attention<T, Out> check_attention(const attention_queries<T>& q, const attention_keys<T>& keys,
                                          const device_view<Out>& out, const attention_options<>& options) {
  static_assert(std::same_as<T, float> || std::same_as<T, float16> || std::same_as<T, bfloat16>,
                "regroup: on a device attention takes float, float16 or bfloat16");
  static_assert(std::same_as<Out, T> || std::same_as<Out, float>,
                "regroup: attention's output has the queries' element type, or float");
  if (keys.offsets && !q.offsets) {
    throw_shape("ragged keys need ragged queries: cuda::ragged(q, offsets, most_queries)");
  }
  const view<const T> queries = q.offsets ? as_batches(q.q, *q.offsets, q.most, "queries") : as_host_view(q.q);
  const attention_source<T> source = as_host_source(keys);
  const attention_fold::problem<T> p(queries, source, no_mask{}, {.scale = options.scale});
  view<Out> o = as_host_view(out);
  logsumexp_output lse;
  if (options.logsumexp) lse = as_host_view(*options.logsumexp);
  shape outer = p.outer;
  if (q.offsets) {
    const shape tokens = {q.q.extents()[0], p.extents.heads};
    attention_fold::require_ragged_output(tokens, p.dv, o.extents());
    o = o.permuted({1, 0, 2});
    lse = lse.transposed(tokens);
    outer = {tokens[1], tokens[0]};
  }
  const attention_fold::results<float, Out> results(o, lse, outer, p.dv);
  results.require_apart_from(as_host_view(q.q));
  results.require_apart_from(as_host_view(keys.k));
  results.require_apart_from(as_host_view(keys.v));
  constexpr index most = std::numeric_limits<int>::max() / 2;
  const index blocks = (p.rows() / 8 + 1) * (p.dv / 64 + 1);  // as small as those of any kernel
  if (p.rows() > most || p.d > most || p.dv > most || p.extents.heads > most || blocks > std::numeric_limits<int>::max()) {
    throw_shape("on a device a key head has at most 2^30 queries, they as many columns, and both fewer than 2^31 blocks of 8 "
                "by 64; got queries " + to_string(queries.extents()) + " and values " + to_string(keys.v.extents()));
  }
  if (options.sinks) require_sinks(*options.sinks, p.extents.heads);

  const auto address_of = [](const auto& numbers) { return numbers ? numbers->data() : nullptr; };
  const auto tokens_of = [](const auto& offsets, const device_view<const T>& x) {
    return offsets ? static_cast<int>(std::min<index>(x.extents()[0], std::numeric_limits<int>::max())) : -1;
  };
  attention_call<T> call{.q = as_array(p.q),
                         .k = as_array(p.k),
                         .v = as_array(p.v),
                         .queries = {address_of(q.offsets), p.extents.queries, tokens_of(q.offsets, q.q)},
                         .keys = {address_of(keys.offsets ? keys.offsets : keys.lengths), p.extents.keys,
                                  tokens_of(keys.offsets, keys.k)},
                         .table = address_of(keys.table),
                         .table_strides = {},
                         .page_size = p.page_size,
                         .batches = p.extents.batches,
                         .key_heads = p.key_heads,
                         .group = static_cast<int>(p.group),
                         .d = static_cast<int>(p.d),
                         .dv = static_cast<int>(p.dv),
                         .scale = p.scale};
  call.has_q_rows = has_aligned_rows(call.q, call.d);
  call.has_k_rows = has_aligned_rows(call.k, call.d);
  call.has_v_rows = has_aligned_rows(call.v, call.dv);
  if (keys.table) std::copy_n(keys.table->strides().begin(), 2, call.table_strides);
  if (keys.lengths && keys.lengths->size() > 1 && keys.lengths->strides()[0] != 1) {
    throw_shape("on a device key lengths stand side by side; got strides " + to_string(keys.lengths->strides()));
  }
  const device_extents extents{p.extents.rank,    p.extents.batches, p.extents.heads,
                               p.extents.queries, p.extents.keys,    {call.queries, call.keys}};
  put_attention<T, Out> put{call, as_array(o), {nullptr, {}}, nullptr, 0};
  if (lse.wanted()) put.logsumexp = as_numbers(lse.as<float>(outer));
  if (options.sinks) {
    put.sinks = options.sinks->data();
    put.sinks_stride = options.sinks->strides()[0];
  }
  const index leaves = std::max<index>((p.extents.keys + attention_leaf_keys - 1) / attention_leaf_keys, 1);
  return {{call, {}, put, leaves}, extents};
}
template <class T, class Out, class Mask>
auto attention_work_of(const attention_queries<T>& q, const attention_keys<T>& keys, const device_view<Out>& out,
                       const attention_options<Mask>& options) {
  require_device_rule<Mask>();
  auto [work, extents] = check_attention<T>(q, keys, out, {options.scale, {}, options.logsumexp, options.sinks});
  if (out.size() == 0 && !options.logsumexp) work.call.batches = 0;  // nothing is written, however many queries there are
  const auto rule = mask_rules::bound(options.mask, extents);
  return attention_work<T, std::remove_const_t<decltype(rule)>, Out>{work.call, rule, work.put, work.leaves};
}

}  // namespace regroup::cuda

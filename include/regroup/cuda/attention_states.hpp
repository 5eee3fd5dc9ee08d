// SPDX-License-Identifier: Apache-2.0
// Attention over some of the keys as values in device memory: m, l and unnormalised O for every query, as in the host's
// attention_state (with 16 bits on tensor cores, m is a frame near the largest score). Attention's own kernels write them;
// the kernels here merge them and divide. Plain host code and kernels.
// Level: device. Law: states over disjoint keys merge by softmax_mean's combine; O may be split, m and l replicated.
#pragma once

#include "regroup/cuda/attention_plan.hpp"

namespace regroup::cuda {

/// The states of queries in the caller's device memory, any strides: m and l (..., H, Nq), O (..., H, Nq, dv); for ragged
/// queries (H, tokens) and (H, tokens, dv). The state of no keys, m = -inf, l = 0, O = -0, changes nothing.
template <class Real>
struct attention_states {
  device_view<Real> m, l, o;
};
template <class Real>
attention_states(device_view<Real>, device_view<Real>, device_view<Real>) -> attention_states<Real>;

template <class Real>
attention_states<const float> to_read(const attention_states<Real>& s) {
  return {s.m, s.l, s.o};
}

/// The same as kernels see them; m and l have an axis of nothing at their end.
template <class Real>
struct state_arrays {
  attention_array<Real> m, l, o;
};

/// Keeps a query's state as it is.
template <class T>
struct put_attention<T, attention_states<float>> {
  attention_call<T> call;
  state_arrays<float> to;

  template <class Shape>
  constexpr void operator()(Shape, const attention_place& at, int row, int lane, const typename Shape::state& s) const {
    const index head = call.head_of(at, row), query = call.queries.first(at.batch) + call.query_of(at, row);
    unrolled<Shape::columns / Shape::row_lanes>([&](int c) {
      const int column = at.first_column + Shape::column_of(lane, c);
      if (column < call.dv) to.o.row(at.batch, head, query)[column * to.o.strides[3]] = s.o.values[c];
    });
    if (lane != 0 || at.first_column != 0) return;
    *to.m.row(at.batch, head, query) = s.m;
    *to.l.row(at.batch, head, query) = s.l;
  }
};

/// Throws shape_error and overlap_error.
template <class Real>
void require_states(const attention_states<Real>& s) {
  attention_fold::require_state_shapes(s.m.extents(), s.l.extents(), s.o.extents());
  if constexpr (!std::is_const_v<Real>) {
    s.m.require_apart_from(s.l, false, "another output");
    s.m.require_apart_from(s.o, false, "another output");
    s.l.require_apart_from(s.o, false, "another output");
  }
}

/// A call whose results are states; the rest as attention's (attention_work.hpp).
template <class T, class Mask>
auto attention_work_of(const attention_queries<T>& q, const attention_keys<T>& keys, const attention_states<float>& to,
                       const attention_options<Mask>& options) {
  require_device_rule<Mask>();
  attention_fold::require_no_results(options.logsumexp.has_value() || options.sinks.has_value());
  require_states(to);
  if (q.offsets && to.o.rank() != 3) {
    throw_shape("the states of ragged queries are of shape (heads, tokens) and (heads, tokens, dv); got " +
                to_string(to.o.extents()));
  }
  const auto out = q.offsets ? to.o.with_axes_last({0, 2}) : to.o;
  const auto check = [&](const device_view<float>& one) {  // its shape, and that it stays apart from q, k and v
    return check_attention<T>(q, keys, out, {options.scale, {}, q.offsets ? one.with_axes_last({0}) : one, {}});
  };
  const auto [work, extents] = check(to.m);
  const auto rule = mask_rules::bound(options.mask, extents);
  const state_arrays<float> arrays{work.put.logsumexp, check(to.l).work.put.logsumexp, work.put.out};
  return attention_work<T, std::remove_const_t<decltype(rule)>, attention_states<float>>{
      work.call, rule, {work.call, arrays}, work.leaves};
}

/// States alone as a call without keys, for what places their queries: every head has its own. A block has 8 of them, and
/// 128 columns.
using states_shape = attention_shape<2, 4>;
template <class Real>
attention_call<float> call_of(const attention_states<Real>& s) {
  require_states(s);
  const shape& e = s.m.extents();
  const index dv = s.o.extents()[e.size()];
  constexpr index most = std::numeric_limits<int>::max() / 2;
  const auto extent = [&](int from_end) { return from_end > e.size() ? index{1} : e[e.size() - from_end]; };
  if (e.size() > 3 || extent(1) > most || dv > most) {
    throw_shape("on a device attention states have the axes (batch, heads, queries), with at most 2^30 queries a head and "
                "columns; got " + to_string(s.o.extents()));
  }
  attention_call<float> call{};
  call.queries = {nullptr, extent(1), -1};
  call.batches = extent(3);
  call.key_heads = extent(2);
  call.group = 1;
  call.dv = static_cast<int>(dv);
  return call;
}
template <class Real>
state_arrays<Real> arrays_of(const attention_states<Real>& s) {
  return {as_numbers(as_host_view(s.m)), as_numbers(as_host_view(s.l)), as_array(as_host_view(s.o))};
}

/// A query's state, as far as a block has its columns.
template <class Real>
constexpr states_shape::state held_state(const attention_call<float>& call, const state_arrays<Real>& from,
                                         const attention_place& at, int row, int lane) {
  const index head = call.head_of(at, row), query = call.query_of(at, row);
  states_shape::state s = states_shape::monoid{}.identity();
  const float m = *from.m.row(at.batch, head, query);
  if (m == s.m) return s;  // of no keys, whatever l and o hold
  s.m = m;
  s.l = *from.l.row(at.batch, head, query);
  unrolled<states_shape::columns / states_shape::row_lanes>([&](int c) {
    const int column = at.first_column + states_shape::column_of(lane, c);
    if (column < call.dv) s.o.values[c] = from.o.row(at.batch, head, query)[column * from.o.strides[3]];
  });
  return s;
}
constexpr index units_of(const attention_call<float>& call) { return units_of<states_shape>(call); }
/// body(at, row) for the queries of states over the grid, a warp each.
template <block Block, class Body>
constexpr void each_query(Block& b, const attention_call<float>& call, const Body& body) {
  for (index unit = b.block(); unit < units_of(call); unit += b.blocks()) {
    const attention_place at = place<states_shape>(call, unit);
    for (int r = 0; r < states_shape::thread_rows; ++r) {
      const int row = states_shape::row_of(b.thread(), r);
      if (call.has_row(at, row)) body(at, row);
    }
  }
}

/// into := into from, which may be the same.
struct merge_states {
  attention_call<float> call;
  state_arrays<const float> from;
  state_arrays<float> into;

  template <block Block>
  constexpr void operator()(Block& b) const {
    const int lane = states_shape::lane_of(b.thread());
    each_query(b, call, [&](attention_place at, int row) {
      if (at.first_column != 0) return;  // who has the first columns has all, and them last: m and l go with them
      const int chunks = call.dv == 0 ? 1 : (call.dv - 1) / states_shape::columns + 1;
      for (int chunk = chunks - 1; chunk >= 0; --chunk) {
        at.first_column = chunk * states_shape::columns;
        const auto s = states_shape::monoid{}(held_state(call, into, at, row, lane), held_state(call, from, at, row, lane));
        b.template group_barrier<warp_threads>();  // all have read m and l
        put_attention<float, attention_states<float>>{call, into}(states_shape{}, at, row, lane, s);
      }
    });
  }
};
/// The kernel that merges. Throws shape_error and overlap_error.
inline merge_states merge_of(const attention_states<const float>& from, const attention_states<float>& into) {
  const attention_call<float> call = call_of(into);
  require_states(from);
  attention_fold::require_same_queries(into.o.extents(), from.o.extents());
  const merge_states kernel{call, arrays_of(from), arrays_of(into)};
  const device_view<const float> inputs[] = {from.m, from.l, from.o};
  const device_view<float> outputs[] = {into.m, into.l, into.o};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) inputs[i].require_apart_from(outputs[j], i == j);
  }
  return kernel;
}

/// O / l and logsumexp, each query's state merged once with its head's sink.
template <class Out>
struct normalise_states {
  state_arrays<const float> from;
  put_attention<float, Out> put;

  template <block Block>
  constexpr void operator()(Block& b) const {
    const int lane = states_shape::lane_of(b.thread());
    each_query(b, put.call, [&](const attention_place& at, int row) {
      put(states_shape{}, at, row, lane, held_state(put.call, from, at, row, lane));
    });
  }
};
/// The kernel that divides. Throws shape_error and overlap_error.
template <class Out>
normalise_states<Out> normalise_of(const attention_states<const float>& from, const device_view<Out>& out,
                                   const std::optional<device_view<float>>& logsumexp,
                                   const std::optional<device_view<const float>>& sinks) {
  require_place_for<Out, float>();
  put_attention<float, Out> put{call_of(from), {}, {}, nullptr, 0};
  logsumexp_output lse;
  if (logsumexp) lse = as_host_view(*logsumexp);
  const attention_fold::results<float, Out> results(as_host_view(out), lse, from.m.extents(), put.call.dv);
  for (const auto& x : {from.m, from.l, from.o}) results.require_apart_from(as_host_view(x));
  put.out = as_array(as_host_view(out));
  if (logsumexp) put.logsumexp = as_numbers(as_host_view(*logsumexp));
  if (sinks) {
    require_sinks(*sinks, put.call.key_heads);
    put.sinks = sinks->data();
    put.sinks_stride = sinks->strides()[0];
  }
  return {arrays_of(from), put};
}

}  // namespace regroup::cuda

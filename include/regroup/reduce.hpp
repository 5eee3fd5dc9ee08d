// SPDX-License-Identifier: Apache-2.0
// The verb reduce: of a range, of the rows or any axes of a view, of segments, and by key. The executor comes first, then
// inputs, outputs, the monoid and an optional projection: of the element, as in std::ranges, or of the element and its
// position (`with_position`). A projection, and a monoid's functions, may be called more than once for an element, and from any
// thread. Every source is folded in the contract's order (executor.hpp), so a row has the same bits alone and in any batch.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/executor.hpp"
#include "regroup/outputs.hpp"
#include "regroup/require_monoid.hpp"

namespace regroup {

namespace verbs {

/// Writes answers to a view, in C order.
template <class Place>
struct places {
  view<Place> out;
  template <class Answer>
  void operator()(index row, Answer&& answer) const {
    require_place_for<Place, Answer>();
    out.data()[offset_of(row, out.extents(), out.strides())] = static_cast<Place>(std::forward<Answer>(answer));
  }
  /// The place of the first answer if the others follow it.
  [[nodiscard]] Place* contiguous() const noexcept { return out.rank() == 1 && out.stride(0) == 1 ? out.data() : nullptr; }
};

/// Where the answers go: a function of (row, answer), or a view, span or container of `count` answers in C order, which must
/// not share memory with the input.
template <class Input, class Out>
auto output(const Input& in, Out&& out, [[maybe_unused]] index count) {
  if constexpr (requires { view(out); }) {
    const auto v = regroup::writable(std::forward<Out>(out));
    require_own_memory(in, v);
    require_places(v.extents(), v.size(), count);
    return places<typename decltype(v)::element_type>{regroup::coalesced(v)};
  } else {
    static_assert(!std::ranges::range<Out>,
                  "regroup: answers go to a view, a span or a contiguous container (no std::vector<bool>), or to a function");
    return [&out]<class Answer>(index row, Answer&& answer) {
      static_assert(requires { out(row, std::forward<Answer>(answer)); },
                    "regroup: answers go to a function of (row, answer), which this is not");
      out(row, std::forward<Answer>(answer));
    };
  }
}

/// Where the only answer goes.
template <class Answer>
auto output(std::optional<Answer>& only) {
  return [&only](index, Answer answer) { only.emplace(std::move(answer)); };
}

/// Lowers states and puts their answers. Independent of the executor, so one instantiation serves all with the same worker.
template <class M, class Put>
struct lowered {
  const M& m;
  const Put& put;
  void operator()(index row, const state_of<M>& s) const { put(row, regroup::lower(m, s)); }
  /// The same for the rows from `first` on: row first + k has the state state_at(k).
  template <class StateAt>
  void some(index first, index n, const StateAt& state_at) const {
    if constexpr (requires { put.contiguous(); }) {
      if (auto* const to = put.contiguous(); to != nullptr) {
        using place = std::remove_reference_t<decltype(*to)>;
        for (index k = 0; k < n; ++k) to[first + k] = static_cast<place>(regroup::lower(m, state_at(k)));
        return;
      }
    }
    for (index k = 0; k < n; ++k) (*this)(first + k, state_at(k));
  }
};

/// Where runs of consecutive equal keys begin, and then n, the number of keys. Some keys are compared at once: a branch at each
/// would be guessed wrongly once a run.
template <class Keys>
std::vector<index> offsets_of_runs(const Keys& key, index n) {
  constexpr index word = sizeof(std::uint64_t), some = 8 * word;
  std::vector<index> offsets;
  if (n > 0) offsets.push_back(0);
  for (index first = 1; first < n; first += some) {
    alignas(64) std::array<bool, some> begins{};
    const auto compare = [&](const auto size) {
      for (index k = 0; k < size; ++k) begins[static_cast<std::size_t>(k)] = !(key[first + k] == key[first + k - 1]);
    };
    if (first + some <= n) {
      compare(std::integral_constant<index, some>{});
    } else {
      compare(n - first);
    }
    for (index k = 0; k < some; k += word) {
      std::uint64_t left;
      std::memcpy(&left, begins.data() + k, sizeof left);
      for (; left != 0; left &= left - 1) offsets.push_back(first + k + std::countr_zero(left) / 8);
    }
  }
  offsets.push_back(n);
  return offsets;
}

/// Folds every source of a batch and puts the answers.
template <executor Executor, class Batch, class M, class Projection, class Put>
void fold(const Executor& ex, const Batch& b, const M& m, const Projection& projection, const Put& put) {
  const projected_batch<Batch, Projection> seen{b, projection};
  if constexpr (require_monoid<M, element_of<decltype(seen[0])>>()) ex.fold(seen, m, lowered<M, Put>{m, put});
}

}  // namespace verbs

/// Reduces a range, or a view of any rank in C order, with `m`: lower(x_0 + x_1 + ... ), or lower(identity) if there are no
/// elements. O(n) work, O(log n) states. With `seq`, up to a tile (4096) of contiguous elements without a projection
/// allocates nothing, where the state is made of at most 16 numbers.
template <executor Executor, class Range, class M, class Projection = std::identity>
auto reduce(const Executor& ex, const Range& xs, const M& m, const Projection& projection = {}) {
  static_assert(require_identity<M>());
  std::optional<answer_of<M>> answer;
  const auto put = verbs::output(answer);
  if constexpr (has_axes<Range>) {
    const auto v = view(xs);
    regroup::with_slices(v, v.rank(), [&](const auto& all) { verbs::fold(ex, single{all[0]}, m, projection, put); });
  } else {
    verbs::fold(ex, single{as_source(xs)}, m, projection, put);
  }
  return *std::move(answer);
}

/// Reduces each row (the last axis) of a view of rank 1 or more. `out` holds one answer a row, in C order of the other axes,
/// or is a function of (row, answer) that is called once a row, from any thread. Throws shape_error, and overlap_error where
/// `out` shares memory with the input.
template <executor Executor, class View, class Out, class M, class Projection = std::identity>
void reduce_rows(const Executor& ex, const View& x, Out&& out, const M& m, const Projection& projection = {}) {
  const auto batch = regroup::rows(view(x));
  verbs::fold(ex, batch, m, projection, verbs::output(x, std::forward<Out>(out), batch.size()));
}

/// Reduces any axes of a view together: positions run in C order of the reduced axes, whatever the strides. Negative axes
/// count from the end. `out` is as in `reduce_rows`, in C order of the remaining axes. Throws as `reduce_rows`.
template <executor Executor, class View, class Out, class M, class Projection = std::identity>
void reduce_axes(const Executor& ex, const View& x, const shape& axes, Out&& out, const M& m,
                 const Projection& projection = {}) {
  const auto permuted = axes_last(view(x), axes);
  regroup::with_slices(permuted, axes.size(), [&](const auto& batch) {
    verbs::fold(ex, batch, m, projection, verbs::output(x, std::forward<Out>(out), batch.size()));
  });
}

/// Reduces S segments of a range: segment s is [offsets[s], offsets[s + 1]), and may be empty. The S + 1 offsets begin at 0,
/// never decrease and end at the number of elements; otherwise throws offsets_error. Throws shape_error, and overlap_error
/// where `out` shares memory with the elements or the offsets.
template <executor Executor, class Range, class Offsets, class Out, class M, class Projection = std::identity>
void reduce_segments(const Executor& ex, const Range& xs, const Offsets& offsets, Out&& out, const M& m,
                     const Projection& projection = {}) {
  const segments batch(as_source(xs), as_source(offsets));
  require_own_memory(offsets, out, false, "the offsets");
  verbs::fold(ex, batch, m, projection, verbs::output(xs, std::forward<Out>(out), batch.size()));
}

/// Reduces each run of consecutive equal keys (==, so a NaN starts a new run). The first key of run r goes to keys_out[r] and
/// its answer to out[r]; both have room for every run. Returns the number of runs. The calling thread finds the runs alone,
/// and a list of them is allocated, 8 bytes a run. Throws shape_error where there are not as many keys as elements, or too
/// little room for the runs; overlap_error where an output shares memory with the keys, the elements or the other output.
template <executor Executor, class Keys, class Range, class KeysOut, class Out, class M,
          class Projection = std::identity>
index reduce_by_key(const Executor& ex, const Keys& keys, const Range& xs, KeysOut&& keys_out, Out&& out, const M& m,
                    const Projection& projection = {}) {
  const auto key = as_source(keys);
  const auto elements = as_source(xs);
  require_one_key_an_element(key.size(), elements.size());
  const auto* const in_memory = contiguous(key);
  const std::vector<index> offsets =
      in_memory != nullptr ? verbs::offsets_of_runs(in_memory, key.size()) : verbs::offsets_of_runs(key, key.size());
  const auto runs = static_cast<index>(offsets.size()) - 1;
  const auto room = [&](const auto& places) {
    require_room_for_runs(places.extents(), runs);
    return view(places.data(), {runs}, places.strides());
  };
  const auto first_keys = room(regroup::writable(std::forward<KeysOut>(keys_out)));
  const auto answers = room(regroup::writable(std::forward<Out>(out)));
  require_own_memory(keys, first_keys, false, "the keys");
  require_own_memory(keys, answers, false, "the keys");
  require_own_memory(xs, first_keys);
  require_own_memory(xs, answers);
  require_own_memory(first_keys, answers, false, "another output");
  for (index r = 0; r < runs; ++r) first_keys(r) = key[offsets[static_cast<std::size_t>(r)]];
  reduce_segments(ex, xs, offsets, answers, m, projection);
  return runs;
}

}  // namespace regroup

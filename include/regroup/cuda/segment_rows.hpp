// SPDX-License-Identifier: Apache-2.0
// Segments of softmax as kernels, by whatever takes a row of their length (row_kernel.hpp), so that they have its bits: four
// threads, a warp, a block, or blocks for ranges. Segments' lengths are known on the device alone: every kernel whose share
// there may be is launched, and passes over the others'. Plain host code beside the kernels. Level: device.
#pragma once

#include <concepts>
#include <optional>

#include "regroup/cuda/row_verbs.hpp"

namespace regroup::cuda {

/// Segments of at most 32 elements, four threads each.
template <std::floating_point Real, class In, class Out, class Look>
struct map_short_segments : map_short_rows<Real, In, Out, Look> {
  template <block Block>
  constexpr void operator()(Block& b) const {
    each_row<short_row_threads, short_row_held>(b, this->rows, [&](auto& of, index row) {
      if (this->rows[row].size() <= short_row_elements) map_short(of, this->rows, this->out, this->seen, this->look, row);
    });
  }
};

/// Those of up to 1024, a warp each.
template <std::floating_point Real, class In, class Out, class Look>
struct map_strip_segments : map_held_rows<1, Real, In, Out, Look> {
  template <block Block>
  constexpr void operator()(Block& b) const {
    constexpr int teams = map_strip_segments::threads / warp_threads;
    strip_team<1, Block> of(b);
    for (index row = b.block() * teams + b.thread() / warp_threads; row < this->rows.size(); row += b.blocks() * teams) {
      const index n = this->rows[row].size();
      if (n > short_row_elements && n <= strip_elements) map_strips(of, this->rows, this->out, this->seen, this->look, row);
    }
  }
};

/// Those of up to 65,536, a block each, which finds them in the list of nodes (and needs some registers more for that).
template <std::floating_point Real, class In, class Out, class Look>
struct map_tiled_segments : map_rows_of_tiles<Real, In, Out, Look> {
  static constexpr int resident_blocks = sizeof(Real) > 4 ? row_blocks<Real> : row_blocks<Real> - 1;
  template <block Block>
  constexpr void operator()(Block& b) const {
    each_node(b, this->rows, longest_two_sweep_row, strip_elements, [&](auto& of, index row, index) {
      if (this->rows[row].size() > longest_two_sweep_row) return;
      map_tiles(of, this->rows, this->out, this->seen, this->look, row);
    });
  }
};

/// Where the fold of a longer segment ends. Of doubles it takes more registers than a fold is given.
template <std::floating_point Real, class Look>
struct put_segment_map : put_map<Real, Look> {
  static constexpr bool is_heavy = sizeof(Real) > 4;
};
/// Longer segments, folded before: a block each tile.
template <std::floating_point Real, class In, class Out, class Look>
struct map_split_segments : map_split_rows<Real, In, Out, Look> {
  template <block Block>
  constexpr void operator()(Block& b) const {
    each_node(b, this->rows, tile_elements, longest_two_sweep_row, [&](auto& of, index row, index position) {
      map_tile(of, this->maps[row], this->rows[row], this->out[row], position * tile_elements);
    });
  }
};

/// The segments of an input and of an output (of null, where there is none), and what looks at them: one verb's work, to be run
/// by `on` in a workspace. The choice of kernels depends only on the number of elements.
template <std::floating_point Real, class In, class Out, class Look>
struct segment_work {
  In rows;
  Out out;
  scaled<Real> seen;
  Look look;

  [[nodiscard]] std::size_t bytes() const {
    return may_be_long() ? maps_at() + sizeof(map_of<Look, Real>) * static_cast<std::size_t>(rows.size()) : 0;
  }
  template <class On>
  void run(const On& on, const workspace& w) const {
    w.require(bytes());
    const index count = rows.size();
    const auto launch = [&on]<class Kernel>(const Kernel& kernel, index blocks) {
      if (blocks > 0) on.launch(kernel, smaller(blocks, most_node_blocks<In>), 1);
    };
    constexpr index short_teams = block_threads / short_row_threads, strip_teams = warps_for<1>;
    launch(map_short_segments<Real, In, Out, Look>{{rows, out, seen, look}}, (count + short_teams - 1) / short_teams);
    if (rows.total <= short_row_elements) return;
    launch(map_strip_segments<Real, In, Out, Look>{{rows, out, seen, look}}, (count + strip_teams - 1) / strip_teams);
    launch(map_tiled_segments<Real, In, Out, Look>{{rows, out, seen, look}},
           rows.slots(longest_two_sweep_row, strip_elements));
    if (!may_be_long()) return;
    auto* const maps = reinterpret_cast<map_of<Look, Real>*>(static_cast<char*>(w.data) + maps_at());
    launch_ranges(launch, long_fold(), log_sum_exp<Real>{}, seen_rows(), static_cast<row_state<Real>*>(w.data),
                  put_segment_map<Real, Look>{{seen, look, maps}});
    if (out.first == nullptr) return;
    launch(map_split_segments<Real, In, Out, Look>{{rows, out, maps}}, rows.slots(tile_elements, longest_two_sweep_row));
  }

 private:
  [[nodiscard]] auto seen_rows() const { return segment_batch{rows.first, rows.offsets, rows.count, rows.total, seen}; }
  /// Segments past 65,536 elements are folded by ranges of so many: kernels after the first pass over shorter ones.
  [[nodiscard]] fold_plan long_fold() const {
    fold_plan plan{0, longest_two_sweep_row, longest_two_sweep_row, 0};
    for (index reach = plan.reach; nodes_of(rows.total, reach) > 1; reach *= lanes) ++plan.levels;
    return plan;
  }
  [[nodiscard]] bool may_be_long() const { return rows.total > longest_two_sweep_row; }
  [[nodiscard]] std::size_t maps_at() const {
    const auto states = static_cast<std::size_t>(workspace_states(long_fold(), seen_rows()));
    return (sizeof(row_state<Real>) * states + 15) / 16 * 16;
  }
};
template <class In, class Out, class Real, class Look>
segment_work(In, Out, scaled<Real>, Look) -> segment_work<Real, In, Out, Look>;

/// The elements of one axis.
template <class X>
device_view<const X> segmented(const device_view<X>& x, int axis, const char* verb) {
  softmax_parts::require_softmax_rows<std::remove_const_t<X>>(x.rank(), verb);
  if (x.rank() != 1) {
    throw_shape("on a device " + std::string(verb) + " takes elements along one axis; got shape " + to_string(x.extents()));
  }
  return device_view<const X>(x).axis_last(axis);
}

template <template <class> class Map, class X, class Offset, class Y>
auto normalise_segments(const device_view<X>& x, const device_view<Offset>& offsets, const device_view<Y>& y,
                        const softmax_options<real_of<X>>& options, const char* verb) {
  using real = real_of<X>;
  static_assert(!std::is_const_v<Y>, "regroup: the output is written, so its elements cannot be const");
  const auto rows = segments_of(segmented(x, options.axis, verb), offsets);
  softmax_parts::require_softmax_output<std::remove_const_t<X>, Y>(x.extents(), y.extents(), verb);
  x.require_apart_from(y, true);
  offsets.require_apart_from(y, false, "the offsets");
  row_places<real> lse;
  if (options.logsumexp) {
    y.require_apart_from(*options.logsumexp, false, "another output");
    offsets.require_apart_from(*options.logsumexp, false, "the offsets");
    lse = {options.logsumexp->data(), x.require_places(*options.logsumexp, rows.size())};
  }
  const auto seen = softmax_parts::scale_of<real>(options.scale);
  return segment_work{rows, segments_of(y, offsets), seen, look_normalise<Map, real>{seen, lse}};
}
template <class X, class Offset, class Out>
auto log_sums_of_segments(const device_view<X>& x, const device_view<Offset>& offsets, const device_view<Out>& out,
                          const logsumexp_options& options) {
  using real = real_of<X>;
  require_place_for<Out, real>();
  const auto rows = segments_of(segmented(x, options.axis, "logsumexp_segments"), offsets);
  offsets.require_apart_from(out, false, "the offsets");
  const row_places<Out> places{out.data(), x.require_places(out, rows.size())};
  const auto seen = softmax_parts::scale_of<real>(options.scale);
  const segment_batch<std::remove_const_t<X>, Offset> none{nullptr, offsets.data(), 0, 0};
  return segment_work{rows, none, seen, look_normalise<softmax_parts::probability, real, Out>{seen, places}};
}

}  // namespace regroup::cuda

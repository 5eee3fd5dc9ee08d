// SPDX-License-Identifier: Apache-2.0
// Rows of softmax that the blocks of a cluster hold in registers: one read and one write of memory, as map_held_rows has of
// shorter rows. Every block has a few tiles side by side and folds them to the node of its range; the cluster joins those
// (cluster.hpp), so every value is a node of the contract's tree. y may be exactly x: the map is told, last of all
// exchanges, after every block has read its tiles. Level: lane to device.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "regroup/cuda/cluster.hpp"
#include "regroup/cuda/row_kernel.hpp"

namespace regroup::cuda {

/// This block's tiles of a row, `Tiles` at most, in registers, as one to be folded together with all of the cluster's.
template <int Tiles, class Cluster, class Source>
class clustered_tiles {
 public:
  static_assert(Tiles <= 2);  // of more the tree is not a chain
  static constexpr index reach = Tiles * tile_elements;

  constexpr clustered_tiles(Cluster& all, const Source& x)
      : clustered_tiles(all, x, all.of().block().cluster_rank() * reach, std::make_integer_sequence<int, Tiles>{}) {}

  [[nodiscard]] constexpr auto& of() const { return cluster_.of(); }

  /// The row's fold by m over map(element), in every thread of the cluster.
  template <class M, class Map>
  constexpr state_of<M> fold(const M& m, const Map& map) const {
    state_of<M> node = m.identity();  // stays so in a block past the row's end, which no other one reads
    unrolled<Tiles>([&](int k) {
      if (tile_[k].size() == 0) return;
      const state_of<M> s = leaf(m, team_tile(tile_[k], map));
      node = k == 0 ? s : m(node, s);
    });
    return cluster_.join(m, node, static_cast<int>(nodes_of(size_, reach)));
  }
  template <class F>
  constexpr void replace(const F& f) {
    unrolled<Tiles>([&](int k) { tile_[k].replace(f); });
  }
  /// y[i] = value(x), x what is held of place i.
  template <class Y, class Map, class Value>
  constexpr void write(const Y& y, const Map& map, const Value& value) const {
    unrolled<Tiles>([&](int k) {
      write_tile(tile_[k], y, first_ + k * tile_elements, map, [&](int i) { return value(tile_[k].held(i)); });
    });
  }

 private:
  using held = held_tile<std::remove_reference_t<decltype(std::declval<Cluster&>().of())>, Source>;

  template <int... k>
  constexpr clustered_tiles(Cluster& all, const Source& x, index first, std::integer_sequence<int, k...>)
      : cluster_(all), size_(x.size()), first_(first),
        tile_{held(all.of(), x, first + k * tile_elements, size_from(first + k * tile_elements))...} {}
  [[nodiscard]] constexpr int size_from(index first) const {
    return first < size_ ? static_cast<int>(smaller(size_ - first, tile_elements)) : 0;
  }

  Cluster& cluster_;
  index size_;
  index first_;
  held tile_[static_cast<std::size_t>(Tiles)];
};

/// Tiles that a block of a cluster holds of a row: two of doubles would spill.
template <std::floating_point Real>
inline constexpr int tiles_held = sizeof(Real) > 4 ? 1 : 2;

/// Rows of at most as many tiles as a cluster's blocks hold, and never more than two sweeps take.
template <std::floating_point Real, class In, class Out, class Look>
struct map_clustered_rows {
  static_assert(tiles_held<Real> * most_cluster_blocks * tile_elements <= longest_two_sweep_row);
  static constexpr int resident_blocks = sizeof(Real) > 4 ? 2 : 3;
  In rows;
  Out out;
  scaled<Real> seen;
  Look look;

  template <cluster_block Block>
  constexpr void operator()(Block& b) const {
    each_clustered_row(b, rows, [&](auto& all, index row) {
      const auto x = rows[row];
      using source = std::remove_const_t<decltype(x)>;
      using tiles = clustered_tiles<tiles_held<Real>, std::remove_reference_t<decltype(all)>, source>;
      using map = decltype(map_of<Look, Real>::map);
      tiles held(all, x);
      const auto state = softmax_parts::two_sweeps(seen, held_row<map::reads_weight, Real, tiles, source>{held, x});
      const map told = told_by_first(all, [&] { return look(row, state); });
      if (out.first != nullptr) held.write(out[row], told, [&](const auto& e) { return told(e, e); });
    });
  }
};

}  // namespace regroup::cuda

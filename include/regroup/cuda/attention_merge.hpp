// SPDX-License-Identifier: Apache-2.0
// Joins the nodes that several blocks have left for a query's keys, by softmax_mean's combine itself: the kernel after
// attend_nodes if blocks share a unit's leaves (split-K). Level: device.
#pragma once

#include "regroup/cuda/attention_kernel.hpp"

namespace regroup::cuda {

/// A shape whose threads have two columns: each of another shape's threads is several, m and l replicated once more.
template <class Shape>
struct of_two_columns {
  static constexpr int parts = Shape::columns / Shape::row_lanes / 2;  // of a thread's columns
  static constexpr int row_lanes = Shape::row_lanes * parts;
  static constexpr int columns = Shape::columns;
  using monoid = softmax_mean<float, fixed_vector<float, 2>>;
  using state = state_of<monoid>;
  static constexpr int column_of(int lane, int c) {
    return Shape::column_of(lane % Shape::row_lanes, lane / Shape::row_lanes * 2 + c);
  }
};

/// perfect(nodes) of every unit, by softmax_mean's combine, two columns to a thread: 16 nodes at a time, all on their way at
/// once, and theirs by a binary counter.
template <class T, class Shape, class Put>
struct merge_nodes {
  static constexpr int at_once = 16, levels = 8;
  static constexpr index most_parts = index{at_once} << levels;
  using fine = of_two_columns<Shape>;
  using state = typename fine::state;
  static constexpr index unit_threads = index{Shape::thread_rows} * fine::parts * block_threads;  // of a unit
  attention_call<T> call;
  index parts;
  waiting_states<Shape> nodes;
  Put put;

  template <block Block>
  constexpr void operator()(Block& b) const {
    using shape = shape_on<Block, Shape>;
    if constexpr (std::same_as<shape, Shape>) {
      merge_all(b);
    } else {
      merge_nodes<T, shape, Put>{call, parts, {nodes.first}, put}(b);
    }
  }

 private:
  template <class Block>
  constexpr void merge_all(Block& b) const {
    for (index i = b.block(); i < units_of<Shape>(call) * unit_threads / block_threads; i += b.blocks()) {
      const index unit = i / (Shape::thread_rows * fine::parts);
      const int r = static_cast<int>(i / fine::parts % Shape::thread_rows), part = static_cast<int>(i % fine::parts);
      const attention_place at = place<Shape>(call, unit);
      const int row = Shape::row_of(b.thread(), r);
      if (!call.has_row(at, row)) continue;
      const state s = joined([&](index p) {
        const auto word = [&](int number) { return *nodes.word(unit * parts + p, b.thread(), r, number); };
        return state{word(0), word(1), {{word(2 + 2 * part), word(3 + 2 * part)}}};
      });
      put(fine{}, at, row, Shape::lane_of(b.thread()) + part * Shape::row_lanes, s);
    }
  }
  template <class Node>
  constexpr state joined(const Node& node) const {
    const typename fine::monoid m;
    state waiting[levels + 1], s = m.identity();
    for (index first = 0, number = 0; first < parts; first += at_once, ++number) {
      state x[at_once];
      unrolled<at_once>([&](int i) { x[i] = first + i < parts ? node(first + i) : m.identity(); });
      unrolled<4>([&](int level) {
        unrolled<at_once / 2>([&](int i) {
          const int left = i << (level + 1), right = left + (1 << level);
          if (right < at_once) x[left] = m(x[left], x[right]);
        });
      });
      s = x[0];
      const bool is_last = first + at_once >= parts;
      bool carries = true;
      unrolled<levels>([&](int level) {
        if (number >> level & 1) {
          if (carries || is_last) s = m(waiting[level], s);
        } else if (carries) {
          waiting[level] = s;
          carries = false;
        }
      });
    }
    return s;
  }
};

}  // namespace regroup::cuda

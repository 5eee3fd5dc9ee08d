// SPDX-License-Identifier: Apache-2.0
// What attention's kernels know of a call, and how its work is divided: trivially copyable, with addresses in device memory.
// Level: device.
#pragma once

#include "regroup/algorithms/attention_fold.hpp"
#include "regroup/cuda/block.hpp"

namespace regroup::cuda {

/// An array (batch or page, head, position, column) in device memory.
template <class T>
struct attention_array {
  T* data;
  index strides[4];
  constexpr T* row(index batch, index head, index position) const {
    return data + batch * strides[0] + head * strides[1] + position * strides[2];
  }
};

/// How many keys (or queries) each batch has, and which of all is its first. Whatever device memory holds, no batch has
/// more than `most`, and none reaches past the tokens.
struct attention_lengths {
  const int* given;  // in device memory, one a batch, or batches + 1 offsets; null where every batch has all
  index most;
  int tokens;        // of batches one behind the other, which have offsets; else -1
  constexpr index operator[](index batch) const {
    if (given == nullptr) return most;
    const int n = tokens < 0 ? given[batch] : within(given[batch + 1], tokens) - first(batch);
    return n < 0 ? 0 : n > most ? most : n;
  }
  constexpr int first(index batch) const { return tokens < 0 ? 0 : within(given[batch], tokens); }

 private:
  static constexpr int within(int n, int last) { return n < 0 ? 0 : n > last ? last : n; }
};
/// attention_extents as rules on a device are bound to them: lengths are read where a kernel needs them.
struct device_extents {
  int rank;
  index batches, heads, queries, keys;
  struct shifts_of_batches {
    attention_lengths queries, keys;
    constexpr index operator[](std::size_t at) const {
      const auto batch = static_cast<index>(at);
      return keys[batch] - queries[batch];
    }
  };
  shifts_of_batches all_shifts;
  [[nodiscard]] shifts_of_batches shifts() const { return all_shifts; }
};

/// Some queries of one key head, and the first of the columns of V that a block has.
struct attention_place {
  index batch, key_head;
  int first_row, first_column;
};

/// What kernels know of a call. Rows are the queries of one key head, query by query, its `group` heads side by side.
/// Of ragged arrays the batch's stride is 0, and a batch's positions begin at its first token.
template <class T>
struct attention_call {
  attention_array<const T> q, k, v;  // (B, H, Nq, d), (B or pages, Hkv, Nk or page size, d), the same with dv
  attention_lengths queries, keys;
  const int* table;  // (B, pages); null where keys are dense
  index table_strides[2];
  index page_size, batches, key_heads;
  int group, d, dv;
  float scale;
  bool has_q_rows = false, has_k_rows = false, has_v_rows = false;  // whole aligned pieces of 16 bytes, copied as they are
  index together = 1;  // key heads whose units of the same rows are neighbours

  [[nodiscard]] constexpr bool has_rows() const { return has_q_rows && has_k_rows && has_v_rows; }
  [[nodiscard]] constexpr int most_rows() const { return group * static_cast<int>(queries.most); }
  [[nodiscard]] constexpr index head_of(const attention_place& at, int row) const {
    return at.key_head * group + (at.first_row + row) % group;
  }
  [[nodiscard]] constexpr int query_of(const attention_place& at, int row) const { return (at.first_row + row) / group; }
  [[nodiscard]] constexpr bool has_row(const attention_place& at, int row) const {
    return at.first_row + row < group * static_cast<int>(queries[at.batch]);
  }
  [[nodiscard]] constexpr const T* query(index batch, index head, index number) const {
    return q.row(batch, head, queries.first(batch) + number);
  }
  /// Where key `key` of a batch stands.
  struct key_place {
    index k, v;
  };
  [[nodiscard]] constexpr key_place locate(const attention_place& at, index key) const {
    index plane = at.batch;
    if (table != nullptr) {
      plane = table[at.batch * table_strides[0] + key / page_size * table_strides[1]];
      key %= page_size;
    }
    key += keys.first(at.batch);
    return {k.row(plane, at.key_head, key) - k.data, v.row(plane, at.key_head, key) - v.data};
  }
};

/// The threads of a block on plain arithmetic: each of its four warps has `Rows` rows, and each lane `Columns` of their
/// columns, 32 apart.
template <int Rows, int Columns>
struct attention_shape {
  static constexpr int thread_rows = Rows;                               ///< states of a thread
  static constexpr int rows = Rows * block_threads / warp_threads;
  static constexpr int row_lanes = warp_threads;                         ///< threads that share a row
  static constexpr int columns = Columns * row_lanes;
  using monoid = softmax_mean<float, fixed_vector<float, Columns>>;
  using state = state_of<monoid>;

  static constexpr int row_of(int thread, int r) { return thread / warp_threads * Rows + r; }
  static constexpr int row_of_warp(int warp, int i) { return warp * Rows + i; }
  static constexpr int lane_of(int thread) { return thread % warp_threads; }
  static constexpr int column_of(int lane, int c) { return c * row_lanes + lane; }
};

/// Buffers in shared memory that take turns: who writes one again has passed a barrier that all reached after reading it.
struct attention_turns {
  int rows = 0, places = 0, panels = 0;
  bool units = false;
  bool has_queries = false;  // those of the block's place are staged, and stay
};
/// A row's query, and which keys of a leaf it sees; head -1 where the batch has no such row.
struct row_sight {
  int head, query, first, last;
};
/// The keys of a leaf that some rows see: none where it ends at or before its beginning.
struct seen_keys {
  int begin, end;
};
/// The keys [first, first + keys) of the leaf that begins at `leaf_first`: what each row of the block sees, where each key
/// stands, whether some row of this warp sees any, and whether every row of the block sees all 64.
template <class Sights, class Places>
struct tile_of_keys {
  const attention_place& at;
  const Sights& sights;
  Places places;
  index leaf_first;
  int first, keys;
  bool looks, is_whole;
};
/// The keys of the leaf that begins at `first`: `all` that the block's rows see, and the warp's rows no others
/// than `own`; every row of the block sees `whole`.
template <class T, class Sights>
struct leaf_of_keys {
  using key_place = typename attention_call<T>::key_place;
  static constexpr int tile_keys = static_cast<int>(attention_tile_keys);
  const attention_call<T>& call;
  const attention_place& at;
  const Sights& sights;
  index first;
  seen_keys all, own, whole;
  key_place origin = is_dense() ? call.locate(at, first) : key_place{0, 0};

  [[nodiscard]] constexpr int first_tile() const { return all.begin / tile_keys * tile_keys; }
  [[nodiscard]] constexpr int end() const { return all.end; }
  [[nodiscard]] constexpr int keys_of(int tile) const { return smaller(all.end - tile, tile_keys); }
  /// Keys stand at one stride, nobody has to look where.
  [[nodiscard]] constexpr bool is_dense() const { return call.table == nullptr; }
  /// Where a tile's keys stand (one that nobody sees, where the array begins: its page may be gone), each noted by a thread
  /// for the block, which may look after a barrier.
  template <class Block>
  constexpr void note(Block& b, attention_turns& turn, int tile) const {
    if (is_dense()) return;
    turn.places = (turn.places + tile_keys) % (buffers * tile_keys);
    if (b.thread() >= tile_keys) return;
    const int key = tile + b.thread();
    places_of(b).set(turn.places + b.thread(), all.begin <= key && key < all.end ? call.locate(at, first + key)
                                                                                 : key_place{0, 0});
  }
  /// The places of a tile, which were the last to be noted, or the last but one, or but two.
  template <class Block>
  constexpr auto places(Block& b, const attention_turns& turn, int tile, int before = 0) const {
    const int base = (turn.places + (buffers - before) * tile_keys) % (buffers * tile_keys);
    return [places = places_of(b), base, tile, this](int key) {
      if (!is_dense()) return places.get(base + key);
      const index number = tile + key;
      return key_place{origin.k + number * call.k.strides[2], origin.v + number * call.v.strides[2]};
    };
  }
  template <class Places>
  constexpr auto tile(int tile, const Places& places) const {
    const int keys = keys_of(tile);
    return tile_of_keys<Sights, Places>{at, sights, places, first, tile, keys, own.begin < tile + keys && tile < own.end,
                                         whole.begin <= tile && tile + tile_keys <= whole.end};
  }

 private:
  static constexpr int buffers = 3;
  template <class Block>
  static constexpr auto places_of(Block& b) {
    return b.template shared<key_place, buffers * tile_keys>();
  }
};
/// A leaf by a tile that is folded when the one before is done, and may come to the same memory.
template <class Tile, class Block, class Leaf, class States>
constexpr void fold_each_tile(const Tile& by, Block& b, attention_turns& turn, const Leaf& leaf, States& s) {
  for (int tile = leaf.first_tile(); tile < leaf.end(); tile += Leaf::tile_keys) {
    leaf.note(b, turn, tile);
    if (!leaf.is_dense() || (Tile::reuses_memory && tile > leaf.first_tile())) b.barrier();
    const auto places = leaf.places(b, turn, tile);
    by.fold(b, turn, leaf.tile(tile, places), s);
  }
}

/// The units of a call: its columns, a block's at a time, of its rows, a block's at a time, of each key head and batch.
/// A batch of fewer rows than others leaves some of its units with nothing to do. Of each `together` key heads those of the
/// last rows come first, which a causal mask lets see most: what is begun last is soon done.
template <class Shape, class T>
constexpr index units_of_head(const attention_call<T>& call) {
  const index columns = call.dv == 0 ? 1 : (call.dv - 1) / Shape::columns + 1;
  return columns * ((call.most_rows() + Shape::rows - 1) / Shape::rows);
}
template <class Shape, class T>
constexpr index units_of(const attention_call<T>& call) {
  return call.batches * call.key_heads * units_of_head<Shape>(call);
}
template <class Shape, class T>
constexpr attention_place place(const attention_call<T>& call, index unit) {
  const int of_rows = (call.most_rows() + Shape::rows - 1) / Shape::rows;
  const index of_head = units_of_head<Shape>(call);
  const index first = unit / (of_head * call.together) * call.together;
  const index heads = smaller(call.together, call.batches * call.key_heads - first);
  const index here = unit - first * of_head, head = first + here % heads;
  const int columns = static_cast<int>(of_head) / of_rows, number = static_cast<int>(of_head - 1 - here / heads);
  return {head / call.key_heads, head % call.key_heads, number / columns * Shape::rows, number % columns * Shape::columns};
}

}  // namespace regroup::cuda

// SPDX-License-Identifier: Apache-2.0
// Attention on one tile of keys, for some queries that share them, in three steps: scores, weights, values. Two layouts
// compute the same chains, so they give the same bits:
//   query lanes   many queries: a lane is a query; q (d, lanes), s (64, lanes), o (dv, lanes); K and V are broadcast.
//                 Lanes may be divided into panels, stored one after the other, each in this layout
//   key lanes     few queries: a lane is a key, then a column of V; q (queries, d), s (queries, 64), o (queries, dv);
//                 K is transposed in registers, so that every key and value is read once for all queries
// Where two products of bfloat16 are taken at a time, q and s hold pairs: two 16-bit numbers in the bits of a float. Kernels by
// matrices (AMX) and in integers have an order of their own; with them query lanes serve any number of queries.
// Each instruction set has its own translation unit and exports `kernels`, tables of functions. Level: block.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "regroup/float16.hpp"

namespace regroup::tiles {

using index = std::int64_t;

inline constexpr index tile_keys = 64;    ///< at most, and the step of s with key lanes
inline constexpr index group_lanes = 16;  ///< query lanes come in groups of 16, each with its own range of keys
inline constexpr index most_lanes = 64;
inline constexpr index most_queries = 12;  ///< with key lanes

template <class T>
struct tile {
  using Real = std::conditional_t<std::same_as<T, double>, double, float>;

  index n, d, dv;
  index queries;           // or lanes, a multiple of 16
  const T* const* k;       // n rows of d; the last is repeated up to 64
  const T* const* v;       // n rows of dv; the last is repeated up to 64
  const T* const* next_k;  // the next tile's, to be prefetched, or this one's again; by matrices it may be null
  const T* const* next_v;  // by matrices only
  const Real* q;           // times scale; or pairs, (d / 2, lanes) or (queries, d / 2)
  Real scale;              // for the scores of pairs
  Real* pairs;             // room for (32, dv) pairs; by matrices, the weights, (32, lanes)
  index k_step;            // by matrices: the distance of two keys if K's rows can be loaded where they lie, else 0
  T* k_tiles;              // K and V as matrices take them
  T* v_tiles;
  Real* s;  // scores, then weights; or pairs: with query lanes in the even key's row, with key lanes side by side
  Real* o;
  Real* m;
  Real* l;
  bool by_rows;       // by matrices: queries are the rows of o and of the weights; at most 16
  Real* frame;        // by matrices: what weights are relative to, m or a little less
  Real* factor;       // what o is multiplied by, one a query
  bool* grows;        // whether some factor is not 1, one a group of lanes; query lanes only
  bool scales_first;  // by matrices: `multiply` leaves scores times scale, for a caller that reads them
  // Query or lane i sees the keys [first[i], last[i]) of the tile, a group of lanes some of [group_first, group_last).
  bool is_whole;  // every query sees every key
  const std::int32_t* first;
  const std::int32_t* last;
  const std::int32_t* group_first;
  const std::int32_t* group_last;
};

/// The three steps for one layout, in order. Between the first two a caller may change s.
template <class T>
struct kernels {
  /// s = q k, over d ascending from 0. Keys that no lane of a group sees are left out.
  void (*scores)(const tile<T>&);
  /// Hides keys that are not seen; raises m to the maximum and sets factor; s = exp(s - m); l = l factor + s over keys
  /// ascending.
  void (*weights)(const tile<T>&);
  /// o = o factor + s v, over keys ascending.
  void (*values)(const tile<T>&);
};

template <class T>
struct key_lanes : kernels<T> {};
template <class T>
struct query_lanes : kernels<T> {
  index panel;  ///< lanes of a panel, or 0 for all
};

/// Products of bfloat16 by matrices (AMX), for 16 or 32 queries in query lanes. Weights are read from s and written to `pairs`,
/// (32, lanes). The registers for matrices can be used between `enter` and `leave`.
struct matrix_kernels {
  void (*enter)();
  void (*leave)();
  /// Pack K, then V, as matrices, for any number of queries: whole tiles, 32 columns at a time, padded with zeros.
  void (*pack_keys)(const tile<bfloat16>&);
  void (*pack_values)(const tile<bfloat16>&);
  /// The scores of `next`, times scale if `scales_first`, and o = o factor + s v of `previous`, without a wait between the two.
  /// Either may be null. The last part of o may stay in registers: it belongs at the address returned, which is passed to the
  /// next call as `unsaved`, or to `save`, which stores it at once. It is null if `next` was. By rows, only one of the two is
  /// given, and values are packed here.
  float* (*multiply)(const tile<bfloat16>* next, const tile<bfloat16>* previous, float* unsaved);
  void (*save)(index lanes, float* unsaved);
  void (*weights)(const tile<bfloat16>&);
  /// At the end of a leaf, makes l and o relative to m instead of frame. o is (dv, lanes), or (lanes, dv rounded up to a
  /// multiple of 32).
  void (*settle)(index lanes, index dv, const float* m, const float* frame, float* l, float* o, bool by_rows);
};

/// One tile in fixed point: rows of 16-bit integers, two in a word; each row has a scale.
template <class T>
struct integer_tile {
  index n, d, dv;
  index lanes;             // 16 or 32 queries
  const T* const* k;       // n rows of d, the last repeated up to 64, until they are packed
  const T* const* v;       // n rows of dv, likewise
  const T* const* next_k;  // the next tile's, to be prefetched, or null
  const T* const* next_v;
  std::int32_t* k_pairs;  // (4, d / 2, 16 keys): two columns a word
  std::int32_t* v_pairs;  // (dv / 16, 32, 16 columns): two keys a word
  float* k_scale;         // 64: row = scale * integers; NaN for a row without integers
  float* v_scale;         // 64; 0 for a row without integers
  const std::int32_t* q;  // (lanes / 16, d / 2, 16)
  const float* q_scale;   // times the scores' scale
  float* s;               // (64, lanes): scores, then weights times the scales of values
  std::int32_t* p;        // (32, lanes): the weights of two keys
  float* p_scale;         // their scale, one a query
  float* o;               // (dv rounded up to a multiple of 16, lanes)
  float* m;
  float* l;
  float* factor;  // what o is multiplied by, one a query
  bool* grows;    // whether some factor is not 1, one a group of lanes
  bool is_whole;  // as in `tile`, like what follows
  const std::int32_t* first;
  const std::int32_t* last;
  const std::int32_t* group_first;
  const std::int32_t* group_last;
};

/// The rows of a tile, a bit each, that hold a number that is not finite, or whose size no scale allows. Their integers are 0.
struct rows_without_scale {
  std::uint64_t keys, values;
};

/// Products of 16-bit integers, two at a time, in 16 or 32 query lanes.
template <class T>
struct integer_kernels {
  /// Rounds 16 rows of d numbers into q's layout, and gives their scales, NaN for a row without one.
  void (*round_queries)(const T* const* rows, index d, std::int32_t* to, float* scale);
  rows_without_scale (*pack)(const integer_tile<T>&);
  /// The three steps of `kernels`; between the first two a caller may change s.
  void (*scores)(const integer_tile<T>&);
  void (*weights)(const integer_tile<T>&);
  void (*values)(const integer_tile<T>&);
};

/// All kernels of one instruction set. bfloat16 has query lanes only where its products are taken in pairs; else its rows,
/// like float16's, are widened for the kernels of float.
struct instruction_set : query_lanes<float>,
                         query_lanes<double>,
                         query_lanes<bfloat16>,
                         key_lanes<float>,
                         key_lanes<double>,
                         key_lanes<float16>,
                         key_lanes<bfloat16> {
  const matrix_kernels* matrices = nullptr;
  const integer_kernels<float16>* integers_of_float16 = nullptr;
  const integer_kernels<bfloat16>* integers_of_bfloat16 = nullptr;
};

/// The kernels of host::current_target, with products of bfloat16 in pairs if `takes_pairs` and it has them.
const instruction_set& current(bool takes_pairs);

/// Whether the current target can take products of T two at a time.
template <class T>
bool takes_pairs() {
  if constexpr (std::same_as<T, bfloat16>) return current(true).query_lanes<bfloat16>::scores != nullptr;
  return false;
}
/// Whether it can take them by matrices.
template <class T>
bool takes_matrices() {
  if constexpr (std::same_as<T, bfloat16>) return current(true).matrices != nullptr;
  return false;
}
/// Its kernels in integers, or nullptr.
template <class T>
const integer_kernels<T>* integers() {
  if constexpr (std::same_as<T, float16>) return current(true).integers_of_float16;
  if constexpr (std::same_as<T, bfloat16>) return current(true).integers_of_bfloat16;
  return nullptr;
}

/// n rounded up to a multiple of `of`.
constexpr index whole(index n, index of) { return (n + of - 1) / of * of; }

#if defined(__x86_64__)
extern const instruction_set x86_64_v3;
extern const instruction_set x86_64_v4;
/// The kernels for bfloat16 that replace x86_64_v4's.
struct bfloat16_kernels : query_lanes<bfloat16>, key_lanes<bfloat16> {};
extern const bfloat16_kernels x86_64_v4_bf16;
extern const matrix_kernels x86_64_v4_amx;
extern const integer_kernels<float16> float16_by_vnni;
extern const integer_kernels<bfloat16> bfloat16_by_vnni;
#endif

}  // namespace regroup::tiles

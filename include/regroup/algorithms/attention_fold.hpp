// SPDX-License-Identifier: Apache-2.0
// Attention's fold over keys: softmax_mean's reduction, a tile of K and V at a time. The order of each query is a contract:
//   score   = the chain s = fma(q[c] scale, k[c], s) over c ascending from 0, q[c] scale rounded; then the masks
//   leaf    = keys [1024 t, 1024 t + 1024), its tiles of 64 in order: where a tile's maximum is above m, l and O are
//             multiplied by math::decay(m - maximum) and m grows; then l = l + w and O = fma(w, v, O) over keys ascending
//             from 0, w = math::decay(score - m), 1 at the maximum. A key that is hidden, or scores -inf, is skipped
//   state   = perfect(leaves) by softmax_mean's combine; a leaf without visible keys is absent
// `problem` says how options change the order. Level: block (of queries). Compiled in src/, for all four element types.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/algorithms/attention_keys.hpp"
#include "regroup/algorithms/attention_masks.hpp"
#include "regroup/algorithms/attention_memory.hpp"
#include "regroup/algorithms/attention_options.hpp"
#include "regroup/executor.hpp"
#include "regroup/monoids/softmax_mean.hpp"

namespace regroup {

/// Keys in a tile and in a leaf of attention, at absolute positions.
inline constexpr index attention_tile_keys = 64;
inline constexpr index attention_leaf_keys = 1024;

/// What attention accumulates in: double for double, float for float and 16 bits.
template <class T>
using attention_real = std::conditional_t<std::same_as<T, double>, double, float>;

namespace attention_fold {

/// Queries in a block: as lanes of a vector, and where K and V are packed. Not part of the order.
inline constexpr index block_queries = 64;
inline constexpr index packed_queries = 32;

/// a := a b for `count` states of softmax_mean, each with a row of dv elements of O: `rescale`, element by element.
template <class Real>
void merge(index count, index dv, Real* m_a, Real* l_a, Real* o_a, const Real* m_b, const Real* l_b, const Real* o_b);

/// softmax_mean over fragments of the same queries.
template <class Real>
struct fragments {
  static constexpr bool is_commutative = true;
  index queries, dv;
  typename fragment<Real>::memory& memory;
  fragment<Real> identity() const {
    fragment<Real> none(queries, dv, memory);
    std::fill_n(none.m(), queries, Real{hidden});
    std::fill_n(none.l(), queries, Real{});
    std::fill_n(none.o(), queries * dv, -Real{});
    return none;
  }
  fragment<Real> operator()(fragment<Real> a, const fragment<Real>& b) const {
    merge(queries, dv, a.m(), a.l(), a.o(), b.m(), b.l(), b.o());
    return a;
  }
};

/// One call's arguments, checked and brought to rank 4. Throws shape_error and argument_error.
template <class T>
struct problem {
  using Real = attention_real<T>;

  /// Reads only the scale and the arithmetic that the options allow.
  problem(const view<const T>& queries, const attention_source<T>& source, const attention_mask& m,
          const attention_options& options);

  view<const T> q;  // (B, H, Nq, d)
  view<const T> k;  // (B, Hkv, Nk, d), or pages (P, Hkv, page size, d)
  view<const T> v;
  const attention_source<T>& keys;  // where paged, the table
  attention_extents extents;
  index key_heads = 0, group = 1, d = 0, dv = 0, page_size = 0;
  shape outer;  // the extents (..., H, Nq) of the results
  std::shared_ptr<const bound_mask> mask;
  Real scale = 1;
  /// Narrow weights, by pairs of bfloat16 products (host::target::x86_64_v4_bf16). The chains are vdpbf16ps's, over pairs of
  /// columns and of keys; scale multiplies the finished score, and weights are rounded to bfloat16 for l and O alike.
  bool takes_pairs = false;
  /// Narrow weights, by matrices (x86_64_v4_amx). The chains are tdpbf16ps's, over 32 columns or keys at a time; l's are
  /// vdpbf16ps's. Weights are relative to a maximum that may be up to 4 behind, and l and O to m at a leaf's end.
  bool takes_matrices = false;
  /// Fixed point (x86_64_v4_vnni and up). A row x of Q or K becomes the integers x^ = round(x 32766 / |x|), a row of V
  /// round(x 16383 / max |x|); a score is (sum q^ k^) (|k| / 32766) ((|q| / 32766) scale). m and l grow in every tile as in
  /// the order above, by w = exp(score - m) within 2^-18.3; O grows by sum p^ v^ max p / units, where p = w max |v| / 16383,
  /// units = floor(max p / max(max p / 32766, sum p / 131000)) and p^ = round(p units / max p). Sums of products are sums
  /// of integers, exact, at most 2^31. A score, or a value, of a row that is not finite, or not between 2^-45 and 2^45 in
  /// size, is computed and added in the order above.
  bool takes_integers = false;
  /// Whether K and V are packed.
  [[nodiscard]] bool packs() const noexcept { return takes_matrices || takes_integers; }
  /// Whether rows of K and V are first gathered, padded to pairs or, for blocks with query lanes, widened.
  [[nodiscard]] bool copies(bool has_key_lanes) const noexcept {
    const bool widens = !has_key_lanes && !takes_pairs && !packs() && !std::same_as<T, Real>;
    return k.stride(3) != 1 || v.stride(3) != 1 || widens || (takes_pairs && d % 2 != 0);
  }

  /// Rows are the queries of one key head, query by query, its `group` heads side by side.
  [[nodiscard]] index rows() const noexcept { return group * extents.queries; }
  [[nodiscard]] index block_rows() const noexcept { return packs() ? packed_queries : block_queries; }
  [[nodiscard]] index blocks_of_head() const noexcept { return (rows() + block_rows() - 1) / block_rows(); }
  [[nodiscard]] index heads() const noexcept { return extents.batches * key_heads; }
  [[nodiscard]] index blocks() const noexcept { return heads() * blocks_of_head(); }
  /// How many blocks of one head are folded together, so that K and V are packed or copied once for all of them. As many as
  /// leave enough work for `threads`, and as fit 3 MiB beside a leaf of K and V, each with its queries and one state for
  /// every level of the tree.
  [[nodiscard]] index blocks_together(index threads) const noexcept {
    if (!packs() && !copies(false)) return 1;
    const index enough = threads > 1 ? 8 * threads : 1;
    const auto leaves = static_cast<std::uint64_t>(extents.keys / attention_leaf_keys + 1);
    const index levels = static_cast<index>(std::bit_width(leaves));
    const index leaf = attention_leaf_keys * row_length() * static_cast<index>(packs() ? sizeof(T) : sizeof(Real));
    const index each = block_rows() * (levels * (dv + 2) + d) * index{sizeof(Real)};
    const index most = std::clamp<index>(((index{3} << 20) - leaf) / each, 1, 64);
    return std::clamp<index>(blocks() / enough, 1, std::clamp<index>(blocks_of_head(), 1, most));
  }
  [[nodiscard]] index row_length() const noexcept { return d + dv; }
  /// The number of keys of the longest batch.
  [[nodiscard]] index longest() const noexcept {
    return extents.lengths.empty() ? 0 : *std::ranges::max_element(extents.lengths);
  }
};

/// What blocks folded one after another by the same thread share: memory, and the keys and values that were packed or copied
/// for the last of them.
template <class T>
struct workspace {
  using Real = attention_real<T>;
  static constexpr index most_tiles = attention_leaf_keys / attention_tile_keys;

  workspace() { keep(2); }
  /// Begins another head, with memory for `tiles_kept` tiles.
  void keep(index tiles_kept) {
    tiles = tiles_kept;
    std::fill(first, first + most_tiles, -1);
  }

  index tiles = 0;                                    // that are kept
  index first[static_cast<std::size_t>(most_tiles)];  // the key where each of them begins
  buffer<Real> s, o, pairs;
  buffer<T> k_tiles, v_tiles;        // matrices, or integers two by two; or rows, for products of pairs
  buffer<Real> k_rows, v_rows;       // rows, gathered or widened
  buffer<float> k_scales, v_scales;  // of integers
  std::uint64_t keys_without_scale[static_cast<std::size_t>(most_tiles)];
  std::uint64_t values_without_scale[static_cast<std::size_t>(most_tiles)];
};

/// Up to 64 queries that share a key head, over the keys of `range`; computes leaves on request.
template <class T>
class block {
 public:
  using Real = attention_real<T>;

  block(const problem<T>& p, index number, key_range range);
  [[nodiscard]] index queries() const noexcept { return count_; }
  [[nodiscard]] index batch() const noexcept { return batch_; }
  [[nodiscard]] index head(index lane) const noexcept { return heads_[static_cast<std::size_t>(lane)]; }
  [[nodiscard]] index query(index lane) const noexcept { return queries_[static_cast<std::size_t>(lane)]; }
  /// The leaves that hold a key some query may see.
  [[nodiscard]] key_range leaves() const noexcept;
  /// The states of leaf `t`. The workspace must hold no tiles of another key head.
  [[nodiscard]] fragment<Real> leaf(index t, workspace<T>& w, typename fragment<Real>::memory& memory);

 private:
  /// Where the keys and values of one tile begin.
  template <class E>
  struct rows {
    index first = -1;
    const E* k[static_cast<std::size_t>(attention_tile_keys)];
    const E* v[static_cast<std::size_t>(attention_tile_keys)];
  };

  block(const block& whole, index lane);  // one of its queries, which then leaves hidden values out
  void prepare();
  void prepare(workspace<T>& w) const;
  void round_queries();
  [[nodiscard]] index width_of_o() const noexcept { return p_.packs() ? (p_.dv + 31) / 32 * 32 : p_.dv; }
  void fold_leaf(index t, const fragment<Real>& f);
  [[nodiscard]] bool passes_second_cache() const;
  void fold_tile(index first, index last, Real* o);
  template <class E>
  void fold_copies(index first, index last, buffer<E>& k_tiles, buffer<E>& v_tiles, Real* o);
  template <class E>
  void fold_rows(index first, index last, rows<E>& at, const rows<E>& next, Real* o);
  void find_seen(index first, index last);
  void fold_by_matrices(index first, index end);
  void fold_by_integers(index first, index end);
  [[nodiscard]] rows<T>& here() noexcept { return found_[is_turned_]; }
  [[nodiscard]] rows<T>& next() noexcept { return found_[!is_turned_]; }
  void turn_to(index first, index last);
  rows<T>& rows_to_pack(index first, index last, index end, rows<T>& copies);
  void score_one_by_one(std::uint64_t keys);
  void add_values_one_by_one(std::uint64_t which, const Real* scores);
  void mask(index first, index last, Real* s);
  template <class E>
  void leave_out_hidden(const Real* s, index step, rows<E>& at) const;
  void finish(const fragment<Real>& f);
  void mend(index t, const fragment<Real>& f, typename fragment<Real>::memory& memory);
  [[nodiscard]] index tile_end(index first) const;
  void find_rows(index first, index last, rows<T>& to) const;
  template <class E>
  void copy_rows(const view<const T>& x, const T* const* from, index n, E* to) const;

  const problem<T>& p_;
  bool is_careful_ = false;
  bool has_key_lanes_ = false;  // else query lanes: src/attention_tile.hpp
  bool by_rows_ = false;        // or, by matrices, queries are rows
  bool is_copied_ = false;      // rows must be widened or gathered first
  bool is_whole_ = false;       // every lane sees every key of the tile
  index batch_ = 0, key_head_ = 0, count_ = 0, lanes_ = 0;
  index panel_ = 0;  // lanes side by side
  std::vector<index> heads_, queries_;  // one a lane
  std::vector<key_range> seen_;
  key_range all_, common_;  // the keys that some lane may see, and that all do
  index end_ = 0;           // of all keys
  workspace<T>* w_ = nullptr;
  bool has_queries_without_scale_ = false;
  buffer<Real> q_, m_, l_, frame_, factor_, q_scale_, p_scale_, scores_;
  buffer<T> k_copy_, v_copy_;  // one tile's rows, to be packed
  buffer<std::byte> nothing_;  // a row of zeros, of either type
  rows<T> found_[2];  // this tile's and the next one's, or the other way round
  bool is_turned_ = false;
  std::int32_t first_[static_cast<std::size_t>(block_queries)], last_[static_cast<std::size_t>(block_queries)];
  std::int32_t group_first_[4], group_last_[4];
  bool finite_[static_cast<std::size_t>(block_queries)];
};

/// The leaves that hold a key of `range`; where there are fewer blocks than `few`, a key that some query may see: a window
/// leaves out most of them.
template <class T>
key_range seen_leaves(const problem<T>& p, key_range range, index few) {
  if (range.first >= range.last) return {0, 0};
  const key_range all{range.first / attention_leaf_keys, (range.last - 1) / attention_leaf_keys + 1};
  if (all.last - all.first == 1 || p.blocks() >= few) return all;
  key_range seen{all.last, all.first};
  for (index number = 0; number < p.blocks(); ++number) {
    const key_range some = block<T>(p, number, range).leaves();
    if (some.first < some.last) seen = {std::min(seen.first, some.first), std::max(seen.last, some.last)};
  }
  return seen.first < seen.last ? seen : key_range{0, 0};
}

/// Calls sink(batch, head, query, m, l, o) once for each query, with its state over the keys of `range`. Blocks of queries
/// are distributed over the threads, and aligned runs of leaves too where blocks are few; the tree is the same.
template <executor Executor, class T, class Sink>
void run(const Executor& ex, const problem<T>& p, key_range range, const Sink& sink) {
  using Real = attention_real<T>;
  using states = forest<fragment<Real>>;
  range.last = std::min(range.last, p.longest());
  const index blocks = p.blocks(), of_head = p.blocks_of_head(), together = p.blocks_together(concurrency_of(ex));
  const index groups_of_head = (of_head + together - 1) / together;
  const index groups = p.heads() * groups_of_head;
  const index few = 4 * concurrency_of(ex), enough = std::max<index>(64, few);  // tasks at most; few of short runs
  const key_range leaves = seen_leaves(p, range, enough);
  int level = 0;
  const auto runs_of = [&] { return std::max<index>(((leaves.last - 1) >> level) - (leaves.first >> level) + 1, 1); };
  while (runs_of() > 1 && blocks * runs_of() > (level < 2 ? few : enough)) ++level;
  const index first_run = leaves.first >> level, runs = runs_of(), run_leaves = index{1} << level;

  pool<workspace<T>> workspaces;
  typename fragment<Real>::memory memory;
  // put(a block, its number, its states) for all blocks of a group, which go through the leaves together.
  const auto fold_run = [&](index g, index r, const auto& put) {
    const index first_block = g / groups_of_head * of_head + g % groups_of_head * together;
    const index last_block = std::min(first_block + together, (g / groups_of_head + 1) * of_head);
    const auto w = workspaces.take();
    w->keep(last_block - first_block > 1 ? workspace<T>::most_tiles : 2);
    std::vector<block<T>> members;
    members.reserve(static_cast<std::size_t>(last_block - first_block));
    for (index number = first_block; number < last_block; ++number) members.emplace_back(p, number, range);
    std::vector<states> results(members.size());
    for (index t = r * run_leaves; t < std::min(leaves.last, (r + 1) * run_leaves); ++t) {
      for (std::size_t i = 0; i < members.size(); ++i) {
        const auto [first, last] = members[i].leaves();
        if (t < first || t >= last) continue;
        results[i].push(fragments<Real>{members[i].queries(), p.dv, memory}, {0, t, members[i].leaf(t, *w, memory)});
      }
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      put(members[i], first_block + static_cast<index>(i), std::move(results[i]));
    }
  };
  const auto put = [&](const block<T>& b, index, states&& all) {  // the sink's
    const fragments<Real> m{b.queries(), p.dv, memory};
    std::optional<fragment<Real>> value = std::move(all).value(m);
    const fragment<Real> state = value ? *std::move(value) : m.identity();
    for (index lane = 0; lane < b.queries(); ++lane) {
      sink(b.batch(), b.head(lane), b.query(lane), state.m()[lane], state.l()[lane], state.o() + lane * p.dv);
    }
  };
  const double multiply_adds = static_cast<double>(std::min(p.rows(), together * block_queries) * p.row_length()) *
                               static_cast<double>(std::min(leaves.last - leaves.first, run_leaves) * attention_leaf_keys);
  const double cost = 1000.0 + multiply_adds / 30;
  if (runs == 1) return ex.for_each(groups, cost, [&](index g) { fold_run(g, first_run, put); });
  std::vector<states> parts(static_cast<std::size_t>(blocks * runs));
  ex.for_each(groups * runs, cost, [&](index i) {
    fold_run(i / runs, first_run + i % runs, [&, r = i % runs](const block<T>&, index number, states&& all) {
      parts[static_cast<std::size_t>(number * runs + r)] = std::move(all);
    });
  });
  ex.for_each(blocks, static_cast<double>(block_queries * runs * p.dv), [&](index number) {
    const block<T> b(p, number, {0, 0});
    const fragments<Real> m{b.queries(), p.dv, memory};
    states all;
    for (index r = 0; r < runs; ++r) all.append(m, std::move(parts[static_cast<std::size_t>(number * runs + r)]));
    put(b, number, std::move(all));
  });
}

}  // namespace attention_fold
}  // namespace regroup

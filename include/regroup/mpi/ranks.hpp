// SPDX-License-Identifier: Apache-2.0
// The ranks of an MPI program as an executor: each brings its part of every source, and the whole is the parts in the order of
// ranks. What a rank hands up is what a stream keeps, an accumulator at its first position, and adjacent ones merge to the bits
// of one fold over everything: so any number of ranks, and any parts, give the bits of `seq`. Level: rank.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/host/par.hpp"
#include "regroup/mpi/communicator.hpp"
#include "regroup/reduce.hpp"
#include "regroup/stream.hpp"

namespace regroup::mpi {

/// Accumulators as bytes, one after another.
template <class Part>
std::vector<std::byte> saved(const std::vector<Part>& parts) {
  std::vector<std::byte> all;
  for (const Part& p : parts) {
    const auto record = p.save();
    const auto size = std::bit_cast<std::array<std::byte, sizeof(std::uint64_t)>>(static_cast<std::uint64_t>(record.size()));
    all.insert(all.end(), size.begin(), size.end());
    all.insert(all.end(), record.begin(), record.end());
  }
  return all;
}
template <class Part, class M>
std::vector<Part> loaded(const M& m, std::span<const std::byte> all) {
  std::vector<Part> parts;
  while (!all.empty()) {
    std::uint64_t size = 0;
    std::memcpy(&size, all.data(), sizeof(size));
    parts.push_back(Part::load(m, all.subspan(sizeof(size), size)));
    all = all.subspan(sizeof(size) + size);
  }
  return parts;
}

/// A monoid by the leaf that scans have, whatever it says of itself: contiguous pieces.
template <class M>
struct by_pieces {
  static constexpr bool is_commutative = false;
  static constexpr bool is_quick = regroup::is_quick<M>;
  const M* m;

  constexpr state_of<M> identity() const { return m->identity(); }
  template <class X>
  constexpr state_of<M> lift(const X& x) const {
    return regroup::lift(*m, x);
  }
  template <class X>
  constexpr state_of<M> append(index n, const state_of<M>& s, const X& x) const {
    return regroup::append(*m, n, s, x);
  }
  constexpr state_of<M> operator()(const state_of<M>& a, const state_of<M>& b) const { return (*m)(a, b); }
};

/// `const mpi::ranks all{MPI_COMM_WORLD};`, on every rank, is an executor of `reduce` and the scans, of ranges, rows, axes and
/// segments. Every rank calls the verb with its own part, which may be empty, and has the answer of the whole, or of a scan the
/// prefixes that end in its part. Of rows, axes and segments each is cut: all ranks bring as many, of any lengths. `local` is
/// the executor of a rank's own part, by default all of its cores. States and elements must be trivially copyable, and mean the
/// same on every rank.
///
/// A rank folds its part once, for a scan twice, and hands on ceil(log2 ranks) messages, each of at most two tiles (4096) of
/// elements and 2 log2 n states a row: what ranks cut is folded by one of them. 1024 rows are in memory at a time.
///
/// Where an operator, or memory, fails on one rank, all throw: that one its own exception, the others mpi::error. Arguments
/// that are wrong on one rank alone it finds before it meets the others, which then wait for it, as in any collective call.
template <class Local = parallel>
  requires std::derived_from<Local, host::threads<Local>>
class ranks {
 public:
  static constexpr bool is_collective = true;

  /// Every rank of `comm`, which is duplicated. MPI must have begun (mpi::environment, or MPI_Init).
  explicit ranks(MPI_Comm comm, Local local = {}) : comm_(std::make_shared<communicator>(comm)), local_(std::move(local)) {}

  [[nodiscard]] int rank() const noexcept { return comm_->rank(); }
  [[nodiscard]] int size() const noexcept { return comm_->size(); }
  /// Who computes what is this rank's own.
  [[nodiscard]] const Local& local() const noexcept { return local_; }
  [[nodiscard]] const communicator& comm() const noexcept { return *comm_; }

  /// As every executor's. `sink` is called on every rank.
  template <batch Batch, class M, class Sink>
  void fold(const Batch& b, const M& m, const Sink& sink) const {
    some_at_a_time(b, [&](index first, index count) { fold_some(b, first, count, m, sink); });
  }
  template <batch Batch, batch Out, class M, class Answer>
  void scan(const Batch& b, const Out& out, const M& m, scan_kind kind, const Answer& answer) const {
    some_at_a_time(b, [&](index first, index count) { scan_some(b, out, first, count, m, kind, answer); });
  }
  template <class Body>
  void for_each(index, double, const Body&) const {
    static_assert(!std::is_same_v<Body, Body>,
                  "regroup: over ranks go reduce and the scans, of ranges, rows, axes and segments; this verb is one rank's, "
                  "with ranks.local()");
  }

 private:
  template <class Batch, class Body>
  void some_at_a_time(const Batch& b, const Body& body) const {
    comm_->require_same(b.size(), "rows, or segments, or positions on the axes that stay");
    constexpr index most = 1024;
    for (index row = 0; row < b.size(); row += most) body(row, std::min(most, b.size() - row));
  }

  template <class Batch, class M>
  using part_of = accumulator<M, element_of<std::remove_cvref_t<decltype(std::declval<const Batch&>()[0])>>>;
  template <class Batch, class M>
  static constexpr void require_bytes() {
    using element = element_of<std::remove_cvref_t<decltype(std::declval<const Batch&>()[0])>>;
    static_assert(std::is_trivially_copyable_v<state_of<M>> && std::is_trivially_copyable_v<element>,
                  "regroup: ranks send each other states, and elements of the tiles they cut: both must be trivially copyable");
  }
  /// Where this rank's parts of some sources begin.
  template <class Batch>
  [[nodiscard]] std::vector<index> begins_of(const Batch& b, index first, index count) const {
    std::vector<index> sizes;
    for (index k = 0; k < count; ++k) sizes.push_back(b[first + k].size());
    return comm_->before(sizes);
  }
  /// Those parts, folded.
  template <class Batch, class M>
  [[nodiscard]] auto folded(const Batch& b, index first, const std::vector<index>& begins, const M& m) const {
    std::vector<part_of<Batch, M>> parts;
    for (const index begin : begins) {
      parts.emplace_back(m, begin).push(local_, b[first + static_cast<index>(parts.size()) - 1]);
    }
    return parts;
  }

  template <class Batch, class M, class Sink>
  void fold_some(const Batch& b, index first, index count, const M& m, const Sink& sink) const {
    require_bytes<Batch, M>();
    using state = state_of<M>;
    using part = part_of<Batch, M>;
    const auto begins = begins_of(b, first, count);
    std::vector<part> parts;
    std::vector<std::byte> states(static_cast<std::size_t>(count) * sizeof(state));
    const auto take = [&](std::span<const std::byte> bytes) {
      const auto after = loaded<part>(m, bytes);
      for (std::size_t k = 0; k < parts.size(); ++k) parts[k].merge(after[k]);
    };
    const auto whole = [&] {
      for (std::size_t k = 0; k < parts.size(); ++k) streams::copy_bytes(parts[k].current(), states.data() + k * sizeof(state));
    };
    comm_->join([&] { parts = folded(b, first, begins, m); }, [&] { return saved(parts); }, take, whole);
    comm_->broadcast(states);
    communicator::attempt attempted(*comm_);
    attempted([&] {
      for (index k = 0; k < count; ++k) sink(first + k, state_at<state>(states, k * static_cast<index>(sizeof(state))));
    });
    attempted.settle();
  }

  template <class Batch, class Out, class M, class Answer>
  void scan_some(const Batch& b, const Out& out, index first, index count, const M& m, scan_kind kind,
                 const Answer& answer) const {
    require_bytes<Batch, M>();
    using state = state_of<M>;
    using part = part_of<Batch, by_pieces<M>>;
    const by_pieces<M> in_order{&m};
    const auto begins = begins_of(b, first, count);
    std::vector<part> parts, before(begins.size(), part(in_order));
    comm_->join_before([&] { parts = folded(b, first, begins, in_order); }, [&] { return saved(parts); },
                       [&](std::span<const std::byte> bytes) {
                         const auto comes = loaded<part>(in_order, bytes);
                         for (std::size_t k = 0; k < parts.size(); ++k) {
                           for (part* const p : {&before[k], &parts[k]}) {
                             part joined = comes[k];
                             joined.merge(*p);
                             *p = std::move(joined);
                           }
                         }
                       });
    communicator::attempt attempted(*comm_);
    // The result at the end of each part, where there is one: the next part's first of an exclusive scan.
    constexpr index record = 1 + static_cast<index>(sizeof(state));
    std::vector<std::byte> ends(static_cast<std::size_t>(count * record));
    attempted([&] {
      for (index k = 0; k < count; ++k) {
        const auto end = scan_part(before[static_cast<std::size_t>(k)], b[first + k], out[first + k], m, kind, answer);
        if (!end) continue;
        ends[static_cast<std::size_t>(k * record)] = std::byte{1};
        streams::copy_bytes(*end, ends.data() + k * record + 1);
      }
    });
    attempted.settle();
    if (kind == scan_kind::inclusive) return;
    const auto all = comm_->gather(ends);
    attempted([&] {
      for (index k = 0; k < count; ++k) {
        const part& p = before[static_cast<std::size_t>(k)];
        if (b[first + k].size() == 0 || p.size() == 0 || !p.open_tile().empty()) continue;
        index at = ((rank() - 1) * count + k) * record;
        while (all[static_cast<std::size_t>(at)] == std::byte{}) at -= count * record;  // a part of nothing
        out[first + k][0] = answer(state_at<state>(all, at + 1));
      }
    });
    attempted.settle();
  }
  template <class State>
  [[nodiscard]] static State state_at(const std::vector<std::byte>& bytes, index at) {
    std::array<std::byte, sizeof(State)> state;
    std::copy_n(bytes.begin() + at, sizeof(State), state.begin());
    return std::bit_cast<State>(state);
  }

  /// The scan of one part after what stands before it, and its last result: none where it is empty. The first of an exclusive
  /// scan is not known here where the part begins with a tile.
  template <class Part, source Source, source Out, class M, class Answer>
  [[nodiscard]] std::optional<state_of<M>> scan_part(const Part& before, const Source& s, const Out& out, const M& m,
                                                     scan_kind kind, const Answer& answer) const {
    const auto on = local_.worker();
    const auto head = before.open_tile();
    host::carry_chain<M> chain(m, before.whole_tiles(), before.next_position() / tile_elements);
    index done = 0;
    if (!head.empty()) {  // a tile that another rank began
      auto tile = std::vector(head.begin(), head.end());
      const auto begun = static_cast<index>(tile.size());
      done = std::min(tile_elements - begun, s.size());
      for (index i = 0; i < done; ++i) tile.push_back(s[i]);
      std::vector<std::optional<place_of<Out>>> answers(tile.size());
      on.scan_on(chain, as_source(tile), into<place_of<Out>>{answers.data(), begun + done}, m, kind, answer);
      for (index i = 0; i < done; ++i) out[i] = *std::move(answers[static_cast<std::size_t>(begun + i)]);
    }
    on.scan_on(chain, piece<Source>{s, done, s.size() - done}, piece<Out>{out, done, s.size() - done}, m, kind, answer);
    return s.size() == 0 ? std::nullopt : chain.next().preceding;
  }
  /// Places for answers that nothing need have before.
  template <class Place>
  struct into {
    using place = Place;
    std::optional<Place>* first;
    index count;
    [[nodiscard]] index size() const noexcept { return count; }
    std::optional<Place>& operator[](index i) const noexcept { return first[i]; }
  };

  std::shared_ptr<const communicator> comm_;
  Local local_;
};

}  // namespace regroup::mpi

namespace regroup {

/// Runs of equal keys go from one rank to the next, where nobody counts them.
template <class Local, class Keys, class Range, class KeysOut, class Out, class M, class Projection = std::identity>
index reduce_by_key(const mpi::ranks<Local>&, const Keys&, const Range&, KeysOut&&, Out&&, const M&, const Projection& = {}) {
  static_assert(!std::is_same_v<M, M>,
                "regroup: reduce_by_key does not go over ranks; reduce this rank's runs with ranks.local()");
  return 0;
}

}  // namespace regroup

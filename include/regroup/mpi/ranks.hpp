// SPDX-License-Identifier: Apache-2.0
// An executor over the ranks of an MPI communicator. Each rank passes its own part; the whole is the parts in rank order.
// Each rank folds its part into an accumulator (stream.hpp) at its position, and adjacent accumulators merge to the bits of
// one fold, so results equal `seq` on any number of ranks and with any cuts. Level: rank.
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
#include "regroup/host/seq.hpp"
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
/// The accumulators that `saved` wrote.
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

/// A monoid whose leaves are folded as scans fold them, by contiguous pieces, even if it commutes or lifts tiles.
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

/// `const mpi::ranks all{MPI_COMM_WORLD};`, on every rank, is an executor of `reduce` and the scans, over ranges, rows, axes
/// and segments; with mpi/softmax.hpp of softmax, log_softmax, logsumexp and cross_entropy too. Every rank calls the verb with
/// its own part, which may be empty, and gets the answer of the whole; of a scan it gets the prefixes that end in its part.
/// Rows, lines along an axis and segments are each cut: all ranks pass equally many, of any lengths. `local` is the executor of
/// a rank's own part, by default all of its cores. States and elements must be trivially copyable and mean the same on every
/// rank.
///
/// A rank folds its part once (twice for a scan) and hands on ceil(log2 ranks) messages, each of at most two tiles (of 4096)
/// of elements and 2 log2 n states a row: a tile that ranks cut is folded by one of them. 1024 rows are in memory at a time.
/// Numbered elements must be numbered from where the part begins: `enumerate(data, first)`.
///
/// If an operator throws on one rank, all ranks throw: that one its own exception, the others mpi::error. If an argument is
/// wrong on one rank only, or a message cannot be allocated there, that rank throws before communicating and the others
/// block, as in any MPI collective.
template <class Local = parallel>
  requires requires(const Local& on) {
    { on.worker() } -> std::same_as<host::pool>;
  }
class ranks {
 public:
  static constexpr bool is_collective = true;

  /// Every rank of `comm`, which is duplicated. MPI must have begun (mpi::environment, or MPI_Init).
  explicit ranks(MPI_Comm comm, Local local = {}) : comm_(std::make_shared<communicator>(comm)), local_(std::move(local)) {}

  [[nodiscard]] int rank() const noexcept { return comm_->rank(); }
  [[nodiscard]] int size() const noexcept { return comm_->size(); }
  /// The executor for this rank's part.
  [[nodiscard]] const Local& local() const noexcept { return local_; }
  [[nodiscard]] const communicator& comm() const noexcept { return *comm_; }

  /// As in every executor; `sink` is called on every rank.
  template <batch Batch, class M, class Sink>
  void fold(const Batch& b, const M& m, const Sink& sink) const {
    some_at_a_time(b, [&](index first, index count) { fold_some(b, first, count, m, sink); });
  }
  template <batch Batch, batch Out, class M, class Answer>
  void scan(const Batch& b, const Out& out, const M& m, scan_kind kind, const Answer& answer) const {
    some_at_a_time(b, [&](index first, index count) { scan_some(b, out, first, count, m, kind, answer); });
  }
  /// Calls body(k, executor) for `rows` rows on this rank's threads: few rows get all of them each, many get one each.
  template <class Body>
  void each(index rows, const Body& body) const {
    if (rows < concurrency_of(local_)) {
      for (index k = 0; k < rows; ++k) body(k, local_);
    } else {
      local_.for_each(rows, host::grain_nanoseconds, [&](index k) { body(k, seq); });
    }
  }
  template <class Body>
  void for_each(index, double, const Body&) const {
    static_assert(!std::is_same_v<Body, Body>,
                  "regroup: over ranks go reduce and the scans, of ranges, rows, axes and segments, and softmax, log_softmax, "
                  "logsumexp and cross_entropy with regroup/mpi/softmax.hpp; this verb is one rank's, with ranks.local()");
  }

 private:
  static constexpr index most_rows = 1024;
  template <class Batch, class Body>
  void some_at_a_time(const Batch& b, const Body& body) const {
    static_assert(!requires { requires std::remove_cvref_t<decltype(b[0])>::is_numbered; },
                  "regroup: a projection of ranks would have positions in a rank's part, not in the whole; let generate number "
                  "elements from where the part begins");
    comm_->require_same(b.size(), "rows, or segments, or positions on the axes that stay");
    for (index row = 0; row < b.size(); row += most_rows) body(row, std::min(most_rows, b.size() - row));
  }

  template <class Batch, class M>
  static constexpr void require_bytes() {
    static_assert(std::is_trivially_copyable_v<state_of<M>> && std::is_trivially_copyable_v<element_in<Batch>>,
                  "regroup: ranks send each other states, and elements of the tiles they cut: both must be trivially copyable");
  }
  /// This rank's parts of some sources, folded. A failure is kept until all ranks have met.
  template <class M, class Batch>
  [[nodiscard]] auto parts_of(communicator::attempt& attempted, const Batch& b, index first, index count, const M& m) const {
    std::vector<accumulator<M, element_in<Batch>>> parts;
    std::array<index, most_rows> begins;
    for (index k = 0; k < count; ++k) begins[static_cast<std::size_t>(k)] = b[first + k].size();
    comm_->sum_before(std::span(begins).first(static_cast<std::size_t>(count)));
    attempted([&] {
      for (index k = 0; k < count; ++k) parts.emplace_back(m, begins[static_cast<std::size_t>(k)]);
      each(count, [&](index k, const auto& on) { parts[static_cast<std::size_t>(k)].push(on, b[first + k]); });
    });
    return parts;
  }

  template <class Batch, class M, class Sink>
  void fold_some(const Batch& b, index first, index count, const M& m, const Sink& sink) const {
    require_bytes<Batch, M>();
    using state = state_of<M>;
    communicator::attempt attempted(*comm_);
    auto parts = parts_of(attempted, b, first, count, m);
    comm_->join(attempted, [&] { return saved(parts); }, [&](std::span<const std::byte> bytes) {
      const auto after = loaded<typename decltype(parts)::value_type>(m, bytes);
      for (std::size_t k = 0; k < parts.size(); ++k) parts[k].merge(after[k]);
    });
    const auto states = [&] {
      std::vector<std::byte> all(parts.size() * sizeof(state));
      for (std::size_t k = 0; k < parts.size(); ++k) streams::copy_bytes(parts[k].current(), all.data() + k * sizeof(state));
      return all;
    };
    comm_->broadcast(attempted, states, [&](const std::vector<std::byte>& all) {
      for (index k = 0; k < count; ++k) sink(first + k, state_at<state>(all, k * static_cast<index>(sizeof(state))));
    });
    attempted.settle();
  }

  template <class Batch, class Out, class M, class Answer>
  void scan_some(const Batch& b, const Out& out, index first, index count, const M& m, scan_kind kind,
                 const Answer& answer) const {
    require_bytes<Batch, M>();
    using state = state_of<M>;
    using part = accumulator<by_pieces<M>, element_in<Batch>>;
    const by_pieces<M> in_order{&m};
    // The results at the end of each part and before it, where there are any: of an exclusive scan the next one's first.
    constexpr index record = 1 + static_cast<index>(sizeof(state));
    std::vector<std::byte> ends, preceding;
    std::vector<part> before;  // what stands before each part
    communicator::attempt attempted(*comm_);
    auto parts = parts_of(attempted, b, first, count, in_order);
    attempted([&] {
      before.assign(parts.size(), part(in_order));
      ends.resize(static_cast<std::size_t>(count * record));
      preceding.resize(ends.size());
    });
    comm_->join_before(attempted, [&] { return saved(parts); }, [&](std::span<const std::byte> bytes) {
      const auto comes = loaded<part>(in_order, bytes);
      for (std::size_t k = 0; k < parts.size(); ++k) {
        for (part* const p : {&before[k], &parts[k]}) {
          part joined = comes[k];
          joined.merge(*p);
          *p = std::move(joined);
        }
      }
    });
    attempted([&] {
      each(count, [&](index k, const auto& on) {
        const part& p = before[static_cast<std::size_t>(k)];
        const std::optional<state> end = scan_part(on.worker(), p, b[first + k], out[first + k], m, kind, answer);
        if (!end) return;
        ends[static_cast<std::size_t>(k * record)] = std::byte{1};
        streams::copy_bytes(*end, ends.data() + k * record + 1);
      });
    });
    if (kind == scan_kind::exclusive) {
      comm_->join_before(attempted, [&] { return ends; }, [&](const std::vector<std::byte>& bytes) {
        for (index at = 0; at < count * record; at += record) {
          for (auto* const to : {&preceding, &ends}) {  // of the nearest part that is not empty
            if ((*to)[static_cast<std::size_t>(at)] == std::byte{}) std::copy_n(bytes.begin() + at, record, to->begin() + at);
          }
        }
      });
      attempted([&] {
        for (index k = 0; k < count; ++k) {
          const part& p = before[static_cast<std::size_t>(k)];
          if (b[first + k].size() == 0 || p.size() == 0 || !p.open_tile().empty()) continue;
          out[first + k][0] = answer(state_at<state>(preceding, k * record + 1));
        }
      });
    }
    attempted.settle();
  }
  template <class State>
  [[nodiscard]] static State state_at(const std::vector<std::byte>& bytes, index at) {
    std::array<std::byte, sizeof(State)> state;
    std::copy_n(bytes.begin() + at, sizeof(State), state.begin());
    return std::bit_cast<State>(state);
  }

  /// Scans one part after the elements before it; returns its last result, or nullopt if the part is empty. In an exclusive
  /// scan the first result is not known here if the part begins at a tile boundary.
  template <class M, class X, source Source, source Out, class Answer>
  [[nodiscard]] static std::optional<state_of<M>> scan_part(const host::pool& on, const accumulator<by_pieces<M>, X>& before,
                                                            const Source& s, const Out& out, const M& m, scan_kind kind,
                                                            const Answer& answer) {
    if (s.size() == 0) return std::nullopt;
    host::carry_chain<M> chain(m, before.whole_tiles(), before.next_position() / tile_elements);
    index done = 0;
    if (const auto head = before.open_tile(); !head.empty()) {  // a tile that another rank began
      const auto begun = static_cast<index>(head.size());
      done = std::min(tile_elements - begun, s.size());
      const auto tile = generate(begun + done, [&](index i) -> X {
        return i < begun ? static_cast<X>(head[static_cast<std::size_t>(i)]) : static_cast<X>(s[i - begun]);
      });
      std::vector<std::optional<place_of<Out>>> answers(static_cast<std::size_t>(begun + done));
      on.scan_on(chain, tile, into<place_of<Out>>{answers.data(), begun + done}, m, kind, answer);
      for (index i = 0; i < done; ++i) out[i] = *std::move(answers[static_cast<std::size_t>(begun + i)]);
    }
    on.scan_on(chain, piece_of(s, done, s.size() - done), piece_of(out, done, s.size() - done), m, kind, answer);
    return chain.next().preceding;
  }
  /// Places for answers that need no default constructor.
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

/// Not available over ranks: runs of equal keys cross from one rank to the next, where nothing joins them.
template <class Local, class Keys, class Range, class KeysOut, class Out, class M, class Projection = std::identity>
index reduce_by_key(const mpi::ranks<Local>&, const Keys&, const Range&, KeysOut&&, Out&&, const M&, const Projection& = {}) {
  static_assert(!std::is_same_v<M, M>,
                "regroup: reduce_by_key does not go over ranks; reduce this rank's runs with ranks.local()");
  return 0;
}

}  // namespace regroup

// SPDX-License-Identifier: Apache-2.0
// A reduction whose elements arrive in pieces: the accumulator keeps a forest of whole tiles and the ragged ends, so
// pushing any pieces, and merging accumulators of adjacent positions, gives the bits of one reduce over everything.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/executor.hpp"
#include "regroup/host/folds.hpp"
#include "regroup/host/lanes.hpp"
#include "regroup/require_monoid.hpp"
#include "regroup/saving.hpp"

namespace regroup {

namespace streams {

inline constexpr std::uint64_t magic = 0x6d75636361706772;  // "rgpaccum"

/// The end of an accumulator's positions, and the most elements that one may hold.
inline constexpr index last_position = index{1} << 62;
/// a + b elements; throws argument_error where that is too many.
inline index sum_of_counts(index a, index b) {
  if (a > last_position - b) {
    throw_argument("an accumulator's positions and elements end at 2^62; got " + std::to_string(a) + " and " +
                   std::to_string(b) + " more");
  }
  return a + b;
}

}  // namespace streams

/// A running reduction: `accumulator acc{log_sum_exp<float>{}}; acc.push(chunk); acc.value()`. Elements are converted to X,
/// by default `lifted_element<M>`; name X where `lift` takes any type: `accumulator<count, Word>`. Holds O(log n) states and
/// at most two tiles of elements. The elements are copied, so a state may refer to what an X refers to (a string_view's
/// characters) but not to an X's own storage (a string's). Positions go up to 2^62.
template <class M, class X = lifted_element<M>>
class accumulator {
  static_assert(require_identity<M>());

 public:
  using state = state_of<M>;
  /// Storage type: std::vector<bool> is not contiguous.
  using kept = std::conditional_t<std::same_as<X, bool>, unsigned char, X>;

  /// Begins at position `first_position` (>= 0) of the whole; positions before it are absent.
  explicit accumulator(M m, index first_position = 0) : m_(std::move(m)), first_(first_position), next_(first_position) {
    require_monoid<M, X>();
    if (first_position < 0 || first_position > streams::last_position) {
      throw_argument("an accumulator's first position is from 0 to 2^62; got " + std::to_string(first_position));
    }
  }

  accumulator(const accumulator&) = default;
  accumulator& operator=(const accumulator&) = default;
  /// What is moved from is empty and begins at position 0.
  accumulator(accumulator&& other) noexcept(
      std::is_nothrow_move_constructible_v<M>&& std::is_nothrow_move_constructible_v<state>)
      : m_(std::move(other.m_)),
        first_(std::exchange(other.first_, 0)),
        next_(std::exchange(other.next_, 0)),
        count_(std::exchange(other.count_, 0)),
        base_(std::exchange(other.base_, std::nullopt)),
        left_(std::move(other.left_)),
        whole_(std::move(other.whole_)),
        right_(std::move(other.right_)) {}
  accumulator& operator=(accumulator&& other) noexcept(
      std::is_nothrow_move_assignable_v<M>&& std::is_nothrow_move_constructible_v<state>&&
          std::is_nothrow_move_assignable_v<state>)
    requires std::is_move_assignable_v<M>
  {
    m_ = std::move(other.m_);
    first_ = std::exchange(other.first_, 0);
    next_ = std::exchange(other.next_, 0);
    count_ = std::exchange(other.count_, 0);
    base_ = std::exchange(other.base_, std::nullopt);
    left_ = std::exchange(other.left_, {});
    whole_ = std::exchange(other.whole_, {});
    right_ = std::exchange(other.right_, {});
    return *this;
  }

  /// Adds the elements of a range after those that came before. O(n). If an operator throws, the accumulator holds those
  /// before some place in the range, `next_position()`, and may go on. Elements of a tile that is not whole yet are kept as
  /// they are: one that an operator refuses makes `value()` throw, and every push that makes the tile whole. An accumulator's
  /// own `open_tile()` is no such range, since it moves as it grows.
  template <class Range>
  void push(const Range& range) {
    push_source(as_source(range), [&](const auto& s, index first, index last, index begin) {
      add(host::fold_tiles(m_, s, first, last, begin));
    });
  }
  /// The same, with whole tiles folded by an executor's threads. The bits are the same.
  template <executor Executor, class Range>
  void push(const Executor& ex, const Range& range) {
    push_source(as_source(range), [&](const auto& s, index first, index last, index begin) {
      constexpr index some = 4096;  // states at a time
      for (; first < last; first += some) {
        for (auto& tile : tiles_apart(worker_of(ex), s, first, std::min(first + some, last), begin)) add(std::move(tile));
      }
    });
  }
  void push_one(const X& x) {
    const bool stays_open = next_ >= left_end() && std::ssize(right_) < tile_elements - 1;
    if (!stays_open || next_ >= streams::last_position - count_) return push(std::span(std::addressof(x), 1));
    right_.push_back(static_cast<kept>(x));
    ++next_;
  }

  /// Adds another accumulator. One that continues this one exactly (other.first_position() == next_position(), and only exact
  /// continuations were merged into it) merges to the bits of one fold, at any position. An empty one changes nothing. Any
  /// other is combined on the right as a state, within the error bound; later pushes then fold from position 0 and combine on
  /// the right of that. If an operator throws, nothing has changed.
  void merge(const accumulator& other) {
    if (other.is_empty()) return;
    if (other.first_ == next_ && !other.base_) {
      (void)streams::sum_of_counts(count_, other.next_);
      const index next = next_;
      const auto left = static_cast<std::ptrdiff_t>(left_.size());
      forest<state> whole = whole_;
      std::vector<kept> right = right_;
      try {
        push(other.left_);
        if (other.next_ > next_) {
          add(other.whole_);
          right_ = other.right_;
          next_ = other.next_;
        }
      } catch (...) {
        next_ = next;
        left_.erase(left_.begin() + left, left_.end());
        whole_ = std::move(whole);
        right_ = std::move(right);
        throw;
      }
      return;
    }
    const index count = streams::sum_of_counts(size(), other.size());
    base_ = is_empty() ? other.current() : m_(current(), other.current());
    count_ = count;
    first_ = next_ = 0;
    left_.clear();
    right_.clear();
    whole_ = {};
  }

  /// The answer so far; lower(identity) if there are no elements.
  [[nodiscard]] auto value() const { return regroup::lower(m_, current()); }
  /// The state so far.
  [[nodiscard]] state current() const {
    forest<state> all;
    if (!left_.empty()) {
      all.push(m_, {0, first_ / tile_elements, leaf(left_, first_ % tile_elements)});
    }
    all.append(m_, whole_);
    if (!right_.empty()) all.push(m_, {0, next_ / tile_elements, leaf(right_, 0)});
    std::optional<state> s = all.value(m_);
    if (!s) return base_ ? *base_ : m_.identity();
    return regroup::joined(m_, base_, *std::move(s));
  }

  /// The nodes of the whole tiles, and the elements after the last of them. Together they are everything, if the accumulator
  /// begins at position 0 and only exact continuations were merged into it.
  [[nodiscard]] const forest<state>& whole_tiles() const noexcept { return whole_; }
  [[nodiscard]] std::span<const kept> open_tile() const noexcept { return right_; }

  /// The number of elements pushed and merged.
  [[nodiscard]] index size() const noexcept { return count_ + (next_ - first_); }
  [[nodiscard]] index first_position() const noexcept { return first_; }
  [[nodiscard]] index next_position() const noexcept { return next_; }

  /// Everything as bytes, with the order version and a checksum; readable on machines of the same byte order. States and
  /// elements must be trivially copyable and refer to nothing outside: a pointer or a string_view means nothing elsewhere. If
  /// they are numbers, or aggregates and arrays of numbers (at most 12 members each), equal ones are saved as equal bytes
  /// whatever their padding holds; any other class is copied byte for byte, so give it no padding. The monoid's parameters
  /// are not saved: load with an equal monoid.
  [[nodiscard]] std::vector<std::byte> save() const {
    require_saveable();
    streams::writer out;
    out.put(streams::magic);
    out.put(order_version);
    out.put(static_cast<std::uint32_t>(sizeof(state)));
    out.put(static_cast<std::uint32_t>(sizeof(X)));
    out.put(first_);
    out.put(next_);
    out.put(count_);
    out.put_all(left_);
    out.put_all(right_);
    out.put(static_cast<std::uint64_t>(whole_.nodes().size()));
    for (const node<state>& n : whole_.nodes()) {
      out.put(static_cast<std::int64_t>(n.level));
      out.put(n.position);
      out.put(n.state);
    }
    out.put_all(base_ ? std::vector<state>{*base_} : std::vector<state>{});
    return std::move(out).finish();
  }
  /// Reads what `save` wrote. Throws format_error if the bytes are damaged, come from another order version, or hold states
  /// or elements of another size. It cannot detect another monoid whose states and elements have the same sizes.
  static accumulator load(M m, std::span<const std::byte> bytes) {
    require_saveable();
    using streams::reader;
    reader in(bytes);
    reader::require(in.take<std::uint64_t>() == streams::magic, "these bytes do not begin as a saved accumulator");
    reader::require(in.take<std::uint32_t>() == order_version,
                    "this accumulator was saved by another version of the order of combination; its bits would not match");
    reader::require(in.take<std::uint32_t>() == sizeof(state) && in.take<std::uint32_t>() == sizeof(X),
                    "this accumulator was saved with other state or element types");
    accumulator a(std::move(m));
    a.first_ = in.take<index>();
    a.next_ = in.take<index>();
    a.count_ = in.take<index>();
    a.left_ = in.take_all<kept>();
    a.right_ = in.take_all<kept>();
    const auto nodes = in.take<std::uint64_t>();
    index covered = -1;
    for (std::uint64_t i = 0; i < nodes; ++i) {
      const auto level = in.take<std::int64_t>();
      const auto position = in.take<index>();
      reader::require(0 <= level && level < 51 && 0 <= position && position < (index{1} << (51 - level)) &&
                          (covered < 0 || position << level == covered),
                      "the nodes of a saved accumulator are out of order");
      covered = (position + 1) << level;
      a.whole_.push(a.m_, {static_cast<int>(level), position, in.take<state>()});
    }
    const auto base = in.take_all<state>();
    reader::require(base.size() <= 1 && in.left() == 0, "a saved accumulator holds more than it should");
    if (!base.empty()) a.base_ = base.front();
    reader::require(a.is_consistent(), "the positions of a saved accumulator do not fit together");
    return a;
  }

 private:
  static constexpr void require_saveable() {
    static_assert(std::is_trivially_copyable_v<state> && std::is_trivially_copyable_v<X>,
                  "regroup: only accumulators with trivially copyable states and elements can be saved");
  }
  [[nodiscard]] bool is_empty() const noexcept { return next_ == first_ && !base_; }
  /// The first tile boundary at or after the first position.
  [[nodiscard]] index left_end() const noexcept {
    return (first_ + tile_elements - 1) / tile_elements * tile_elements;
  }
  [[nodiscard]] bool is_consistent() const {
    if (first_ < 0 || next_ < first_ || next_ > streams::last_position) return false;
    if (count_ < 0 || count_ > streams::last_position - next_ || (count_ > 0 && !base_)) return false;
    const index left = std::min(left_end(), next_) - first_;
    const index after = next_ - first_ - left;
    const auto& nodes = whole_.nodes();
    const index begin = nodes.empty() ? 0 : nodes.front().position << nodes.front().level;
    const index end = nodes.empty() ? 0 : (nodes.back().position + 1) << nodes.back().level;
    return static_cast<index>(left_.size()) == left && static_cast<index>(right_.size()) == after % tile_elements &&
           end - begin == after / tile_elements && (nodes.empty() || begin == left_end() / tile_elements);
  }
  [[nodiscard]] state leaf(const std::vector<kept>& elements, index offset) const {
    const auto n = static_cast<index>(elements.size());
    if constexpr (std::same_as<X, bool>) {  // a lift may tell them from numbers
      std::array<bool, tile_elements> are;
      std::ranges::transform(elements, are.begin(), [](kept x) { return x != 0; });
      return host::leaf_of(m_, are.data(), n, offset);
    } else {
      return host::leaf_of(m_, elements.data(), n, offset);
    }
  }
  /// Takes on what whole tiles became, node by node.
  void add(forest<state> tiles) {
    for (node<state>& n : std::move(tiles).nodes()) {
      const index end = (n.position + 1) << n.level;
      whole_.push_or_keep(m_, std::move(n));
      next_ = end * tile_elements;
    }
  }
  /// The forests of the tiles [first, last), each by itself, or some together, on a worker's threads.
  template <executor Worker, class Source>
  [[nodiscard]] std::vector<forest<state>> tiles_apart(const Worker& on, const Source& s, index first, index last,
                                                       index begin) const {
    constexpr index some = host::lifts_tiles<M, element_of<Source>> ? 64 : 1;
    std::vector<forest<state>> tiles(static_cast<std::size_t>((last - first + some - 1) / some));
    on.for_each(static_cast<index>(tiles.size()), static_cast<double>(some * tile_elements), [&](index k) {
      const index t = first + k * some;
      tiles[static_cast<std::size_t>(k)] = host::fold_tiles(m_, s, t, std::min(t + some, last), begin);
    });
    return tiles;
  }
  struct as_element {
    template <class Y>
    constexpr X operator()(const Y& y) const {
      return static_cast<X>(regroup::widen(y));
    }
  };
  /// A source of elements that fold as X does: of X, or of 16-bit floats that widen to it.
  template <class Source>
  [[nodiscard]] static auto converted(const Source& s) {
    using element = element_of<Source>;
    constexpr bool folds_as_x = std::same_as<element, X> || std::same_as<widened<element>, X>;
    return regroup::project(s, std::conditional_t<folds_as_x, std::identity, as_element>{});
  }
  /// Elements go to the ragged ends; the whole tiles [first, last) in between to add_tiles(source, first, last, begin), where
  /// `begin` is the position of the source's first element.
  template <class Source, class AddTiles>
  void push_source(const Source& s, const AddTiles& add_tiles) {
    static_assert(std::convertible_to<decltype(regroup::widen(s[0])), widened<X>>,
                  "regroup: what is pushed does not become this accumulator's element; name its type where the monoid's lift "
                  "takes many: accumulator<count, std::string>");
    static_assert(!has_members<M> || std::same_as<element_of<Source>, kept> ||
                      requires { std::type_identity_t<widened<X>[]>{regroup::widen(s[0])}; },
                  "regroup: what is pushed is narrowed to the one element that all members of this fanout share, where reduce "
                  "narrows it for each; say which elements come: accumulator<fanout<...>, int>");
    detail::require_uncut<element_of<Source>, X>();
    if constexpr (requires { typename M::element; }) detail::require_fit<element_of<Source>, X>();
    const index n = s.size();
    (void)streams::sum_of_counts(count_, streams::sum_of_counts(next_, n));
    for (index i = 0; i < n;) {
      if (next_ >= left_end() && right_.empty() && n - i >= tile_elements) {
        const index first = next_ / tile_elements, tiles = (n - i) / tile_elements;
        add_tiles(converted(s), first, first + tiles, next_ - i);
        i += tiles * tile_elements;
        continue;
      }
      const bool is_left = next_ < left_end();
      std::vector<kept>& end = is_left ? left_ : right_;
      const std::size_t before = end.size();
      constexpr bool is_plain = std::is_trivially_copyable_v<kept> && std::is_copy_assignable_v<kept>;
      constexpr bool are_kept = std::same_as<element_of<Source>, kept> && is_plain;
      constexpr bool are_numbers = std::is_arithmetic_v<widened<element_of<Source>>> && std::is_arithmetic_v<kept>;
      index count = 0;
      if constexpr (are_kept || are_numbers) {
        if (const auto* const first = contiguous(s); first != nullptr) {
          count = std::min(n - i, is_left ? left_end() - next_ : tile_elements - static_cast<index>(right_.size()));
          if constexpr (are_kept) {
            end.insert(end.end(), first + i, first + i + count);
          } else {
            end.resize(before + static_cast<std::size_t>(count));
            host::dispatch([to = end.data() + before, from = first + i, count] {
              for (index k = 0; k < count; ++k) to[k] = static_cast<kept>(as_element{}(from[k]));
            });
          }
        }
      }
      if (count == 0) {
        end.push_back(static_cast<kept>(as_element{}(s[i])));
        count = 1;
      }
      if (static_cast<index>(right_.size()) == tile_elements) {
        try {
          whole_.push_or_keep(m_, {0, next_ / tile_elements, leaf(right_, 0)});
        } catch (...) {
          while (end.size() > before) end.pop_back();
          throw;
        }
        right_.clear();
      }
      i += count;
      next_ += count;
    }
  }

  M m_;
  index first_;
  index next_;
  index count_ = 0;           // elements inside base_
  std::optional<state> base_;  // what inexact merges left, to the left of everything else
  std::vector<kept> left_;       // raw elements up to the first tile boundary, where first_ is not on one
  forest<state> whole_;
  std::vector<kept> right_;      // raw elements of the open tile
};

template <class M>
accumulator(M) -> accumulator<M>;
template <class M>
accumulator(M, index) -> accumulator<M>;
template <class M>
  requires(!has_identity<M>)
accumulator(M, index = 0) -> accumulator<M, int>;  // only for the sentence that it begins with

}  // namespace regroup

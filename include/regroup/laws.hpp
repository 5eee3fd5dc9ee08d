// SPDX-License-Identifier: Apache-2.0
// The laws of a monoid as predicates over the monoid, some values and an equivalence. They need no test framework: give
// them any values, or let check_laws.hpp make the values, shrink them and write the report.
//     identity:      e + s == s == s + e        associativity:  (a + b) + c == a + (b + c)
//     homomorphism:  fold(xs ++ ys) == fold(xs) + fold(ys)
// `equal(left, right)` decides; `laws::bitwise{}` is the strictest. Level: element; needs nothing that folds.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "regroup/laws/choices.hpp"
#include "regroup/laws/image.hpp"
#include "regroup/monoid.hpp"

namespace regroup::laws {

/// A vector whose elements are contiguous for bool too.
template <class T>
class sequence {
 public:
  void push_back(T x) {
    if constexpr (std::same_as<T, bool>) {
      if (size_ == room_) {
        room_ = 2 * room_ + 8;
        auto larger = std::make_unique<bool[]>(room_);
        std::copy_n(flags_.get(), size_, larger.get());
        flags_ = std::move(larger);
      }
      flags_[size_++] = x;
    } else {
      values_.push_back(std::move(x));
    }
  }
  void append(std::span<const T> xs) {
    for (const T& x : xs) push_back(x);
  }
  [[nodiscard]] std::size_t size() const { return all().size(); }
  [[nodiscard]] std::span<const T> all() const {
    if constexpr (std::same_as<T, bool>) {
      return {flags_.get(), size_};
    } else {
      return values_;
    }
  }

 private:
  std::conditional_t<std::same_as<T, bool>, std::vector<char>, std::vector<T>> values_;
  std::unique_ptr<bool[]> flags_;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

/// How to group n states: 0 from the left, 1 from the right, 2 in halves; any other word draws a tree.
struct grouping {
  std::uint64_t word = 0;
};

/// The fold of states in the given order and grouping; the identity if there are none.
template <class M>
state_of<M> fold(const M& m, std::span<const state_of<M>> states, grouping g = {}) {
  const std::size_t n = states.size();
  if (n == 0) return m.identity();
  if (n == 1) return states[0];
  if (g.word == 0) {
    state_of<M> s = states[0];
    for (std::size_t i = 1; i < n; ++i) s = state_of<M>(m(std::move(s), states[i]));
    return s;
  }
  if (g.word == 1) {
    state_of<M> s = states[n - 1];
    for (std::size_t i = n - 1; i-- > 0;) s = m(states[i], std::move(s));
    return s;
  }
  const std::size_t left = g.word == 2 ? n / 2 : 1 + static_cast<std::size_t>(mix(g.word ^ n) % (n - 1));
  const auto child = [&](std::uint64_t which) { return g.word == 2 ? g : grouping{mix(g.word + which) | 4}; };
  return m(fold(m, states.first(left), child(1)), fold(m, states.subspan(left), child(2)));
}

/// Every element lifted.
template <class M, class X>
sequence<state_of<M>> lift_all(const M& m, std::span<const X> xs) {
  sequence<state_of<M>> states;
  for (const X& x : xs) states.push_back(regroup::lift(m, x));
  return states;
}

/// The numbers 0 .. n-1 in an order drawn from a word.
inline std::vector<std::size_t> shuffled(std::size_t n, std::uint64_t word) {
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[mix(word + i) % i]);
  return order;
}

template <class M, class Equal = bitwise>
bool identity_twice(const M& m, Equal&& equal = {}) {
  return equal(m(m.identity(), m.identity()), m.identity());
}
template <class M, class Equal = bitwise>
bool identity_left(const M& m, const state_of<M>& s, Equal&& equal = {}) {
  return equal(m(m.identity(), s), s);
}
template <class M, class Equal = bitwise>
bool identity_right(const M& m, const state_of<M>& s, Equal&& equal = {}) {
  return equal(m(s, m.identity()), s);
}

/// All five groupings of a b c d, each against ((a b) c) d.
template <class M, class Equal = bitwise>
bool associativity(const M& m, const state_of<M>& a, const state_of<M>& b, const state_of<M>& c, const state_of<M>& d,
                   Equal&& equal = {}) {
  const state_of<M> left = m(m(m(a, b), c), d);
  return equal(left, m(m(a, m(b, c)), d)) && equal(left, m(m(a, b), m(c, d))) && equal(left, m(a, m(m(b, c), d))) &&
         equal(left, m(a, m(b, m(c, d))));
}

template <class M, class Equal = bitwise>
bool commutativity(const M& m, const state_of<M>& a, const state_of<M>& b, Equal&& equal = {}) {
  return equal(m(a, b), m(b, a));
}

/// s + s == s: maximum, any, all; not a law of every monoid.
template <class M, class Equal = bitwise>
bool idempotence(const M& m, const state_of<M>& s, Equal&& equal = {}) {
  return equal(m(s, s), s);
}
/// z + s == z == s + z: a NaN for maximum, `true` for any; not a law of every monoid.
template <class M, class Equal = bitwise>
bool absorption(const M& m, const state_of<M>& z, const state_of<M>& s, Equal&& equal = {}) {
  return equal(m(z, s), z) && equal(m(s, z), z);
}

/// Any tree over the same states gives the same state.
template <class M, class Equal = bitwise>
bool regrouping(const M& m, std::span<const state_of<M>> states, grouping g, Equal&& equal = {}) {
  return equal(fold(m, states, g), fold(m, states));
}

/// fold(xs ++ ys) == fold(xs) + fold(ys), where xs are the first `cut` states.
template <class M, class Equal = bitwise>
bool homomorphism(const M& m, std::span<const state_of<M>> states, std::size_t cut, Equal&& equal = {}) {
  return equal(fold(m, states), m(fold(m, states.first(cut)), fold(m, states.subspan(cut))));
}

/// Combining the identity beside any node of a tree changes no bit.
template <class M, class Equal = bitwise>
bool identity_anywhere(const M& m, std::span<const state_of<M>> states, grouping g, Equal&& equal = {}) {
  struct padded {
    const M& m;
    mutable std::uint64_t draw;
    state_of<M> identity() const { return m.identity(); }
    state_of<M> operator()(state_of<M> a, state_of<M> b) const {
      draw = mix(draw);
      if (draw % 3 == 0) a = m(m.identity(), std::move(a));
      if (draw % 5 == 0) b = state_of<M>(m(std::move(b), m.identity()));
      auto s = m(std::move(a), std::move(b));
      return draw % 7 < 3 ? m(std::move(s), m(m.identity(), m.identity())) : s;
    }
  };
  return equal(fold(padded{m, g.word}, states, g), fold(m, states, g));
}

/// The sizes of the shards of n elements: one; two; singles; by sqrt n; growing; any; with empty ones among them.
inline std::vector<std::size_t> shard_sizes(std::size_t n, std::uint64_t word) {
  std::vector<std::size_t> sizes;
  std::size_t left = n;
  const auto take = [&](std::size_t k) {
    sizes.push_back(std::min(k, left));
    left -= sizes.back();
  };
  const auto root = static_cast<std::size_t>(std::sqrt(static_cast<double>(n)));
  const std::uint64_t way = word % 6;
  if (word % 4 == 3) take(0);
  std::size_t i = 0;
  while (left > 0) {
    take(way == 0   ? n
         : way == 1 ? (n + 1) / 2
         : way == 2 ? 1
         : way == 3 ? std::max<std::size_t>(root, 1)
         : way == 4 ? std::size_t{1} << std::min<std::size_t>(i, 40)
                    : static_cast<std::size_t>(mix(word + i) % (left + 1)));
    if (word % 4 == 2 && i % 2 == 0) take(0);
    ++i;
  }
  if (word % 4 == 3) take(0);
  return sizes;
}

/// Shards folded apart and then merged from the left, with the answer taken after every merge, give the state and the answer
/// of one fold. With `shuffle` the shards come in any order, which only commutative monoids allow.
template <class M, class Equal = bitwise>
bool sharding(const M& m, std::span<const state_of<M>> states, std::uint64_t word, bool shuffle, Equal&& equal = {}) {
  std::vector<std::span<const state_of<M>>> shards;
  for (const std::size_t size : shard_sizes(states.size(), word)) {
    shards.push_back(states.first(size));
    states = states.subspan(size);
  }
  state_of<M> merged = m.identity();
  auto answer = regroup::lower(m, merged);
  sequence<state_of<M>> in_order;
  const auto order = shuffled(shards.size(), word);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const auto shard = shards[shuffle ? order[i] : i];
    merged = state_of<M>(m(std::move(merged), fold(m, shard)));
    answer = regroup::lower(m, merged);
    in_order.append(shard);
  }
  const auto whole = fold(m, in_order.all());
  return equal(merged, whole) && equal(answer, regroup::lower(m, whole));
}

/// For commutative monoids: any order of the states gives the same result.
template <class M, class Equal = bitwise>
bool permutation(const M& m, std::span<const state_of<M>> states, std::uint64_t word, Equal&& equal = {}) {
  sequence<state_of<M>> moved;
  for (const std::size_t i : shuffled(states.size(), word)) moved.push_back(states[i]);
  return equal(fold(m, moved.all()), fold(m, states));
}

/// lower has no effect on the state and gives the same answer each time.
template <class M, class Equal = bitwise>
bool lower_is_pure(const M& m, const state_of<M>& s, Equal&& equal = {}) {
  const state_of<M> before = s;
  const auto answer = regroup::lower(m, s);
  const auto again = regroup::lower(m, s);
  return equal(before, s) && equal(answer, again);
}

/// The same inputs give the same bits again.
template <class M, class Equal = bitwise>
bool repeatability(const M& m, const state_of<M>& a, const state_of<M>& b, Equal&& equal = {}) {
  return equal(m(a, b), m(a, b));
}

/// A trivially copyable state survives as bytes: saved, sent, in shared memory.
template <class M, class Equal = bitwise>
requires std::is_trivially_copyable_v<state_of<M>>
bool round_trip(const M& m, const state_of<M>& s, Equal&& equal = {}) {
  std::vector<unsigned char> bytes(sizeof(s));
  std::memcpy(bytes.data(), &s, sizeof(s));
  state_of<M> back = m.identity();
  std::memcpy(&back, bytes.data(), sizeof(s));
  return equal(back, s);
}

/// The error allowed to one fold, from the inputs: specialise for a monoid `M` whose rounding is understood.
///     static std::vector<long double> state(const M& m, std::span<const X> xs, index depth);
///     static std::vector<long double> answer(const M& m, std::span<const X> xs, index depth);      // optional
/// give one absolute error for each real number of the state (of the answer) in order, where no element has more than
/// `depth` combines above it; infinite where anything may come out (overflow). A monoid may instead have a member
///     state error_bound(std::span<const X> xs, index depth) const;
/// whose reals are those errors. Without either, check_laws estimates it (check_laws.hpp).
template <class M>
struct bound;

}  // namespace regroup::laws

// SPDX-License-Identifier: Apache-2.0
// The laws of one monoid over one element type as a list that a search can run: each law evaluates its equations on
// elements and a word, whatever made them. The two families that hold the library are among them: any executor, scan and
// stream against the sequential fold, bitwise, and the tile lift against the fold of its elements, within the bound.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/laws.hpp"
#include "regroup/laws/comparison.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "regroup/stream.hpp"

namespace regroup::laws {

/// What a law is evaluated on.
template <class M, class X>
struct scene {
  const M& exact;      ///< the monoid itself
  const nudged<M>& m;  ///< the same, nudged while errors are estimated
  std::span<const X> xs;
  std::uint64_t word = 0;
  collector& equal;

  using state = state_of<M>;
  [[nodiscard]] index n() const { return static_cast<index>(xs.size()); }
  [[nodiscard]] sequence<state> lifted() const { return lift_all(m, xs); }
};

/// Where a law cuts its elements, for the report.
using cuts = std::vector<std::size_t>;

template <class M, class X>
struct law {
  std::string_view name;
  enum class strength { bitwise, within, declared } asks = strength::bitwise;  ///< declared: within, bitwise if strict
  int most = 24;                                                               ///< elements to a case
  bool is_long = false;  ///< a few elements repeated to a length about the edges of lanes and tiles
  std::size_t operands = 1;  ///< the groups that it cuts its elements into
  std::function<void(const scene<M, X>&)> run;
};

/// Cuts n elements into k groups: evenly for even words, anywhere for odd ones.
inline cuts groups(std::size_t n, std::size_t k, std::uint64_t word) {
  cuts at{0};
  for (std::size_t i = 1; i < k; ++i) {
    const std::size_t even = (i * n + k - 1) / k;
    at.push_back(word % 2 == 0 ? even : static_cast<std::size_t>(mix(word + i) % (n + 1)));
  }
  at.push_back(n);
  std::ranges::sort(at);
  return at;
}

namespace detail {

/// State number i of k, folded from its group of the scene's elements.
template <class M, class X>
class operands {
 public:
  operands(const scene<M, X>& s, std::size_t k) : s_(s), leaves_(s.lifted()), at_(groups(leaves_.size(), k, s.word)) {
    s_.equal.depth = s_.n() + 4;
  }
  [[nodiscard]] state_of<M> operator[](std::size_t i) const {
    return fold(s_.m, leaves_.all().subspan(at_[i], at_[i + 1] - at_[i]), {s_.word < 4 ? 0 : mix(s_.word + i)});
  }

 private:
  const scene<M, X>& s_;
  sequence<state_of<M>> leaves_;
  cuts at_;
};

/// Collects states and answers by turns.
struct taking_turns {
  collector& to;
  bool answer = false;
  template <class T>
  bool operator()(const T& left, const T& right) {
    to.answers = std::exchange(answer, !answer);
    return to(left, right);
  }
};

template <class M, class X>
void algebra(std::vector<law<M, X>>& all) {
  using scene = scene<M, X>;
  using strength = typename law<M, X>::strength;
  using State = state_of<M>;
  const auto add = [&](std::string_view name, strength asks, std::size_t k, void (*run)(const scene&)) {
    all.push_back({name, asks, k == 0 ? 0 : 24, false, k, run});
  };

  add("identity + identity", strength::bitwise, 0, [](const scene& s) {
    s.equal.names = {{"identity + identity", "identity"}};
    identity_twice(s.m, s.equal);
  });
  add("identity on the left", strength::bitwise, 1, [](const scene& s) {
    s.equal.names = {{"identity + s", "s"}};
    identity_left(s.m, operands(s, 1)[0], s.equal);
  });
  add("identity on the right", strength::bitwise, 1, [](const scene& s) {
    s.equal.names = {{"s + identity", "s"}};
    identity_right(s.m, operands(s, 1)[0], s.equal);
  });
  add("identity anywhere in a tree", strength::bitwise, 1, [](const scene& s) {
    s.equal.names = {{"with identities", "without"}};
    identity_anywhere(s.m, s.lifted().all(), {s.word}, s.equal);
  });
  add("associativity", strength::within, 4, [](const scene& s) {
    s.equal.names = {{"((a b) c) d", "(a (b c)) d"},
                     {"((a b) c) d", "(a b) (c d)"},
                     {"((a b) c) d", "a ((b c) d)"},
                     {"((a b) c) d", "a (b (c d))"}};
    const operands v(s, 4);
    associativity(s.m, v[0], v[1], v[2], v[3], s.equal);
  });
  add("any tree", strength::within, 1, [](const scene& s) {
    s.equal.depth = s.n();
    s.equal.names = {{"another tree", "from the left"}};
    regrouping(s.m, s.lifted().all(), {s.word < 2 ? s.word + 1 : s.word}, s.equal);
  });
  add("chunks: R(a ++ b) = R(a) R(b)", strength::within, 2, [](const scene& s) {
    s.equal.depth = s.n();
    s.equal.names = {{"R(a ++ b)", "R(a) R(b)"}};
    homomorphism(s.m, s.lifted().all(), groups(s.xs.size(), 2, s.word)[1], s.equal);
  });
  add("shards, the answer after each", strength::within, 1, [](const scene& s) {
    s.equal.depth = s.n();
    s.equal.left_name = "merged shards";
    s.equal.right_name = "one fold";
    sharding(s.m, s.lifted().all(), s.word, is_commutative<M>, taking_turns{s.equal});
  });
  if constexpr (is_commutative<M>) {
    add("commutativity", strength::declared, 2, [](const scene& s) {
      s.equal.names = {{"a b", "b a"}};
      const operands v(s, 2);
      commutativity(s.m, v[0], v[1], s.equal);
    });
    add("any order", strength::within, 1, [](const scene& s) {
      s.equal.depth = s.n();
      s.equal.names = {{"shuffled", "in order"}};
      permutation(s.m, s.lifted().all(), s.word, s.equal);
    });
  }
  if constexpr (has_append<M, X>) {
    add("append = combine with a lift", strength::bitwise, 1, [](const scene& s) {
      s.equal.names = {{"append(n, s, x)", "s lift(x)"}};
      State folded = s.exact.identity();
      for (index n = 0; n < s.n(); ++n) {
        const X& x = s.xs[static_cast<std::size_t>(n)];
        const State next = s.exact(folded, regroup::lift(s.exact, x));
        if (n > 0) s.equal(regroup::append(s.exact, n, folded, x), next);
        folded = next;
      }
    });
  }
  add("lower is pure", strength::bitwise, 1, [](const scene& s) {
    s.equal.names = {{"state before", "state after"}, {"first answer", "second answer"}};
    lower_is_pure(s.exact, operands(s, 1)[0], s.equal);
  });
  add("the same inputs twice", strength::bitwise, 2, [](const scene& s) {
    s.equal.names = {{"a b", "a b again"}};
    const operands v(s, 2);
    repeatability(s.exact, v[0], v[1], s.equal);
  });
  if constexpr (std::is_trivially_copyable_v<State>) {
    add("round trip through bytes", strength::bitwise, 1, [](const scene& s) {
      s.equal.names = {{"state from bytes", "state"}};
      round_trip(s.exact, operands(s, 1)[0], s.equal);
    });
  }
}

/// A state in a place of its own, so that threads may write neighbours.
template <class State>
struct place {
  State state;
};

/// work(executor), with `seq` for one thread and `par` for more.
template <class Work>
void on_threads(int count, const Work& work) {
  work(count == 1 ? worker_of(seq) : worker_of(par.with_threads(count)));
}

template <class M, class Range>
state_of<M> folded(int threads, const M& m, const Range& xs) {
  state_of<M> s = m.identity();
  on_threads(threads, [&](const auto& ex) {
    ex.fold(single{as_source(xs)}, m, [&](index, const state_of<M>& all) { s = all; });
  });
  return s;
}

template <class M, class Range>
std::vector<place<state_of<M>>> scanned(int threads, const M& m, const Range& xs) {
  std::vector<place<state_of<M>>> prefixes(static_cast<std::size_t>(std::ranges::size(xs)), {m.identity()});
  on_threads(threads, [&](const auto& ex) {
    ex.scan(single{as_source(xs)}, single{as_source(std::span(prefixes))}, m, scan_kind::inclusive,
            [](const state_of<M>& s) { return place<state_of<M>>{s}; });
  });
  return prefixes;
}

/// Combines above any element in the order of executor.hpp.
inline index contract_depth(index n) {
  return piece_elements + 16 + static_cast<index>(std::bit_width(static_cast<std::uint64_t>(tiles_of(n))));
}

inline constexpr int thread_counts[] = {2, 3, 7};

/// The elements again and again, until threads share them for certain.
template <class M, class X>
sequence<X> shared(const scene<M, X>& s) {
  const auto n = static_cast<std::size_t>((host::copies_scalars<state_of<M>>() ? 17 : 5) * tile_elements + 1);
  sequence<X> xs;
  for (std::size_t i = 0; i < n; ++i) xs.push_back(s.xs[i % s.xs.size()]);
  return xs;
}

template <class M, class X>
void executors(std::vector<law<M, X>>& all) {
  using scene = scene<M, X>;
  using strength = typename law<M, X>::strength;
  const auto add = [&](std::string_view name, strength asks, void (*run)(const scene&)) {
    all.push_back({name, asks, 8, true, 1, run});
  };
  add(has_lift_tile<M, host::tile<host::load_from<X>>> ? "tile lift = fold of its elements" : "reduce = fold",
      strength::within, [](const scene& s) {
        s.equal.depth = contract_depth(s.n());
        s.equal.names = {{"seq", "balanced fold"}};
        s.equal(folded(1, s.exact, s.xs), fold(s.m, s.lifted().all(), {2}));
      });
  using tile = host::tile<host::load_from<X>>;
  if constexpr (has_lift_tiles<M, tile>) {  // of three tiles of the first element, with the others at some places
    all.push_back({"lift of tiles = lifts of each", strength::bitwise, 8, false, 1, [](const scene& s) {
      s.equal.names = {{"lift_tiles", "lift_tile of each, combined"}};
      if (s.xs.empty()) return;
      const std::size_t sizes[] = {40, lanes, host::copies_scalars<state_of<M>>() ? tile_elements : lanes};
      const std::size_t size = sizes[mix(s.word) % 3], n = 3 * size;
      sequence<X> xs;
      for (std::size_t i = 0; i < n; ++i) {
        std::size_t which = s.xs.size() - 1;
        while (which > 0 && mix(s.word + which) % n != i) --which;
        xs.push_back(s.xs[which]);
      }
      const auto each = [&](const auto& body) {
        for (std::size_t t = 0; t < 3; ++t) body(tile{{xs.all().data() + t * size}, static_cast<index>(size)});
      };
      std::optional<state_of<M>> combined;
      each([&](const tile& t) { combined.emplace(regroup::joined(s.exact, combined, s.exact.lift_tile(t))); });
      s.equal(s.exact.lift_tiles(each), *combined);
    }});
  }
  add("2, 3 and 7 threads = seq", strength::bitwise, [](const scene& s) {
    s.equal.left_name = "threads";
    s.equal.right_name = "seq";
    const auto agree = [&](std::span<const X> xs) {
      const auto expected = folded(1, s.exact, xs);
      for (const int threads : thread_counts) s.equal(folded(threads, s.exact, xs), expected);
    };
    if (s.xs.empty() || mix(s.word) % 8 != 0) return agree(s.xs);
    agree(shared(s).all());
  });
  add("stream in pieces = batch", strength::bitwise, [](const scene& s) {
    s.equal.names = {{"pushed in pieces", "seq"}, {"two streams merged", "seq"}};
    const auto expected = folded(1, s.exact, s.xs);
    const auto push_from = [&](auto& acc, std::size_t first, std::size_t last, std::uint64_t word) {
      for (std::size_t i = 0; first < last; ++i) {
        const auto size =
            std::min<std::size_t>(last - first, static_cast<std::size_t>(mix(word + i) % (last - first + 1)) + 1);
        acc.push(s.xs.subspan(first, size));
        first += size;
      }
    };
    accumulator<M, X> whole{s.exact};
    push_from(whole, 0, s.xs.size(), s.word);
    s.equal(whole.current(), expected);
    const std::size_t middle = groups(s.xs.size(), 2, s.word | 1)[1];
    accumulator<M, X> left{s.exact};
    accumulator<M, X> right{s.exact, static_cast<index>(middle)};
    push_from(left, 0, middle, s.word + 1);
    push_from(right, middle, s.xs.size(), s.word + 2);
    left.merge(right);
    s.equal(left.current(), expected);
  });
  add("scan: threads = seq, prefixes agree", strength::bitwise, [](const scene& s) {
    s.equal.left_name = "scan";
    s.equal.right_name = "seq's scan, or scan of a prefix";
    const auto expected = scanned(1, s.exact, s.xs);
    const auto agree = [&](std::span<const X> xs, const auto& on_one) {
      for (const int threads : thread_counts) {
        const auto found = scanned(threads, s.exact, xs);
        for (std::size_t step = found.size() / 16 + 1, i = 0; i < found.size(); i += step) {
          s.equal(found[found.size() - 1 - i].state, on_one[found.size() - 1 - i].state);
        }
      }
    };
    agree(s.xs, expected);
    constexpr bool keeps_small = std::is_trivially_copyable_v<state_of<M>> && sizeof(state_of<M>) <= 512;  // all are kept
    if (keeps_small && !s.xs.empty() && mix(s.word) % 8 == 0) {
      const sequence<X> many = shared(s);
      agree(many.all(), scanned(1, s.exact, many.all()));
    }
    for (std::uint64_t draw = 0; draw < 3 && !s.xs.empty(); ++draw) {
      const auto k = 1 + static_cast<std::size_t>(mix(s.word + draw) % s.xs.size());
      s.equal(scanned(1, s.exact, s.xs.first(k)).back().state, expected[k - 1].state);
    }
  });
  add("last of a scan = reduce", strength::within, [](const scene& s) {
    if (s.xs.empty()) return;
    s.equal.depth = contract_depth(s.n());
    s.equal.names = {{"scan's last", "balanced fold"}};
    s.equal(scanned(1, s.exact, s.xs).back().state, fold(s.m, s.lifted().all(), {2}));
  });
}

}  // namespace detail
}  // namespace regroup::laws

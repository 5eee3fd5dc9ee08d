// SPDX-License-Identifier: Apache-2.0
// The elements of a trial: what its words stand for, repeated where a law asks for many, and how a counterexample shows them.
// Level: one case.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "regroup/laws.hpp"
#include "regroup/laws/choices.hpp"
#include "regroup/laws/image.hpp"
#include "regroup/laws/search.hpp"
#include "regroup/laws/subject.hpp"

namespace regroup::laws::detail {

/// Lengths about the edges of lanes, warps and tiles, short ones first, and others. A state that owns memory may grow with
/// the number of its elements, so it gets one tile at most.
inline index long_length(std::uint64_t word, std::size_t base, bool is_plain) {
  constexpr index edges[] = {1,   2,   3,   4,   5,   31,  32,   33,   0,    7,    63,   64,
                             127, 128, 129, 255, 300, 700, 4095, 4096, 4097, 8192, 8193, 20489};
  const std::uint64_t known = base < 3 ? 18 : is_plain ? std::size(edges) : 21;
  const std::uint64_t at = word % (known + 3);
  return at < known ? edges[at] : static_cast<index>(mix(word) % static_cast<std::uint64_t>(edges[known - 1]));
}

/// Draws elements X for any law (subject.hpp); states that own memory get shorter ones.
template <class X, class Generate>
class draws {
 public:
  draws(const Generate& generate, bool has_plain_states) : generate_(generate), has_plain_states_(has_plain_states) {}

  /// `special`: whether reals may be NaN or infinite.
  template <class Law>
  sequence<X> elements(const Law& l, const trial& t, bool special) const {
    const bool rare_ones = are_rare(l, t);
    sequence<X> xs = drawn(t, rare_ones, special);
    if (!l.is_long || t.elements.empty()) return xs;
    const auto base = xs.all();
    const auto n = static_cast<std::size_t>(long_length(t.shape, t.elements.size(), has_plain_states_));
    const bool at_the_end = mix(~t.shape) % 8 != 0;
    std::vector<std::size_t> which(n, 0);
    for (std::size_t i = 0; i < n && !rare_ones; ++i) which[i] = i < base.size() ? i : mix(t.shape + i) % base.size();
    for (std::size_t k = 1; k < base.size() && k <= n && rare_ones; ++k) which[at_the_end ? n - k : mix(t.shape + k) % n] = k;
    sequence<X> repeated;
    for (const std::size_t k : which) repeated.push_back(base[k]);
    return repeated;
  }

  /// The elements, with a bar where the law cuts them.
  template <class Law>
  std::string describe(const Law& l, const trial& t, std::span<const X> xs, bool special) const {
    if (l.most == 0) return "";
    const auto list = [](std::span<const X> some) {
      std::string text;
      for (const X& x : some) text += (text.empty() ? "" : ", ") + text_of(x);
      return text.empty() ? std::string("nothing") : text;
    };
    if (l.is_long && xs.size() > 4) {
      const bool rare_ones = are_rare(l, t);
      const sequence<X> base = drawn(t, rare_ones, special);
      return "with " + std::to_string(xs.size()) + " elements drawn from " + list(base.all()) +
             (rare_ones ? ", all but the first of them once" : "");
    }
    const cuts at = groups(xs.size(), l.operands, t.shape);
    if (at.size() == 2) return "with " + list(xs);
    std::string text;
    for (std::size_t g = 0; g + 1 < at.size(); ++g) {
      text += (g == 0 ? "with " : ", ") + std::string(1, static_cast<char>('a' + g)) + " of " +
              list(xs.subspan(at[g], at[g + 1] - at[g]));
    }
    return text;
  }

  /// As many words as the generator reads when they are all large.
  int words_to_an_element() const {
    if (may_extend) return 2;
    const std::vector<std::uint64_t> many(64, ~std::uint64_t{0} - 2);
    choices from(many, true);
    static_cast<void>(generate_(from));
    return std::max(1, static_cast<int>(from.used()));
  }
  /// Whether a generator reads as many words as there are.
  static constexpr bool may_extend = requires(Generate g) { g.generator; };

 private:
  /// What a trial's words stand for; where the last are to be rare, at least two.
  sequence<X> drawn(const trial& t, bool rare_ones, bool special) const {
    sequence<X> xs;
    if (rare_ones && t.elements.size() == 1) {
      choices simplest({}, special);
      xs.push_back(generate_(simplest));
    }
    for (const auto& words : t.elements) {
      choices from(words, special);
      xs.push_back(generate_(from));
    }
    return xs;
  }
  /// Whether the elements of a long law are all the first one, but for a place for each of the others, mostly at the end, so
  /// that a tile lift which leaves places out is found too where an element counts once; else they come again and again.
  template <class Law>
  static bool are_rare(const Law& l, const trial& t) {
    return l.is_long && mix(~t.shape) % 2 == 0;
  }

  const Generate& generate_;
  bool has_plain_states_;
};

}  // namespace regroup::laws::detail

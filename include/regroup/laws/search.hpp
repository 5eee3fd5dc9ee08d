// SPDX-License-Identifier: Apache-2.0
// The search for a counterexample, run by rapidcheck: it makes the cases, grows their size and walks the tree of
// shrinks; what a case is, and how one shrinks, is ours. One instantiation serves every monoid and element type,
// because a case is plain words until a generator reads them. Level: one check.
#pragma once

#include <rapidcheck/Check.h>
#include <rapidcheck/seq/Create.h>
#include <rapidcheck/shrinkable/Create.h>
#include <rapidcheck/shrinkable/Transform.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace regroup::laws {

/// The words of each element, and one word for the shape of trees, shards and sizes.
struct trial {
  std::vector<std::vector<std::uint64_t>> elements;
  std::uint64_t shape = 0;
};

struct search_settings {
  std::uint64_t seed = 1;
  int cases = 200;
  int words = 1;           ///< words to an element
  int most_elements = 24;  ///< to a case
  bool extend = false;     ///< a shrink may add words: rapidcheck's own generators
};

/// The words in which most operators trip: 0, 1, -1, -0, the infinities, NaN, the largest, the smallest, nearly 1. Choices
/// of integers read some of them as their extremes.
inline constexpr std::uint64_t traps[] = {0,           1 << 4, 2 << 4,     9, 10,         1 << 4 | 10,
                                          2 << 4 | 10, 7,      1 << 4 | 7, 8, 2 << 4 | 8, 6};

/// Simpler trials in the order in which to try them: fewer elements, then simpler shapes, then smaller words.
inline std::vector<trial> shrinks_of(const trial& t, const search_settings& settings) {
  std::vector<trial> simpler;
  const std::size_t n = t.elements.size();
  for (std::size_t drop = n; drop >= 1; drop /= 2) {
    for (std::size_t first = 0; first + drop <= n; first += drop) {
      trial s{{}, t.shape};
      for (std::size_t i = 0; i < n; ++i) {
        if (i < first || i >= first + drop) s.elements.push_back(t.elements[i]);
      }
      simpler.push_back(std::move(s));
    }
  }
  for (std::uint64_t shape = 0; shape < 16 && shape < t.shape; ++shape) simpler.push_back({t.elements, shape});
  if (t.shape >= 16) simpler.push_back({t.elements, t.shape / 2});
  for (std::size_t i = 0; i < n; ++i) {
    const auto with = [&](std::size_t at, std::uint64_t word) {
      trial s = t;
      s.elements[i][at] = word;
      simpler.push_back(std::move(s));
    };
    for (std::size_t at = 0; at < t.elements[i].size(); ++at) {
      const std::uint64_t word = t.elements[i][at];
      const std::uint64_t kind = word & 15;
      const std::uint64_t which = word >> 4;
      for (std::uint64_t k = 0; k < kind && k < 3; ++k) {  // small, halves, dyadic
        for (std::uint64_t w = 0; w < 9; ++w) with(at, w << 4 | k);
      }
      for (const std::uint64_t trap : traps) {
        if (kind >= 3 && trap < word) with(at, trap);
      }
      for (std::uint64_t w = 0; w < which && w < 9; ++w) with(at, w << 4 | kind);
      for (std::uint64_t w = which / 2; w >= 9; w /= 2) with(at, w << 4 | kind);
      if (which >= 9) with(at, (which - 1) << 4 | kind);
    }
    if (settings.extend && t.elements[i].size() < 64) {
      for (std::uint64_t step = 1; step < 40; ++step) {
        trial s = t;
        s.elements[i].resize(std::max<std::size_t>(s.elements[i].size(), 2));
        s.elements[i].push_back(step);
        simpler.push_back(std::move(s));
      }
    }
  }
  return simpler;
}

struct search_result {
  int cases = 0;                        ///< that were tried without shrinking
  std::optional<trial> counterexample;  ///< the smallest found
};

/// Looks for a trial that does not hold; the same settings give the same trials.
inline search_result search(const search_settings& settings, const std::function<bool(const trial&)>& holds) {
  using rc::detail::CaseDescription;
  using rc::detail::CaseResult;
  const auto failing = std::make_shared<std::optional<trial>>();
  int shrinks_left = 20000;
  std::size_t made_so_far = 0;

  const auto describe = [&](const trial& t) {
    CaseDescription description;
    const bool passes = (*failing && --shrinks_left < 0) || holds(t);
    if (!passes) *failing = t;
    description.result.type = passes ? CaseResult::Type::Success : CaseResult::Type::Failure;
    description.example = [] { return rc::detail::Example{}; };
    return description;
  };
  const auto shrink = [&](const trial& t) { return rc::seq::fromContainer(shrinks_of(t, settings)); };
  const rc::Gen<CaseDescription> property([&](rc::Random random, int size) {
    trial t;
    const auto made = made_so_far++;
    const auto below = [&](std::uint64_t n) { return random.next() % n; };
    const auto most = static_cast<std::uint64_t>(settings.most_elements);
    const auto grown = most * (static_cast<std::uint64_t>(size) + 1) / 101;
    // The first cases are every trap alone; then half of them small, because traps hide in each other's company.
    const bool is_single = made < std::size(traps) && most > 0;
    const std::uint64_t n = is_single ? 1 : below((below(2) == 0 ? std::min<std::uint64_t>(grown, 4) : grown) + 1);
    const std::uint64_t theme = below(4);  // tame values; all kinds; traps, also as they are
    for (std::uint64_t i = 0; i < n; ++i) {
      std::vector<std::uint64_t> words(static_cast<std::size_t>(settings.words));
      for (auto& word : words) {
        const std::uint64_t kind = theme == 0 ? below(5) : theme == 1 ? below(16) : below(2) * (6 + below(6));
        const std::uint64_t bits = below(4) == 0 ? 3 : below(40);
        word = theme == 3 ? traps[below(std::size(traps))] : below(std::uint64_t{1} << bits) << 4 | kind;
      }
      if (is_single) words[0] = traps[made];
      t.elements.push_back(std::move(words));
    }
    t.shape = below(4) == 0 ? below(16) : random.next();
    return rc::shrinkable::map(rc::shrinkable::shrinkRecur(std::move(t), shrink), describe);
  });

  struct : rc::detail::TestListener {
    void onTestCaseFinished(const CaseDescription&) override { ++cases; }
    void onShrinkTried(const CaseDescription&, bool) override {}
    void onTestFinished(const rc::detail::TestMetadata&, const rc::detail::TestResult&) override {}
    int cases = 0;
  } listener;
  rc::detail::TestParams params;
  params.seed = settings.seed;
  params.maxSuccess = settings.cases;
  rc::detail::checkProperty(property, {}, params, listener, std::unordered_map<std::string, rc::detail::Reproduce>{});
  return {listener.cases, *failing};
}

}  // namespace regroup::laws

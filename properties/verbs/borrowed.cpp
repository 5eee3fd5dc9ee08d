// SPDX-License-Identifier: Apache-2.0
// States that refer to the elements: a fold reads elements in place, so a string_view into one is still valid when the answer
// is lowered, whatever the layout. Elements that are not trivially copyable are never copied on the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operators.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "regroup/stream.hpp"

namespace verbs {
namespace {

using regroup::index;
using words = std::vector<std::string>;

struct page {
  int number;
  std::string text;
};

/// Longer than any string keeps in place, the longest near the middle, and again near the end.
words some_words(index n) {
  words all;
  for (index i = 0; i < n; ++i) {
    const auto letter = static_cast<char>('a' + i % 26);
    const bool is_long = i == n / 2 || i == n - n / 8;
    all.emplace_back(static_cast<std::size_t>(is_long ? 80 : 32 + i % 37), letter);
  }
  return all;
}

/// The longest of the words at[0], at[1], ...: the first of equals.
std::string longest(const words& all, const std::vector<std::size_t>& at) {
  std::string found;
  for (const std::size_t i : at) found = all[i].size() > found.size() ? all[i] : found;
  return found;
}

template <class F>
void with_executors(const F& f) {
  f(regroup::seq);
  f(regroup::par.with_threads(3));
}

constexpr index lengths[] = {1, 2, 127, 300, 4096, 4097, 21'000};

}  // namespace

TEST(borrowed, from_ranges_that_are_not_side_by_side) {
  for (const index n : lengths) {
    const words all = some_words(n);
    const std::string expected = *std::ranges::max_element(all, {}, &std::string::size);
    const std::deque<std::string> deque(all.begin(), all.end());
    std::vector<page> pages;
    for (index i = 0; i < n; ++i) pages.push_back({static_cast<int>(i), all[static_cast<std::size_t>(i)]});
    const auto backwards = regroup::generate(
        n, [&](index i) -> const std::string& { return all[all.size() - 1 - static_cast<std::size_t>(i)]; });
    const std::string last = *std::max_element(
        all.rbegin(), all.rend(), [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
    with_executors([&](const auto& ex) {
      EXPECT_EQ(regroup::reduce(ex, all, longest_word{}), expected);
      EXPECT_EQ(regroup::reduce(ex, deque, longest_word{}), expected);
      EXPECT_EQ(regroup::reduce(ex, pages, longest_word{}, &page::text), expected);
      EXPECT_EQ(regroup::reduce(ex, backwards, longest_word{}), last);
    });
  }
}

TEST(borrowed, from_strided_rows_and_lattices) {
  const index planes = 7, rows = 90, columns = 61;
  const words all = some_words(planes * rows * columns);
  const regroup::view<const std::string> x(all.data(), {planes, rows, columns});
  const auto places = [&](auto&& is_reduced) {
    std::vector<std::size_t> at;
    for (index i = 0; i < x.size(); ++i) {
      if (is_reduced(i / (rows * columns), i / columns % rows, i % columns)) at.push_back(static_cast<std::size_t>(i));
    }
    return at;
  };
  with_executors([&](const auto& ex) {
    words of_columns(static_cast<std::size_t>(planes * rows));
    regroup::reduce_axes(ex, x, {2}, of_columns, longest_word{});
    words of_rows(static_cast<std::size_t>(planes * columns));
    regroup::reduce_axes(ex, x, {1}, of_rows, longest_word{});
    words of_both(static_cast<std::size_t>(rows));
    regroup::reduce_axes(ex, x, {0, 2}, of_both, longest_word{});
    for (index k = 0; k < rows; k += 11) {
      const auto at = static_cast<std::size_t>(k);
      EXPECT_EQ(of_columns[at], longest(all, places([&](index p, index r, index) { return p == 0 && r == k; })));
      EXPECT_EQ(of_both[at], longest(all, places([&](index, index r, index) { return r == k; })));
    }
    for (index k = 0; k < columns; k += 11) {
      EXPECT_EQ(of_rows[static_cast<std::size_t>(k)],
                longest(all, places([&](index p, index, index c) { return p == 0 && c == k; })));
    }
  });
}

TEST(borrowed, by_segments_keys_and_scans) {
  for (const index n : lengths) {
    std::vector<page> pages;
    const words all = some_words(n);
    for (index i = 0; i < n; ++i) pages.push_back({static_cast<int>(i / 5000), all[static_cast<std::size_t>(i)]});
    const std::vector<index> offsets = {0, n / 3, n / 3, n};
    const auto first = all.begin();
    with_executors([&](const auto& ex) {
      words of_segments(3);
      regroup::reduce_segments(ex, pages, offsets, of_segments, longest_word{}, &page::text);
      EXPECT_EQ(of_segments[1], "");
      EXPECT_EQ(of_segments[2], *std::ranges::max_element(first + n / 3, all.end(), {}, &std::string::size));

      std::vector<std::string_view> prefixes(all.size());
      regroup::inclusive_scan(ex, pages, prefixes, longest_word{}, &page::text);
      std::vector<std::string_view> before(all.size());
      regroup::exclusive_scan(ex, pages, before, longest_word{}, &page::text);
      std::string_view expected;
      for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(before[i], expected) << i << " of " << n;
        if (all[i].size() > expected.size()) expected = all[i];
        ASSERT_EQ(prefixes[i], expected) << i << " of " << n;
      }
    });
  }
}

/// Sources and projections that own what they show stay where the caller has them.
TEST(borrowed, from_owners_that_are_not_copied) {
  static int copies = 0;
  struct owner {
    words all;
    explicit owner(words w) : all(std::move(w)) {}
    owner(const owner& other) : all(other.all) { ++copies; }
    index size() const { return static_cast<index>(all.size()); }
    const std::string& operator[](index i) const { return all[static_cast<std::size_t>(i)]; }
    const std::string& operator()(index i) const { return (*this)[i]; }
  };
  for (const index n : lengths) {
    const owner here(some_words(n));
    const std::string expected = *std::ranges::max_element(here.all, {}, &std::string::size);
    std::vector<index> numbers(static_cast<std::size_t>(n));
    std::iota(numbers.begin(), numbers.end(), index{0});
    const std::vector<index> offsets = {0, n / 3, n};
    with_executors([&](const auto& ex) {
      EXPECT_EQ(regroup::reduce(ex, here, longest_word{}), expected);
      EXPECT_EQ(regroup::reduce(ex, numbers, longest_word{}, here), expected);
      std::vector<std::string_view> of_rows(1), of_segments(2), prefixes(here.all.size());
      regroup::reduce_rows(ex, regroup::view(numbers.data(), {1, n}), of_rows, longest_word{}, here);
      EXPECT_EQ(of_rows[0], expected);
      regroup::reduce_segments(ex, here, offsets, of_segments, longest_word{});
      EXPECT_EQ(longest_word{}(of_segments[0], of_segments[1]), expected);
      regroup::inclusive_scan(ex, here, prefixes, longest_word{});
      EXPECT_EQ(prefixes.back(), expected);
    });
  }
  EXPECT_EQ(copies, 0);
}

TEST(borrowed, by_a_stream_from_elsewhere) {
  for (const index n : lengths) {
    const words all = some_words(n);
    const std::deque<std::string> deque(all.begin(), all.end());
    regroup::accumulator acc{longest_word{}, 100};
    acc.push(deque);
    acc.push(regroup::par, deque);
    EXPECT_EQ(acc.value(), *std::ranges::max_element(all, {}, &std::string::size));
  }
}

/// Elements that own memory may be scanned onto themselves: each is read before its place is written.
TEST(borrowed, not_by_a_scan_in_place) {
  for (const int n : {1, 33, 128, 300, 4100}) {
    words letters;
    for (int i = 0; i < n; ++i) letters.emplace_back(1, static_cast<char>('a' + i % 26));
    std::string joined;
    for (const auto& letter : letters) joined += letter;
    with_executors([&](const auto& ex) {
      words in_place = letters;
      regroup::inclusive_scan(ex, in_place, in_place, join{});
      for (std::size_t i = 0; i < in_place.size(); ++i) ASSERT_EQ(in_place[i], joined.substr(0, i + 1)) << i;
      words strided(2 * letters.size(), "-");
      for (std::size_t i = 0; i < letters.size(); ++i) strided[2 * i] = letters[i];
      const regroup::view<std::string> every_second(strided.data(), {n}, {2});
      regroup::exclusive_scan(ex, every_second, every_second, join{});
      for (std::size_t i = 0; i < letters.size(); ++i) {
        ASSERT_EQ(strided[2 * i], joined.substr(0, i)) << i;
        ASSERT_EQ(strided[2 * i + 1], "-");
      }
    });
  }
}

/// A source that owns its memory lives as long as it is read.
TEST(borrowed, sources_that_own_their_memory) {
  struct owner {
    std::vector<int> numbers;
    [[nodiscard]] index size() const { return static_cast<index>(numbers.size()); }
    int operator[](index i) const { return numbers[static_cast<std::size_t>(i)]; }
    [[nodiscard]] const int* contiguous() const { return numbers.data(); }
  };
  const owner ones{std::vector<int>(300, 1)};
  std::vector<int> sums(3);
  with_executors([&](const auto& ex) {
    EXPECT_EQ(regroup::reduce(ex, ones, regroup::plus<int>{}), 300);
    regroup::reduce_segments(ex, ones, std::vector<int>{0, 100, 299, 300}, sums, regroup::plus<int>{});
    EXPECT_EQ(sums, (std::vector<int>{100, 199, 1}));
  });
}

}  // namespace verbs

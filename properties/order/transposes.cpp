// SPDX-License-Identifier: Apache-2.0
// Transposing a tile moves every element to [place in its piece * L + piece], or each of its words to lanes of its own, and
// nothing else, for elements of any size and any number of them; transposing back gives the tile.
#include <regroup/host/seq.hpp>
#include <regroup/host/transpose.hpp>
#include <regroup/reduce.hpp>
#include <regroup/scan.hpp>

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "recorder.hpp"

namespace {

using regroup::index;
using regroup::lanes;
using regroup::tile_elements;
using regroup::piece_elements;
using regroup::host::transpose;
using regroup::host::transposed_to;

template <class T>
struct several {
  std::array<T, 3> parts;
  several() = default;
  explicit several(index i) : parts{static_cast<T>(i), static_cast<T>(i + 1), static_cast<T>(i + 2)} {}
  bool operator==(const several&) const = default;
};

template <class X>
class transposes : public testing::Test {};
using sizes =
    testing::Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, several<std::uint16_t>, several<std::uint64_t>>;
TYPED_TEST_SUITE(transposes, sizes);

TYPED_TEST(transposes, moves_each_element_to_its_lane_and_back) {
  const auto untouched = static_cast<TypeParam>(50000);
  std::vector<TypeParam> x;
  for (index i = 0; i < tile_elements; ++i) x.emplace_back(i);
  std::vector<index> counts = {tile_elements, tile_elements - 1, tile_elements / 2 + 5, 3000};
  for (index n = 0; n <= 20 * piece_elements; n += n < 2 * piece_elements ? 1 : 7) counts.push_back(n);
  for (const index n : counts) {
    std::vector<TypeParam> transposed(x.size(), untouched), back(x.size(), untouched);
    transpose(x.data(), transposed.data(), n, transposed_to::lanes);
    transpose(transposed.data(), back.data(), n, transposed_to::pieces);
    for (index i = 0; i < tile_elements; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto place = static_cast<std::size_t>(i % piece_elements * lanes + i / piece_elements);
      ASSERT_EQ(back[at], i < n ? x[at] : untouched) << n << ' ' << i;
      ASSERT_EQ(transposed[place], i < n ? x[at] : untouched) << n << ' ' << i;
    }
  }
}

TYPED_TEST(transposes, takes_columns_apart_and_puts_them_back) {
  const auto untouched = static_cast<TypeParam>(50000);
  for (index columns = 1; columns <= 20; ++columns) {
    for (const index rows : {1, 2, 7, 16, 33, 130}) {
      const index wide = columns + rows % 2, apart = rows + 3;  // dense, or not
      std::vector<TypeParam> x, to(static_cast<std::size_t>(columns * apart + 1), untouched);
      for (index i = 0; i < rows * wide; ++i) x.emplace_back(i);
      std::vector<TypeParam> back(x.size() + 1, untouched);
      transpose(x.data(), wide, to.data(), apart, rows, columns);
      transpose(to.data(), apart, back.data(), wide, columns, rows);
      for (index i = 0; i < std::ssize(to); ++i) {
        const index row = i % apart, column = i / apart;
        const bool is_moved = row < rows && column < columns;
        ASSERT_EQ(to[static_cast<std::size_t>(i)], is_moved ? x[static_cast<std::size_t>(row * wide + column)] : untouched)
            << rows << ' ' << columns;
      }
      for (index i = 0; i < std::ssize(back); ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_EQ(back[at], i < rows * wide && i % wide < columns ? x[at] : untouched) << rows << ' ' << columns;
      }
    }
  }
}

/// Elements of several words are transposed word by word.
template <class T>
struct pair {
  T a;
  float b;
  bool operator==(const pair&) const = default;
};
struct two_words {
  double a;
  std::int64_t b;
  bool operator==(const two_words&) const = default;
};
template <class X>
class transposes_of_words : public testing::Test {};
using in_words = testing::Types<pair<float>, pair<std::int32_t>, two_words>;
TYPED_TEST_SUITE(transposes_of_words, in_words);

TYPED_TEST(transposes_of_words, stand_apart_in_their_lanes) {
  using word = regroup::host::word_of<TypeParam, 2>;
  constexpr index words = regroup::host::words_of<TypeParam>();
  static_assert(words == 2);
  const auto element = [](index i) {
    return TypeParam{static_cast<decltype(TypeParam::a)>(i + 1), static_cast<decltype(TypeParam::b)>(-i)};
  };
  for (const index n : {index{1}, index{31}, index{32}, index{300}, index{4000}, tile_elements}) {
    std::vector<TypeParam> x, back(static_cast<std::size_t>(tile_elements)), transposed = back;
    for (index i = 0; i < n; ++i) x.push_back(element(i));
    transpose<words>(x.data(), transposed.data(), n, transposed_to::lanes);
    transpose<words>(transposed.data(), back.data(), n, transposed_to::pieces);
    std::vector<word> seen(static_cast<std::size_t>(words * tile_elements));
    std::memcpy(seen.data(), transposed.data(), seen.size() * sizeof(word));
    for (index i = 0; i < n; ++i) {
      ASSERT_EQ(back[static_cast<std::size_t>(i)], element(i)) << n << ' ' << i;
      const auto lane = static_cast<std::size_t>(i % piece_elements * words * lanes + i / piece_elements);
      ASSERT_EQ(seen[lane], std::bit_cast<word>(element(i).a)) << n << ' ' << i;
      ASSERT_EQ(seen[lane + lanes], std::bit_cast<word>(element(i).b)) << n << ' ' << i;
    }
  }
}

/// Elements of several words are folded in the order of any others.
struct triple {
  order::word a, b, c;
};
struct hashed_triples : order::hashed<order::rule::pieces> {
  constexpr order::word lift(const triple& x) const { return order::mix(order::mix(x.a, x.b), x.c); }
};
static_assert(regroup::host::words_of<triple>() == 3);

TEST(transposes_words, folds_in_the_order_of_any_element) {
  for (const index n : {1, 31, 32, 33, 100, 127, 1000, 4095, 4096, 4097, 10'000}) {
    std::vector<triple> x;
    std::vector<order::word> lifted;
    for (index i = 0; i < n; ++i) {
      x.push_back({order::element(i), order::element(-i), order::element(3 * i)});
      lifted.push_back(hashed_triples{}.lift(x.back()));
    }
    EXPECT_EQ(regroup::reduce(regroup::seq, x, hashed_triples{}), order::expected<order::rule::pieces>(lifted)) << n;
  }
}

/// Elements that cannot be taken apart are moved whole.
struct bit_fields {
  unsigned day : 5, month : 4;
  int year;
};
struct one_of_two {
  int kind;
  union {
    float f;
    int i;
  };
};
struct [[gnu::packed]] packed {
  char c;
  int n;
};
struct long_numbers {
  long double re, im;
};
template <class X>
struct hashed_numbers : order::hashed<order::rule::pieces> {
  order::word lift(const X& x) const { return order::hashed<order::rule::pieces>::lift(number(x)); }
  static order::word number(const bit_fields& x) { return static_cast<order::word>(x.year); }
  static order::word number(const one_of_two& x) { return static_cast<order::word>(x.kind); }
  static order::word number(const packed& x) { return static_cast<order::word>(x.n); }
  static order::word number(const long_numbers& x) { return static_cast<order::word>(x.re); }
};
template <class X>
void expect_moved_whole() {
  const index n = 5000;
  std::vector<X> x(static_cast<std::size_t>(n));
  std::vector<order::word> numbers, from_numbers(x.size()), from_elements(x.size());
  for (index i = 0; i < n; ++i) {
    X& e = x[static_cast<std::size_t>(i)];
    if constexpr (std::is_same_v<X, bit_fields>) {
      e.year = static_cast<int>(7 * i);
    } else if constexpr (std::is_same_v<X, one_of_two>) {
      e.kind = static_cast<int>(7 * i);
    } else if constexpr (std::is_same_v<X, packed>) {
      e.n = static_cast<int>(7 * i);
    } else {
      e.re = static_cast<long double>(7 * i);
    }
    numbers.push_back(static_cast<order::word>(7 * i));
  }
  regroup::inclusive_scan(regroup::seq, x, from_elements, hashed_numbers<X>{});
  regroup::inclusive_scan(regroup::seq, numbers, from_numbers, order::hashed<order::rule::pieces>{});
  EXPECT_EQ(from_elements, from_numbers);
  EXPECT_EQ(regroup::reduce(regroup::seq, x, hashed_numbers<X>{}),
            regroup::reduce(regroup::seq, numbers, order::hashed<order::rule::pieces>{}));
}
TEST(transposes_nothing, what_cannot_be_taken_apart) {
  expect_moved_whole<bit_fields>();
  expect_moved_whole<one_of_two>();
  expect_moved_whole<packed>();
  expect_moved_whole<long_numbers>();
}

}  // namespace

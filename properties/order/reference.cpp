// SPDX-License-Identifier: Apache-2.0
// The transcription itself against trees written by hand, with tiles of 8 and 4 lanes so that a person can check them.
#include "reference.hpp"

#include <gtest/gtest.h>

#include <string>

#include "recorder.hpp"

namespace {

constexpr reference::order little{8, 4};

reference::operands<std::string> numbers(int first, int last) {
  reference::operands<std::string> xs(static_cast<std::size_t>(first));
  for (int i = first; i < last; ++i) xs.emplace_back(std::to_string(i));
  return xs;
}

std::string pieces(int first, int last) {
  return reference::reduce(order::spelled<order::rule::pieces>{}, numbers(first, last), little).value_or("");
}
std::string striped(int first, int last) {
  return reference::reduce(order::spelled<order::rule::striped>{}, numbers(first, last), little).value_or("");
}
std::string scanned(int last) {
  return *reference::inclusive_scan(order::spelled<order::rule::pieces>{}, numbers(0, last), little).back();
}

}  // namespace

TEST(reference, perfect_pairs_neighbours_and_pads_right) {
  const order::spelled<order::rule::pieces> m;
  EXPECT_EQ(reference::perfect(m, numbers(0, 1)), "0");
  EXPECT_EQ(reference::perfect(m, numbers(0, 3)), "((0 1) 2)");
  EXPECT_EQ(reference::perfect(m, numbers(0, 7)), "(((0 1) (2 3)) ((4 5) 6))");
  EXPECT_EQ(reference::perfect(m, numbers(3, 7)), "(3 ((4 5) 6))");
  EXPECT_EQ(reference::perfect(m, numbers(0, 0)), std::nullopt);
}

TEST(reference, contiguous_pieces) {
  EXPECT_EQ(pieces(0, 0), "");
  EXPECT_EQ(pieces(0, 3), "((0 1) 2)");
  EXPECT_EQ(pieces(0, 5), "(((0 1) (2 3)) 4)");
  EXPECT_EQ(pieces(0, 8), "(((0 1) (2 3)) ((4 5) (6 7)))");
  EXPECT_EQ(pieces(0, 9), "((((0 1) (2 3)) ((4 5) (6 7))) 8)");
  EXPECT_EQ(pieces(3, 6), "(3 (4 5))");
}

TEST(reference, striped_lanes) {
  EXPECT_EQ(striped(0, 3), "((0 2) 1)");
  EXPECT_EQ(striped(0, 7), "(((0 4) (2 6)) ((1 5) 3))");
  EXPECT_EQ(striped(3, 7), "((4 6) (5 3))");
  EXPECT_EQ(striped(7, 9), "(7 8)");
}

TEST(reference, scans_by_kogge_stone) {
  EXPECT_EQ(scanned(2), "(0 1)");
  EXPECT_EQ(scanned(4), "((0 1) (2 3))");
  EXPECT_EQ(scanned(7), "(((0 1) ((2 3) (4 5))) 6)");
  EXPECT_EQ(scanned(8), "(((0 1) ((2 3) (4 5))) (6 7))");
  EXPECT_EQ(scanned(9), "((((0 1) (2 3)) ((4 5) (6 7))) 8)");
  EXPECT_EQ(scanned(11), "(((((0 1) (2 3)) ((4 5) (6 7))) (8 9)) 10)");
}

TEST(reference, the_first_results_are_the_scan_of_the_first_elements) {
  const order::hashed<order::rule::pieces> m;
  const auto whole = reference::inclusive_scan(m, order::operands(order::elements(100)), little);
  for (std::int64_t n = 0; n <= 100; ++n) {
    const auto first = reference::inclusive_scan(m, order::operands(order::elements(n)), little);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), whole.begin())) << n;
  }
}

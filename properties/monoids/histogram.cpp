// SPDX-License-Identifier: Apache-2.0
#include "regroup/monoids/histogram.hpp"

#include <algorithm>
#include <random>
#include <span>

#include "fold.hpp"
#include "regroup/host/lanes.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"
#include "regroup/stream.hpp"

namespace {
using namespace monoids;
using counts = std::vector<std::int64_t>;
using doubles = std::vector<double>;

template <class Real>
counts of(const std::vector<Real>& xs, double lo, double hi, std::int64_t bins) {
  return fold(regroup::histogram<Real>{lo, hi, bins}, xs);
}
const doubles tenths{0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};
}  // namespace

TEST(histogram, special_values) {
  constexpr double inf = infinity<double>;
  EXPECT_EQ(of(doubles{}, 0, 1, 3), (counts{0, 0, 0}));
  EXPECT_EQ(of(doubles{not_a_number<double>, inf, -inf, -1, 1.5}, 0, 1, 2), (counts{0, 0}));
  EXPECT_EQ(of(doubles{-0.0, 0.0, 5e-324, 1}, 0, 1, 2), (counts{3, 1}));
  EXPECT_EQ(of(doubles{1, 2, 3, 4}, 1, 4, 3), (counts{1, 1, 2}));  // the last bin is closed on both sides
  EXPECT_EQ(of(doubles{2, 2.5, 1.4}, 2, 2, 2), (counts{0, 2}));    // lo == hi: half to each side
  EXPECT_EQ(of(doubles{-1e308, 0, 1e308}, -1e300, 1e300, 1), (counts{1}));
}

TEST(histogram, edges_are_numpys) {
  // 3 * 0.1 is above 0.3 (and 6 and 7 alike), so numpy.histogram puts 0.3 below that edge; in float32 they are equal.
  EXPECT_EQ(of(tenths, 0, 1, 10), (counts{1, 1, 2, 0, 1, 2, 1, 0, 1, 2}));
  EXPECT_EQ(of(std::vector<float>(tenths.begin(), tenths.end()), 0, 1, 10), (counts{1, 1, 1, 1, 1, 1, 1, 1, 1, 2}));
}

TEST(histogram, every_bin_is_between_its_edges) {
  const regroup::histogram<float> m{-0.7, 2.9, 123};
  const auto& edges = m.edges();
  ASSERT_EQ(edges.size(), 124U);
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    counts expected(123);
    expected[i] = 3;
    const float below_next = std::nextafter(edges[i + 1], -1.0F);
    EXPECT_EQ(fold(m, std::vector<float>{edges[i], (edges[i] + edges[i + 1]) / 2, below_next}), expected) << i;
  }
}

TEST(histogram, ranges_that_the_type_just_holds) {
  const std::vector<float> wide{-1e38F, 0.1F, 0.2F, 1e38F};
  EXPECT_EQ(of(wide, -1.8e38, 1.8e38, 8), (counts{0, 1, 0, 0, 2, 0, 1, 0}));  // their distance is no float
  EXPECT_EQ(of(doubles{-8e307, 0, 8e307}, -8e307, 8e307, 3), (counts{1, 1, 1}));
  const float one = 1, next = std::nextafter(one, 2.0F), second = std::nextafter(next, 2.0F);
  EXPECT_EQ(of(std::vector<float>{one, next, second}, one, second, 2), (counts{1, 2}));
  EXPECT_EQ(of(std::vector<float>{0, 1e-45F, 3e-45F}, 0, 3e-45, 2), (counts{1, 2}));
}

TEST(histogram, a_tile_is_the_fold_of_its_elements) {
  doubles xs = special_values<double>();
  std::mt19937_64 draw(5);
  while (xs.size() < 4096) xs.push_back(static_cast<double>(draw() % 1000) / 100);
  const regroup::histogram<double> m{0, 8, 40};
  EXPECT_EQ(regroup::host::leaf_of(m, xs.data(), 4096), state(m, xs));
}

/// More bins than a tile has elements, on any number of threads and however a stream is cut.
TEST(histogram, of_many_tiles) {
  std::vector<float> xs(301'234);
  std::mt19937_64 draw(11);
  for (float& x : xs) x = static_cast<float>(draw() % 12'000) - 1000;
  const regroup::histogram<float> m{0, 10'000, 5'000};  // of width 2
  counts expected(5'000);
  for (const float x : xs) {
    if (x >= 0 && x <= 10'000) ++expected[std::min<std::size_t>(static_cast<std::size_t>(x) / 2, 4'999)];
  }
  EXPECT_EQ(regroup::reduce(regroup::seq, xs, m), expected);
  regroup::accumulator on_threads{m}, in_pieces{m};
  for (const int threads : {2, 3}) EXPECT_EQ(regroup::reduce(regroup::par.with_threads(threads), xs, m), expected);
  on_threads.push(regroup::par.with_threads(3), xs);
  EXPECT_EQ(on_threads.value(), expected);
  for (std::size_t first = 0, size = 0; first < xs.size(); first += size) {
    size = std::min(draw() % 50'000 + 1, xs.size() - first);
    in_pieces.push(std::span(xs).subspan(first, size));
  }
  EXPECT_EQ(in_pieces.value(), expected);
}

TEST(histogram, refuses_what_is_no_range) {
  EXPECT_THROW((regroup::histogram<float>{1, 0, 3}), regroup::argument_error);
  EXPECT_THROW((regroup::histogram<float>{0, infinity<double>, 3}), regroup::argument_error);
  EXPECT_THROW((regroup::histogram<float>{not_a_number<double>, 1, 3}), regroup::argument_error);
  EXPECT_THROW((regroup::histogram<float>{0, 1, 0}), regroup::argument_error);
  EXPECT_THROW((regroup::histogram<float>{-1e300, 1e300, 4}), regroup::argument_error);
  EXPECT_THROW((regroup::histogram<double>{-1e308, 1e308, 4}), regroup::argument_error);
  EXPECT_THROW((regroup::histogram<float>{1, 1.00000001, 4}), regroup::argument_error);
  EXPECT_THROW((regroup::histogram<float>{0, 1e-46, 4}), regroup::argument_error);
  EXPECT_THROW((regroup::histogram<double>{1e20, 1e20, 2}), regroup::argument_error);  // a half is lost there
}

TEST(histogram, refuses_counts_of_other_bins) {
  const regroup::histogram<float> three{0, 1, 3}, five{0, 1, 5};
  EXPECT_THROW((void)three(three.identity(), five.identity()), regroup::argument_error);
  EXPECT_THROW((void)five(five.identity(), three.identity()), regroup::argument_error);
}

// SPDX-License-Identifier: Apache-2.0
// The answers of ranks are those of `seq` over the whole, bitwise, wherever their parts are cut: for recorders of the tree, for
// every kind of monoid, and for ranges, rows, axes and segments.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../order/recorder.hpp"
#include "parts.hpp"
#include "regroup/regroup.hpp"

namespace ranks_test {
namespace {

using regroup::seq;
using regroup::view;

std::vector<float> numbers(index n) {
  std::vector<float> x;
  for (index i = 0; i < n; ++i) x.push_back(12 * std::sin(static_cast<float>(i % 9973) * 1.7f));
  return x;
}

std::vector<index> lengths() {
  constexpr index t = regroup::tile_elements;
  std::vector<index> ns = {0, 5, 128, t - 1, t, 2 * t + 1, 8 * t, 40 * t - 1};
  order::dice random(5);
  for (int i = 0; i < 6; ++i) ns.push_back(random(0, 20 * t));
  return ns;
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <order::rule Rule, class State>
void trees() {
  order::dice random(17);
  for (const index n : lengths()) {
    const auto x = order::elements(n);
    const auto at = cuts(n, random);
    const auto part = mine(x, at);
    const order::hashed<Rule, State> m;
    EXPECT_EQ(regroup::reduce(all(), part, m), order::expected<Rule>(x)) << n << " elements";
    const auto expect_scanned = [&](const std::vector<order::word>& y, const std::vector<order::word>& whole) {
      const auto expected = mine(whole, at);
      EXPECT_TRUE(std::ranges::equal(y, expected)) << n << " elements, from " << mine(at).first;
    };
    std::vector<order::word> y(part.size());
    regroup::inclusive_scan(all(), part, y, m);
    expect_scanned(y, order::expected_inclusive(x));
    regroup::exclusive_scan(all(), part, y, m);
    expect_scanned(y, order::expected_exclusive(x));
    y.assign(part.begin(), part.end());
    regroup::exclusive_scan(all(), y, y, m);
    expect_scanned(y, order::expected_exclusive(x));
  }
}

TEST(trees, of_pieces) { trees<order::rule::pieces, order::word>(); }
TEST(trees, of_striped_lanes) { trees<order::rule::striped, order::word>(); }
TEST(trees, of_tiles) { trees<order::rule::tile, order::word>(); }
TEST(trees, of_aggregates) { trees<order::rule::striped_tile, order::aggregate>(); }

/// Reductions and both scans of one monoid over n elements x.
template <class M, class X>
void has_the_bits_of_seq(const M& m, const std::vector<X>& x) {
  order::dice random(23);
  for (int round = 0; round < 2; ++round) {
    const auto at = cuts(static_cast<index>(x.size()), random);
    const auto part = mine(x, at);
    EXPECT_TRUE(same_bits(regroup::reduce(all(), part, m), regroup::reduce(seq, x, m)));
    using answer = regroup::answer_of<M>;
    std::vector<answer> whole(x.size(), answer{}), y(part.size(), answer{});
    const auto differ = [&] {
      const auto expected = mine(whole, at);
      index count = 0;
      for (std::size_t i = 0; i < y.size(); ++i) count += same_bits(y[i], expected[i]) ? 0 : 1;
      return count;
    };
    regroup::inclusive_scan(seq, x, whole, m);
    regroup::inclusive_scan(all(), part, y, m);
    EXPECT_EQ(differ(), 0) << "of " << part.size() << " from " << mine(at).first;
    regroup::exclusive_scan(seq, x, whole, m);
    regroup::exclusive_scan(all(), part, y, m);
    EXPECT_EQ(differ(), 0) << "of " << part.size() << " from " << mine(at).first;
  }
}

TEST(monoids, of_floats) {
  const auto x = numbers(70'001);
  has_the_bits_of_seq(regroup::plus<float>{}, x);
  has_the_bits_of_seq(regroup::log_sum_exp<float>{}, x);
  has_the_bits_of_seq(regroup::maximum<float>{}, x);
  has_the_bits_of_seq(regroup::compensated_plus<float>{}, x);
}
TEST(monoids, of_integers_and_16_bits) {
  std::vector<int> x;
  for (int i = 0; i < 30'000; ++i) x.push_back(i * 7919 % 1000 - 500);
  has_the_bits_of_seq(regroup::plus<int>{}, x);
  std::vector<regroup::bfloat16> halves;
  for (const float f : numbers(30'000)) halves.emplace_back(f);
  has_the_bits_of_seq(regroup::plus<float>{}, halves);
}
TEST(monoids, that_do_not_commute) {
  std::vector<regroup::affine_map<double>> maps;
  for (const float f : numbers(20'000)) maps.push_back({0.9 + 0.01 * f / 12, f});
  has_the_bits_of_seq(regroup::affine<double>{}, maps);
}

TEST(monoids, of_yes_and_no) {
  const auto yes = std::make_unique<bool[]>(9000);
  for (int i = 0; i < 9000; ++i) yes[static_cast<std::size_t>(i)] = i % 3 == 0;
  const std::span<const bool> x(yes.get(), 9000);
  order::dice random(7);
  const auto [first, count] = mine(cuts(9000, random));
  const auto part = x.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  EXPECT_EQ(regroup::reduce(all(), part, order::tenfold{}), 36'000);
  std::vector<int> whole(9000), y(part.size());
  regroup::inclusive_scan(seq, x, whole, order::tenfold{});
  regroup::inclusive_scan(all(), part, y, order::tenfold{});
  for (index i = 0; i < count; ++i) {
    ASSERT_EQ(y[static_cast<std::size_t>(i)], whole[static_cast<std::size_t>(first + i)]);
  }
}

/// Somebody's executor, derived from one of ours.
struct pool : regroup::parallel {};
TEST(verbs, on_anybodys_threads) {
  const regroup::mpi::ranks some(MPI_COMM_WORLD, pool{});
  EXPECT_EQ(regroup::reduce(some, std::vector<int>(5000, 1), regroup::plus<int>{}), 5000 * all().size());
}

TEST(verbs, a_projection_and_a_fanout) {
  const auto x = numbers(33'333);
  order::dice random(3);
  const auto part = mine(x, cuts(33'333, random));
  const auto square = [](float f) { return f * f; };
  const regroup::plus<float> plus;
  EXPECT_EQ(regroup::reduce(all(), part, plus, square), regroup::reduce(seq, x, plus, square));
  const regroup::fanout m{regroup::plus<float>{}, regroup::moments<double>{}, regroup::minimum<float>{}};
  const auto [sum, moments, least] = regroup::reduce(all(), part, m);
  EXPECT_EQ(sum, regroup::reduce(seq, x, regroup::plus<float>{}));
  EXPECT_EQ(moments.mean, regroup::reduce(seq, x, regroup::moments<double>{}).mean);
  EXPECT_EQ(least, *std::ranges::min_element(x));
}

/// Rows of `n` elements, cut at the same columns.
struct matrix {
  index rows, n;
  std::vector<float> x = numbers(rows * n);
  std::vector<index> at;
  std::vector<float> columns;  // this rank's, row by row

  matrix(index row_count, index length, order::dice& random) : rows(row_count), n(length), at(cuts(n, random)) {
    for (index r = 0; r < rows; ++r) {
      const auto first = x.begin() + r * n + mine(at).first;
      columns.insert(columns.end(), first, first + mine(at).count);
    }
  }
  [[nodiscard]] view<const float> whole() const { return {x.data(), {rows, n}}; }
  [[nodiscard]] view<const float> part() const { return {columns.data(), {rows, mine(at).count}}; }
};

TEST(verbs, rows_and_axes) {
  order::dice random(29);
  for (const auto& [rows, n] : {std::pair<index, index>{0, 100}, {1, 30'000}, {7, 9'001}, {300, 65}, {2100, 20}, {3, 0}}) {
    const matrix a(rows, n, random);
    const auto size = static_cast<std::size_t>(rows);
    std::vector<float> expected(size), got(size);
    regroup::reduce_rows(seq, a.whole(), expected, regroup::log_sum_exp<float>{});
    regroup::reduce_rows(all(), a.part(), got, regroup::log_sum_exp<float>{});
    EXPECT_EQ(got, expected) << rows << " x " << n;
    regroup::reduce_axes(seq, a.whole(), {1}, expected, regroup::plus<float>{});
    regroup::reduce_axes(all(), a.part(), {1}, got, regroup::plus<float>{});
    EXPECT_EQ(got, expected) << rows << " x " << n;

    std::vector<float> whole(a.x.size()), y(a.columns.size());
    for (const bool is_inclusive : {true, false}) {
      if (is_inclusive) {
        regroup::inclusive_scan_rows(seq, a.whole(), view(whole.data(), {rows, n}), regroup::plus<float>{});
        regroup::inclusive_scan_rows(all(), a.part(), view(y.data(), a.part().extents()), regroup::plus<float>{});
      } else {
        regroup::exclusive_scan_rows(seq, a.whole(), view(whole.data(), {rows, n}), regroup::plus<float>{});
        regroup::exclusive_scan_rows(all(), a.part(), view(y.data(), a.part().extents()), regroup::plus<float>{});
      }
      for (index r = 0; r < rows; ++r) {
        const auto [first, count] = mine(a.at);
        for (index i = 0; i < count; ++i) {
          ASSERT_TRUE(same_bits(y[static_cast<std::size_t>(r * count + i)], whole[static_cast<std::size_t>(r * n + first + i)]))
              << "row " << r << ", column " << first + i << (is_inclusive ? "" : ", exclusive");
        }
      }
    }
  }
}

/// Segments of which every rank has some of each; a whole segment is those one after another.
struct shared_segments {
  static constexpr index count = 8;
  std::vector<float> whole, part;
  std::vector<index> offsets = {0}, own = {0};
  std::vector<index> first;  // in the whole, of this rank's part of each

  shared_segments() {
    order::dice random(31);
    std::vector<std::vector<index>> counts;  // of each rank
    for (int r = 0; r < all().size(); ++r) {
      std::vector<index> row;
      for (index s = 0; s < count; ++s) {
        const index some[] = {0, regroup::tile_elements, random(0, 6000)};
        row.push_back(some[random(0, 2)]);
      }
      counts.push_back(row);
    }
    const auto value = [](int r, index s, index i) { return std::sin(static_cast<float>(r * 1000 + s * 100 + i)); };
    for (index s = 0; s < count; ++s) {
      for (int r = 0; r < all().size(); ++r) {
        if (r == all().rank()) first.push_back(static_cast<index>(whole.size()));
        for (index i = 0; i < counts[static_cast<std::size_t>(r)][static_cast<std::size_t>(s)]; ++i) {
          whole.push_back(value(r, s, i));
          if (r == all().rank()) part.push_back(value(r, s, i));
        }
      }
      offsets.push_back(static_cast<index>(whole.size()));
      own.push_back(static_cast<index>(part.size()));
    }
  }
};

TEST(verbs, segments) {
  const shared_segments s;
  std::vector<float> expected(shared_segments::count), got(shared_segments::count);
  regroup::reduce_segments(seq, s.whole, s.offsets, expected, regroup::log_sum_exp<float>{});
  regroup::reduce_segments(all(), s.part, s.own, got, regroup::log_sum_exp<float>{});
  EXPECT_EQ(got, expected);
}

template <class M>
void scans_of_segments(const M& m) {
  const shared_segments s;
  std::vector<float> whole(s.whole.size()), got(s.part.size());
  const auto expect_scanned = [&](const char* what) {
    std::vector<float> expected;
    for (std::size_t k = 0; k < s.first.size(); ++k) {
      const auto begin = whole.begin() + s.first[k];
      expected.insert(expected.end(), begin, begin + s.own[k + 1] - s.own[k]);
    }
    ASSERT_EQ(expected.size(), got.size());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(same_bits(got[i], expected[i])) << what << ", element " << i;
  };
  regroup::inclusive_scan_segments(seq, s.whole, s.offsets, whole, m);
  regroup::inclusive_scan_segments(all(), s.part, s.own, got, m);
  expect_scanned("inclusive");
  got = s.part;
  regroup::inclusive_scan_segments(all(), got, s.own, got, m);
  expect_scanned("inclusive, in place");
  regroup::exclusive_scan_segments(seq, s.whole, s.offsets, whole, m);
  regroup::exclusive_scan_segments(all(), s.part, s.own, got, m);
  expect_scanned("exclusive");
}

TEST(verbs, scans_of_segments) {
  scans_of_segments(regroup::plus<float>{});
  scans_of_segments(regroup::log_sum_exp<float>{});
}

}  // namespace
}  // namespace ranks_test

// SPDX-License-Identifier: Apache-2.0
// Scans of rows, along an axis and of segments: each is the scan of its own elements alone, also in place.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/scan.hpp"

namespace {

using words = std::vector<order::word>;
constexpr order::hashed<order::rule::striped> striped;
constexpr order::hashed<order::rule::pieces> pieces;

void rows(std::int64_t count, std::int64_t n) {
  const auto xs = order::elements(count * n);
  words inclusive;
  words exclusive;
  for (std::int64_t r = 0; r < count; ++r) {
    const words row(xs.begin() + r * n, xs.begin() + (r + 1) * n);
    for (const auto y : order::expected_inclusive(row)) inclusive.push_back(y);
    for (const auto y : order::expected_exclusive(row)) exclusive.push_back(y);
  }
  const std::string where = std::to_string(count) + " x " + std::to_string(n);
  const regroup::view<const order::word> x(xs.data(), {count, n});
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    words ys(xs.size());
    regroup::inclusive_scan_rows(ex, x, regroup::view<order::word>(ys.data(), {count, n}), striped);
    EXPECT_TRUE(ys == inclusive) << name << ", " << where;
    regroup::exclusive_scan_rows(ex, x, regroup::view<order::word>(ys.data(), {count, n}), pieces);
    EXPECT_TRUE(ys == exclusive) << name << ", exclusive, " << where;
    ys = xs;
    const regroup::view<order::word> y(ys.data(), {count, n});
    regroup::exclusive_scan_rows(ex, y, y, striped);
    EXPECT_TRUE(ys == exclusive) << name << ", exclusive in place, " << where;
    ys = xs;
    regroup::inclusive_scan_rows(ex, y, y, pieces);
    EXPECT_TRUE(ys == inclusive) << name << ", in place, " << where;
  });
}

/// One axis of a rank-3 view against its lines one by one.
void axis(std::int64_t a, std::int64_t b, std::int64_t c, int which) {
  const std::int64_t extent[3] = {a, b, c};
  const std::int64_t stride[3] = {b * c, c, 1};
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const auto xs = order::elements(a * b * c);
  words inclusive(xs.size());
  words exclusive(xs.size());
  for (std::int64_t i = 0; i < a * b * c; ++i) {
    if ((i / stride[which]) % extent[which] != 0) continue;
    words line;
    for (std::int64_t k = 0; k < extent[which]; ++k) line.push_back(xs[at(i + k * stride[which])]);
    const auto in = order::expected_inclusive(line);
    const auto ex = order::expected_exclusive(line);
    for (std::int64_t k = 0; k < extent[which]; ++k) {
      inclusive[at(i + k * stride[which])] = in[at(k)];
      exclusive[at(i + k * stride[which])] = ex[at(k)];
    }
  }
  const regroup::view<const order::word> x(xs.data(), {a, b, c});
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    words ys(xs.size());
    const regroup::view<order::word> y(ys.data(), {a, b, c});
    regroup::inclusive_scan_axis(ex, x, which, y, striped);
    EXPECT_TRUE(ys == inclusive) << name << ", axis " << which;
    regroup::exclusive_scan_axis(ex, x, which - 3, y, pieces);
    EXPECT_TRUE(ys == exclusive) << name << ", exclusive, axis " << which - 3;
    ys = xs;
    regroup::exclusive_scan_axis(ex, y, which, y, striped);
    EXPECT_TRUE(ys == exclusive) << name << ", exclusive in place, axis " << which;
  });
}

void segments(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> offsets = {0};
  for (const auto n : lengths) offsets.push_back(offsets.back() + n);
  const auto xs = order::elements(offsets.back());
  words inclusive;
  words exclusive;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    const words own(xs.begin() + offsets[s], xs.begin() + offsets[s + 1]);
    for (const auto y : order::expected_inclusive(own)) inclusive.push_back(y);
    for (const auto y : order::expected_exclusive(own)) exclusive.push_back(y);
  }
  order::for_some_executors([&](const auto& ex, const std::string& name) {
    words ys(xs.size());
    regroup::inclusive_scan_segments(ex, xs, offsets, ys, pieces);
    EXPECT_TRUE(ys == inclusive) << name << ", " << lengths.size() << " segments";
    ys = xs;
    regroup::exclusive_scan_segments(ex, ys, offsets, ys, striped);
    EXPECT_TRUE(ys == exclusive) << name << ", exclusive in place, " << lengths.size() << " segments";
  });
}

}  // namespace

TEST(scan_batches, rows) {
  for (const std::int64_t n : {0, 1, 2, 31, 33, 129, 300, 4097}) {
    for (const std::int64_t count : {1, 2, 19}) rows(count, n);
  }
  rows(0, 3);
  rows(3000, 5);
  rows(2, 50'000);
}

TEST(scan_batches, an_axis) {
  for (const int which : {0, 1, 2}) {
    axis(3, 130, 7, which);
    axis(33, 2, 65, which);
    axis(4100, 2, 3, which);
    axis(2, 0, 3, which);
  }
}
TEST(scan_batches, the_columns_of_narrow_matrices) {
  for (const std::int64_t columns : {2, 3, 4, 5, 8, 15, 16, 17, 31, 50}) {
    for (const std::int64_t n : {127, 129, 4096, 9001}) axis(2, n, columns, 1);
  }
  axis(1, 140'001, 3, 1);
  axis(1, 70'000, 15, 1);
}

TEST(scan_batches, segments) {
  segments({});
  segments({0, 1, 0});
  segments({1, 31, 32, 33, 0, 127, 128, 129, 0, 4095, 4096, 4097, 30'000});
  order::dice random(8);
  std::vector<std::int64_t> many;
  for (int i = 0; i < 1000; ++i) many.push_back(random(0, 50));
  many[500] = 60'000;
  segments(many);
}

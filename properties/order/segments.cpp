// SPDX-License-Identifier: Apache-2.0
// A segment and a run of equal keys have the tree of their own elements, counted from their own start.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "digest.hpp"
#include "recorder.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/fanout.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/mean.hpp"
#include "regroup/monoids/minmax.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/reduce.hpp"

namespace {

template <order::rule Rule>
void segments(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> offsets = {0};
  for (const auto n : lengths) offsets.push_back(offsets.back() + n);
  const auto xs = order::elements(offsets.back());
  std::vector<order::word> trees;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    trees.push_back(
        order::expected<Rule>(std::vector<order::word>(xs.begin() + offsets[s], xs.begin() + offsets[s + 1])));
  }
  order::for_each_executor([&](const auto& ex, const std::string& name) {
    std::vector<order::word> out(lengths.size(), 99);
    regroup::reduce_segments(ex, xs, offsets, out, order::hashed<Rule>{});
    EXPECT_EQ(out, trees) << name << ", " << lengths.size() << " segments";
  });
  std::vector<order::word> out(lengths.size(), 99);
  const std::vector<int> narrow(offsets.begin(), offsets.end());
  regroup::reduce_segments(regroup::par, regroup::generate(offsets.back(), order::element), narrow, out,
                           order::hashed<Rule>{});
  EXPECT_EQ(out, trees) << "lazy elements, int offsets";
}

template <order::rule Rule>
void mixtures() {
  segments<Rule>({});
  segments<Rule>({0});
  segments<Rule>({0, 0, 1, 0, 2, 0});
  segments<Rule>({1, 31, 32, 33, 127, 128, 129, 0, 300, 4095, 4096, 4097, 8192, 9000});
  std::vector<std::int64_t> giant(200, 3);
  giant[77] = 150'000;
  segments<Rule>(giant);
  order::dice random(5);
  std::vector<std::int64_t> many;
  for (int i = 0; i < 2000; ++i) many.push_back(random(0, 40));
  segments<Rule>(many);
  for (const int longest : {3, 70, 140}) {
    for (const int count : {1, 3, 5, 17, 127, 129, 300}) {
      std::vector<std::int64_t> some;
      for (int i = 0; i < count; ++i) some.push_back(random(0, longest));
      segments<Rule>(some);
    }
  }
}

/// Each segment has the bits of its elements alone, -0 among them, which would not survive an identity beside it.
template <class X, class M, class Make>
void expect_bits_of_each_alone(const M& m, const Make& make) {
  order::dice random(8);
  for (const int longest : {4, 40, 140}) {
    std::vector<std::int64_t> offsets = {0};
    for (int s = 0; s < 60; ++s) offsets.push_back(offsets.back() + regroup::lanes - s % 3 + 1);
    while (offsets.size() <= 400) offsets.push_back(offsets.back() + random(0, random(0, 3) == 0 ? longest : longest / 4));
    std::vector<X> xs;
    while (std::ssize(xs) < offsets.back()) {
      xs.push_back(make(random(0, 5) == 0 ? -0.0f : static_cast<float>(random(-999, 999)) / 7));
    }
    order::for_some_executors([&](const auto& ex, const std::string& name) {
      const auto answer = [&](std::size_t s) {
        const std::vector<X> alone(xs.begin() + offsets[s], xs.begin() + offsets[s + 1]);
        return regroup::reduce(regroup::seq, alone, m);
      };
      std::atomic<int> differ = 0;
      regroup::reduce_segments(ex, xs, offsets, [&](regroup::index s, const auto& got) {
        const auto wanted = answer(static_cast<std::size_t>(s));
        if (order::digest().add(got).value() != order::digest().add(wanted).value()) ++differ;
      }, m);
      EXPECT_EQ(differ, 0) << name << ", lengths up to " << longest;
    });
  }
}

/// The owner of elements that all have the same one; says whether two met.
struct one_owner {
  static constexpr bool is_commutative = true;
  static constexpr bool is_exact = true;
  static inline std::atomic<bool> strangers_met = false;
  constexpr std::int32_t identity() const { return -1; }
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    if (a >= 0 && b >= 0 && a != b) strangers_met = true;
    return std::max(a, b);
  }
};
static_assert(regroup::host::goes_short<one_owner, std::int32_t>() ==
              regroup::host::goes_short<regroup::maximum<float>, float>());

/// A sum that must not overflow (UBSan sees it).
struct exact_sum {
  static constexpr bool is_commutative = true;
  std::int32_t identity() const { return 0; }
  std::int32_t operator()(std::int32_t a, std::int32_t b) const { return a + b; }
};

/// Sources of which only the lengths matter; and the same where it is known how many elements are before each.
struct of_lengths {
  std::vector<std::int64_t> offsets;
  std::int64_t size() const { return std::ssize(offsets) - 1; }
  regroup::strided<const float> operator[](std::int64_t s) const {
    return {nullptr, offsets[static_cast<std::size_t>(s) + 1] - offsets[static_cast<std::size_t>(s)], 1};
  }
};
struct of_offsets : of_lengths {
  std::int64_t before(std::int64_t s) const { return offsets[static_cast<std::size_t>(s)]; }
};

struct keyed {
  std::vector<double> keys;
  std::vector<std::int64_t> lengths;
};

template <order::rule Rule>
void by_key(const keyed& k) {
  const auto xs = order::elements(static_cast<std::int64_t>(k.keys.size()));
  std::vector<order::word> trees;
  std::vector<double> first_keys;
  auto first = xs.begin();
  for (const auto n : k.lengths) {
    trees.push_back(order::expected<Rule>(std::vector<order::word>(first, first + n)));
    first_keys.push_back(k.keys[static_cast<std::size_t>(first - xs.begin())]);
    first += n;
  }
  order::for_each_executor([&](const auto& ex, const std::string& name) {
    std::vector<double> keys_out(k.keys.size(), 77);
    std::vector<order::word> out(k.keys.size(), 99);
    const auto runs = regroup::reduce_by_key(ex, k.keys, xs, keys_out, out, order::hashed<Rule>{});
    ASSERT_EQ(runs, static_cast<std::int64_t>(trees.size())) << name;
    for (std::size_t r = 0; r < trees.size(); ++r) {
      EXPECT_EQ(out[r], trees[r]) << name << ", run " << r;
      EXPECT_EQ(std::bit_cast<order::word>(keys_out[r]), std::bit_cast<order::word>(first_keys[r]))
          << name << ", run " << r;
    }
  });
}

}  // namespace

TEST(segments, contiguous_pieces) { mixtures<order::rule::pieces>(); }
TEST(segments, striped_lanes) { mixtures<order::rule::striped>(); }
TEST(segments, tile_lift) { mixtures<order::rule::tile>(); }

TEST(segments, have_the_bits_of_each_alone) {
  const auto as_it_is = [](float x) { return x; };
  expect_bits_of_each_alone<float>(regroup::plus<float>{}, as_it_is);
  expect_bits_of_each_alone<double>(regroup::plus<double>{}, as_it_is);
  expect_bits_of_each_alone<regroup::float16>(regroup::plus<float>{}, [](float x) { return regroup::float16(x); });
  expect_bits_of_each_alone<regroup::bfloat16>(regroup::plus<float>{}, [](float x) { return regroup::bfloat16(x); });
  expect_bits_of_each_alone<std::int32_t>(regroup::plus<std::int64_t>{}, [](float x) { return static_cast<std::int32_t>(x); });
  expect_bits_of_each_alone<float>(regroup::mean<float>{}, as_it_is);
  expect_bits_of_each_alone<float>(regroup::minmax<float>{}, as_it_is);
  expect_bits_of_each_alone<float>(regroup::moments<float>{}, as_it_is);  // a count of 64 bits beside floats
  expect_bits_of_each_alone<float>(regroup::log_sum_exp<float>{}, as_it_is);
  expect_bits_of_each_alone<float>(regroup::fanout{regroup::plus<float>{}, regroup::moments<double>{}}, as_it_is);
  expect_bits_of_each_alone<float>(regroup::fanout{regroup::plus<float>{}, regroup::maximum<float>{}}, as_it_is);
  expect_bits_of_each_alone<float>(regroup::fanout{regroup::plus<float>{}, regroup::log_sum_exp<float>{}}, as_it_is);
  expect_bits_of_each_alone<std::uint8_t>(regroup::any{}, [](float x) { return std::uint8_t{x > 100}; });
  using map = regroup::affine_map<float>;
  expect_bits_of_each_alone<map>(regroup::affine<float>{}, [](float x) { return map{x / 150, x}; });
}

/// Nothing is combined or lifted but what a fold alone could meet: no overflow where sums do not.
TEST(segments, combine_nothing_that_is_not_there) {
  constexpr std::int32_t large = 2'000'000'000;
  std::vector<std::int32_t> xs, sums;
  std::vector<std::int64_t> offsets = {0};
  for (int s = 0; s < 200; ++s) {
    for (const std::int32_t x : {large, 1, -large, 1}) {
      xs.push_back(x);
      if (s % 2 == 0) break;
    }
    sums.push_back(s % 2 == 0 ? large : 2);
    offsets.push_back(std::ssize(xs));
  }
  std::vector<std::int32_t> out(sums.size());
  regroup::reduce_segments(regroup::seq, xs, offsets, out, exact_sum{});
  EXPECT_EQ(out, sums);
}

/// Nor do elements of two segments or rows, whatever lies behind each.
TEST(segments, combine_no_strangers) {
  one_owner::strangers_met = false;
  const auto check = [](const std::vector<std::int64_t>& offsets) {
    std::vector<std::int32_t> xs, owners;
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      const auto owner = static_cast<std::int32_t>(s);
      xs.resize(static_cast<std::size_t>(offsets[s + 1]), owner);
      owners.push_back(offsets[s] < offsets[s + 1] ? owner : -1);
    }
    order::for_some_executors([&](const auto& ex, const std::string& name) {
      std::vector<std::int32_t> out(owners.size());
      regroup::reduce_segments(ex, xs, offsets, out, one_owner{});
      EXPECT_EQ(out, owners) << name;
      const auto rows = static_cast<regroup::index>(owners.size()), length = offsets[1];
      if (rows * length != offsets.back()) return;
      regroup::reduce_rows(ex, regroup::view(xs.data(), {rows, length}), out, one_owner{});
      EXPECT_EQ(out, owners) << name << ", rows";
      regroup::reduce_rows(ex, regroup::view(xs.data(), {rows, length - 1}, {length, regroup::index{1}}), out, one_owner{});
      EXPECT_EQ(out, owners) << name << ", rows apart";
    });
    EXPECT_FALSE(one_owner::strangers_met);
  };
  for (std::int64_t length = 2; length < 140; ++length) {
    std::vector<std::int64_t> equal = {0};
    while (equal.size() < 40) equal.push_back(equal.back() + length);
    check(equal);
  }
  order::dice random(9);
  for (const int longest : {1, 16, 40, 140}) {
    std::vector<std::int64_t> some = {0};
    while (some.size() < 500) some.push_back(some.back() + random(0, longest));
    check(some);
  }
}

TEST(segments, are_shared_out_as_if_each_were_looked_at) {
  const auto same = [](const std::vector<regroup::host::chunk>& a, const std::vector<regroup::host::chunk>& b) {
    return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
      return std::tie(x.row, x.first, x.last, x.is_part) == std::tie(y.row, y.first, y.last, y.is_part);
    });
  };
  order::dice random(10);
  for (const auto& [count, longest] : {std::pair{0, 0}, {1, 5}, {1, 9'000'000}, {7, 3'000'000}, {40, 200'000}, {9000, 100},
                                       {60'000, 3}, {60'000, 0}, {3000, 70'000}}) {
    of_offsets b;
    b.offsets = {0};
    for (int s = 0; s < count; ++s) {
      b.offsets.push_back(b.offsets.back() + random(0, random(0, 9) == 0 ? longest : longest / 20));
    }
    for (const int workers : {1, 2, 3, 16}) {
      const regroup::host::cutter cut(workers);
      for (const std::int64_t grain : {4, 16}) {
        const auto chunks = cut.for_fold(b, grain, 16, 1);
        EXPECT_TRUE(same(chunks, cut.for_fold<of_lengths>(b, grain, 16, 1))) << count << ", " << workers << " workers";
        EXPECT_TRUE(chunks.size() > 1 || workers == 1 || b.offsets.back() + 16 * count < 200'000) << count;
      }
      EXPECT_TRUE(same(cut.for_scan(b, 1, 1), cut.for_scan(static_cast<const of_lengths&>(b), 1, 1))) << count;
    }
  }
}

TEST(by_key, nan_starts_a_new_run_and_the_first_key_is_reported) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  by_key<order::rule::pieces>({{}, {}});
  by_key<order::rule::pieces>({{1}, {1}});
  by_key<order::rule::pieces>({{nan}, {1}});
  by_key<order::rule::pieces>({{nan, nan, 1, 1, nan, 1}, {1, 1, 2, 1, 1}});
  by_key<order::rule::pieces>({{0.0, -0.0, 0.0, 1, -0.0, 0.0}, {3, 1, 2}});
}

TEST(by_key, short_and_long_runs) {
  order::dice random(6);
  keyed k;
  double key = 0;
  for (const auto longest : {1, 3, 400, 20'000}) {
    for (int r = 0; r < (longest > 400 ? 6 : 50); ++r) {
      const auto n = random(1, longest);
      key = key == 4 ? 2 : key + 1;
      k.keys.insert(k.keys.end(), static_cast<std::size_t>(n), key);
      k.lengths.push_back(n);
    }
  }
  by_key<order::rule::pieces>(k);
  by_key<order::rule::striped>(k);
}

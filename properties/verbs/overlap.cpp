// SPDX-License-Identifier: Apache-2.0
// An output may be exactly an input of a scan; any other shared memory, also between two of its own elements, is an
// overlap_error, before anything is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <ranges>
#include <set>
#include <span>
#include <vector>

#include "regroup/algorithms/softmax.hpp"
#include "regroup/error.hpp"
#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "regroup/stream.hpp"

namespace {

struct sum {
  static constexpr bool is_commutative = true;
  int identity() const { return 0; }
  int operator()(int a, int b) const { return a + b; }
};

using view = regroup::view<int>;

template <class F>
void refused(const F& f, const std::vector<int>& numbers = std::vector<int>(100, 1)) {
  std::vector<int> memory = numbers;
  EXPECT_THROW(f(regroup::seq, memory.data()), regroup::overlap_error);
  EXPECT_THROW(f(regroup::par, memory.data()), regroup::overlap_error);
  EXPECT_EQ(memory, numbers);
}

}  // namespace

TEST(overlap, a_scan_shifted_by_one) {
  refused([](const auto& ex, int* p) { regroup::inclusive_scan(ex, view(p, {20}), view(p + 1, {20}), sum{}); });
  refused([](const auto& ex, int* p) { regroup::exclusive_scan(ex, view(p + 1, {20}), view(p, {20}), sum{}); });
  refused([](const auto& ex, int* p) { regroup::inclusive_scan(ex, view(p, {20}), view(p + 19, {20}), sum{}); });
}

TEST(overlap, the_same_memory_in_another_order) {
  refused([](const auto& ex, int* p) { regroup::inclusive_scan(ex, view(p, {20}), view(p + 19, {20}, {-1}), sum{}); });
  refused([](const auto& ex, int* p) { regroup::inclusive_scan(ex, view(p, {20}), view(p, {20}, {2}), sum{}); });
  refused([](const auto& ex, int* p) {
    regroup::inclusive_scan_rows(ex, view(p, {4, 4}), view(p, {4, 4}, {1, 4}), sum{});
  });
  refused([](const auto& ex, int* p) {
    regroup::exclusive_scan_axis(ex, view(p, {4, 4}), 0, view(p, {4, 4}, {1, 4}), sum{});
  });
}

TEST(overlap, segments_of_a_scan) {
  const std::vector<int> offsets = {0, 5, 20};
  refused([&](const auto& ex, int* p) {
    regroup::inclusive_scan_segments(ex, view(p, {20}), offsets, view(p + 3, {20}), sum{});
  });
}

TEST(overlap, results_inside_the_offsets) {
  const std::vector<int> elements(3, 1);
  const std::vector<int> offsets = {0, 1, 2, 3, 3, 3};
  const auto reduce = [&](const auto& ex, int* p) {
    regroup::reduce_segments(ex, elements, std::span(p, 6), std::span(p + 1, 5), sum{});
  };
  const auto scan = [&](const auto& ex, int* p) {
    regroup::exclusive_scan_segments(ex, elements, std::span(p, 6), std::span(p + 3, 3), sum{});
  };
  refused(reduce, offsets);
  try {
    std::vector<int> memory = offsets;
    reduce(regroup::seq, memory.data());
    FAIL() << "answers went to the offsets";
  } catch (const regroup::overlap_error& e) {
    EXPECT_STREQ(e.what(), "the output overlaps the offsets; give it memory of its own");
  }
  refused(scan, offsets);
}

TEST(overlap, results_inside_the_elements) {
  refused([](const auto& ex, int* p) { regroup::reduce_rows(ex, view(p, {4, 5}), view(p, {4}), sum{}); });
  refused([](const auto& ex, int* p) { regroup::reduce_rows(ex, view(p, {4, 5}), std::span(p + 19, 4), sum{}); });
  refused([](const auto& ex, int* p) { regroup::reduce_axes(ex, view(p, {4, 5}), {0}, view(p + 2, {5}), sum{}); });
  refused([](const auto& ex, int* p) {
    regroup::reduce_segments(ex, view(p, {20}), std::vector<int>{0, 5, 20}, view(p + 10, {2}), sum{});
  });
}

TEST(overlap, by_key) {
  refused([](const auto& ex, int* p) {
    regroup::reduce_by_key(ex, view(p, {10}), view(p + 10, {10}), view(p + 15, {10}), view(p + 40, {10}), sum{});
  });
  refused([](const auto& ex, int* p) {
    regroup::reduce_by_key(ex, view(p, {10}), view(p + 10, {10}), view(p + 30, {10}), view(p + 5, {10}), sum{});
  });
}

TEST(overlap, the_two_outputs_of_by_key) {
  refused([](const auto& ex, int* p) {
    regroup::reduce_by_key(ex, view(p, {10}), view(p + 10, {10}), view(p + 30, {10}), view(p + 30, {10}), sum{});
  });
}

TEST(overlap, results_of_which_two_are_one) {
  refused([](const auto& ex, int* p) { regroup::reduce_rows(ex, view(p, {4, 5}), view(p + 50, {4}, {0}), sum{}); });
  refused([](const auto& ex, int* p) { regroup::inclusive_scan(ex, view(p, {20}, {0}), view(p, {20}, {0}), sum{}); });
  refused([](const auto& ex, int*) {
    std::vector<int> all(3, 1);
    regroup::inclusive_scan_rows(ex, view(all.data(), {2, 2}, {1, 1}), view(all.data(), {2, 2}, {1, 1}), sum{});
  });
  refused([](const auto& ex, int* p) {
    const auto ones = regroup::generate(6, [](regroup::index) { return 1; });
    regroup::reduce_segments(ex, ones, std::vector<int>{0, 2, 6}, view(p, {2}, {0}), sum{});
  });
}

// Against the places of all elements, one by one.
TEST(overlap, any_strides) {
  std::uint64_t state = 1;
  const auto below = [&](std::int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>(state >> 33) % n;
  };
  const auto places = [](const view& v) {
    std::multiset<const int*> all;
    for (regroup::index i = 0; i < v.size(); ++i) all.insert(v.data() + regroup::offset_of(i, v.extents(), v.strides()));
    return all;
  };
  const auto refuses = [](const auto& f) {
    try {
      f();
      return false;
    } catch (const regroup::overlap_error&) {
      return true;
    }
  };
  std::vector<int> memory(400);
  int shared = 0, distinct = 0, beside = 0;
  for (int round = 0; round < 20'000; ++round) {
    regroup::shape extents, strides;
    for (std::int64_t axis = below(4); axis >= 0; --axis) {
      extents.push_back(below(4) + (below(9) > 0 ? 1 : 0));
      strides.push_back(below(17) - 8);
    }
    const view in(memory.data() + 200, extents, strides), out(in.data() + below(19) - 9, extents, strides);
    const auto mine = places(out), others = places(in);
    const bool own = std::set(mine.begin(), mine.end()).size() == mine.size();
    ASSERT_EQ(refuses([&] { regroup::require_distinct(out); }), !own) << to_string(extents) << to_string(strides);
    (own ? distinct : shared) += 1;
    if (!own) continue;
    const bool apart = std::none_of(mine.begin(), mine.end(), [&](const int* p) { return others.contains(p); });
    ASSERT_EQ(refuses([&] { regroup::require_apart(in, out, true); }), !apart && out.data() != in.data())
        << to_string(extents) << to_string(strides) << out.data() - in.data();
    beside += apart ? 1 : 0;
  }
  EXPECT_GT(shared, 1000);
  EXPECT_GT(distinct, 1000);
  EXPECT_GT(beside, 1000);
}

/// Axes that interleave without end are refused after a while, not looked through.
TEST(overlap, many_interleaved_axes_take_no_time) {
  regroup::shape extents, strides;
  for (int a = 0; a < 24; ++a) {
    extents.push_back(2);
    strides.push_back((std::int64_t{1} << 40) + (std::int64_t{1} << a));  // no sums of some are those of others
  }
  float one = 0;
  EXPECT_THROW(regroup::require_distinct(regroup::view<float>(&one, extents, strides)), regroup::overlap_error);
}

// The same of two views of other shapes and elements of other sizes, byte by byte.
TEST(overlap, any_shapes) {
  std::uint64_t state = 2;
  const auto below = [&](std::int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>(state >> 33) % n;
  };
  std::vector<double> memory(600);
  const auto any = [&]<class T>(T* middle) {
    regroup::shape extents, strides;
    for (std::int64_t axis = below(4); axis >= 0; --axis) {
      extents.push_back(1 + below(4));
      strides.push_back(below(33) - 16);
    }
    return regroup::view<T>(middle + below(33) - 16, extents, strides);
  };
  const auto bytes_of = []<class T>(const regroup::view<T>& v) {
    std::set<const char*> all;
    for (regroup::index i = 0; i < v.size(); ++i) {
      const auto* const first = reinterpret_cast<const char*>(v.data() + regroup::offset_of(i, v.extents(), v.strides()));
      for (std::size_t k = 0; k < sizeof(T); ++k) all.insert(first + k);
    }
    return all;
  };
  int apart = 0, sharing = 0, reached = 0;
  const auto compare = [&](const auto& in, const auto& out) {
    const auto mine = bytes_of(out), others = bytes_of(in);
    const bool shares = std::any_of(mine.begin(), mine.end(), [&](const char* p) { return others.contains(p); });
    const regroup::index between = reinterpret_cast<const char*>(out.data()) - reinterpret_cast<const char*>(in.data());
    ASSERT_EQ(regroup::detail::have_common_bytes(in, out, between), shares)
        << to_string(in.extents()) << to_string(in.strides()) << to_string(out.extents()) << to_string(out.strides());
    (shares ? sharing : apart) += 1;
    reached += !shares && *mine.begin() < *others.rbegin() && *others.begin() < *mine.rbegin() ? 1 : 0;
  };
  for (int round = 0; round < 5000; ++round) {
    const auto in = any(memory.data() + 300);
    const auto same_size = any(memory.data() + 300);
    const auto smaller = any(reinterpret_cast<short*>(memory.data() + 300));
    compare(in, same_size);
    compare(in, smaller);
    compare(smaller, in);
  }
  EXPECT_GT(apart, 1000);
  EXPECT_GT(sharing, 1000);
  EXPECT_GT(reached, 1000);
}

// Columns of one buffer, with a number a row between them.
TEST(overlap, columns_of_one_buffer) {
  std::vector<float> memory(10 * 16, 1);
  const regroup::view<const float> x(memory.data(), {10, 7}, {16, 1});
  const regroup::view<float> y(memory.data() + 8, {10, 7}, {16, 1}), lse(memory.data() + 15, {10}, {16});
  EXPECT_NO_THROW(regroup::softmax(regroup::seq, x, y, {.logsumexp = lse}));
  const regroup::view<float> one_off(memory.data() + 14, {10}, {16});
  EXPECT_THROW(regroup::softmax(regroup::seq, x, y, {.logsumexp = one_off}), regroup::overlap_error);
}

TEST(overlap, nothing_overlaps_nothing) {
  std::vector<int> memory(100, 1);
  int* const p = memory.data();
  regroup::reduce_rows(regroup::seq, view(p + 2, {3, 0}), view(p, {3}), sum{});
  EXPECT_EQ(memory[2], 0);
  regroup::inclusive_scan(regroup::seq, view(p + 2, {0}), view(p + 1, {0}), sum{});
}

TEST(overlap, neighbours_are_no_overlap) {
  std::vector<int> memory(100, 1);
  int* const p = memory.data();
  regroup::inclusive_scan(regroup::par, view(p, {20}), view(p + 20, {20}), sum{});
  EXPECT_EQ(memory[39], 20);
  regroup::inclusive_scan(regroup::par, view(p + 50, {20}), view(p + 49, {20}, {-1}), sum{});
  EXPECT_EQ(memory[30], 20);
  regroup::reduce_rows(regroup::seq, view(p, {2, 10}), view(p + 20, {2}), sum{});
  EXPECT_EQ(memory[21], 10);
}

TEST(overlap, exactly_in_place_with_any_strides) {
  std::vector<int> memory(100, 1);
  const view v(memory.data() + 99, {50}, {-2});
  regroup::inclusive_scan(regroup::par, v, v, sum{});
  EXPECT_EQ(memory[1], 50);
  EXPECT_EQ(memory[0], 1);
}

/// Of a range whose references are equally far apart it is known where they lie.
TEST(overlap, ranges_that_are_no_views) {
  refused([](const auto& ex, int* p) {
    const std::span x(p, 50);
    regroup::inclusive_scan(ex, std::views::reverse(x), x, sum{});
  });
  refused([](const auto& ex, int* p) {
    const std::span x(p, 50);
    regroup::exclusive_scan(ex, std::views::drop(std::views::reverse(x), 10), x.first(40), sum{});
  });
  struct pair {
    int first, second;
  };
  std::vector<pair> pairs(50, {1, 2});
  const auto firsts = std::views::transform(pairs, &pair::first);
  const view odd(&pairs[0].second, {50}, {2}), half(&pairs[0].first, {50});
  EXPECT_THROW(regroup::inclusive_scan(regroup::par, firsts, half, sum{}), regroup::overlap_error);
  EXPECT_THROW(regroup::reduce_segments(regroup::par, firsts, std::vector{0, 50}, view(&pairs[3].first, {1}), sum{}), regroup::overlap_error);
  regroup::inclusive_scan(regroup::par, firsts, odd, sum{});  // between them
  EXPECT_EQ(pairs[49].second, 50);
  regroup::inclusive_scan(regroup::par, firsts, view(&pairs[0].first, {50}, {2}), sum{});  // exactly them
  EXPECT_EQ(pairs[49].first, 50);
  std::vector<int> ys(50);
  std::deque<int> lie_anyhow(50, 1);
  regroup::inclusive_scan(regroup::par, lie_anyhow, ys, sum{});
  regroup::inclusive_scan(regroup::par, std::views::reverse(std::span(ys).first(0)), std::span(ys).first(0), sum{});
  regroup::inclusive_scan(regroup::par, std::views::reverse(std::span(ys).first(1)), std::span(ys).first(1), sum{});
  EXPECT_EQ(ys[0], 1);
}

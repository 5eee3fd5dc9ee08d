// SPDX-License-Identifier: Apache-2.0
// The device folds of real monoids have the bits of `seq`: rows, segments and one long range, plain numbers and ones with
// zeros of both signs, denormals, infinities and NaN, 16-bit elements, projections, members; any plan and any grid.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "../order/cases.hpp"
#include "../order/digest.hpp"
#include "../../examples/operators.hpp"
#include "../order/recorder.hpp"
#include "folds.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/monoids/fanout.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/monoids/softmax_mean.hpp"
#include "regroup/reduce.hpp"

namespace {

using emulated::machine;
using emulated::schedule;
using order::digest_of;
using order::kind;

constexpr std::int64_t tile = regroup::tile_elements;

/// The digest of each row's answer on the host.
template <class M, class Batch>
std::vector<std::uint64_t> on_the_host(const M& m, const Batch& rows) {
  std::vector<std::uint64_t> digests;
  for (std::int64_t r = 0; r < rows.size(); ++r) digests.push_back(digest_of(regroup::reduce(regroup::seq, rows[r], m)));
  return digests;
}
template <class M, class States>
std::vector<std::uint64_t> digests_of(const M& m, const States& states) {
  std::vector<std::uint64_t> digests;
  for (const auto& s : states) digests.push_back(digest_of(regroup::lower(m, s)));
  return digests;
}

template <class M, class Batch>
void expect_the_bits_of_seq(const M& m, const Batch& rows, const std::string& where) {
  const auto expected = on_the_host(m, rows);
  for (auto [name, on] : emulated::machines(rows[0].size(), false)) {
    ASSERT_EQ(digests_of(m, emulated::fold(on, m, rows)), expected) << name << ", " << where;
  }
}

/// The lengths of rows: a few of each, through every team and past a tile.
constexpr std::int64_t lengths[] = {0, 1, 3, 17, 32, 33, 127, 128, 129, 300, 1000, 1024, 1025, 4095, 4096, 4097, 9000};

template <class M, class Elements>
void rows_of_every_length(const M& m, const Elements& elements) {
  for (const kind k : {kind::special, kind::plain, kind::wide}) {
    if (order::small() && k != kind::special) return;
    for (const std::int64_t n : lengths) {
      if (order::small() && n > 5000) continue;
      const std::int64_t count = n < 200 ? 40 : 3;
      const auto xs = elements(k, count * n);
      expect_the_bits_of_seq(m, emulated::rows_of(xs, count),
                             "rows of " + std::to_string(n) + ", kind " + std::to_string(int(k)));
    }
    const auto xs = elements(k, order::small() ? 2 * tile + 5 : 70'001);
    expect_the_bits_of_seq(m, emulated::one_row(xs), "one range");
  }
}

template <class X>
struct as_it_is {
  std::vector<X> operator()(kind k, std::int64_t n) const {
    return order::numbers<X>(k, n, static_cast<std::uint64_t>(n) + 1);
  }
};
struct as_maps {
  std::vector<regroup::affine_map<float>> operator()(kind k, std::int64_t n) const {
    std::vector<regroup::affine_map<float>> maps;
    for (const float x : as_it_is<float>{}(k, n)) maps.push_back({x * 0.125f, 1 - x});
    return maps;
  }
};
template <class Half>
struct as_halves {
  std::vector<Half> operator()(kind k, std::int64_t n) const {
    std::vector<Half> xs;
    for (const float x : as_it_is<float>{}(k, n)) xs.push_back(Half(x));
    return xs;
  }
};
struct as_bits {
  std::vector<char> operator()(kind k, std::int64_t n) const {
    std::vector<char> bits;
    for (const float x : as_it_is<float>{}(k, n)) bits.push_back(x > -1);
    return bits;
  }
};
struct ways : examples::min_plus {
  constexpr std::array<double, 4> lower(state s) const { return {s.aa, s.ab, s.ba, s.bb}; }
};
struct as_costs {
  std::vector<examples::min_plus::state> operator()(kind k, std::int64_t n) const {
    std::vector<examples::min_plus::state> steps;
    const double never = std::numeric_limits<double>::infinity();
    for (const double x : order::numbers<double>(k == kind::special ? kind::plain : k, n, 5)) {
      steps.push_back({x, x < 1 ? 2 - x : never, 0.3, -x});
    }
    return steps;
  }
};
struct affine_of {
  constexpr regroup::affine_map<float> operator()(float x) const { return {x * 0.125f, 1 - x}; }
};
using vector = regroup::fixed_vector<float, 4>;
struct as_keys {
  std::vector<regroup::scored<float, vector>> operator()(kind k, std::int64_t n) const {
    std::vector<regroup::scored<float, vector>> keys;
    for (const float x : as_it_is<float>{}(k, n)) keys.push_back({x, {{1 - x, 2, x * 0.5f, -0.0f}}});
    return keys;
  }
};

}  // namespace

TEST(fold_values, plus) { rows_of_every_length(regroup::plus<float>{}, as_it_is<float>{}); }
TEST(fold_values, log_sum_exp) { rows_of_every_length(regroup::log_sum_exp<float>{}, as_it_is<float>{}); }
TEST(fold_values, moments_in_double) { rows_of_every_length(regroup::moments<double>{}, as_it_is<double>{}); }
TEST(fold_values, affine_maps) { rows_of_every_length(regroup::affine<float>{}, as_maps{}); }
TEST(fold_values, of_float16) {
  rows_of_every_length(regroup::log_sum_exp<float>{}, as_halves<regroup::float16>{});
}
TEST(fold_values, of_bfloat16) { rows_of_every_length(regroup::plus<float>{}, as_halves<regroup::bfloat16>{}); }
TEST(fold_values, bytes_of_any) { rows_of_every_length(regroup::any{}, as_it_is<float>{}); }

TEST(fold_values, of_an_examples_operators) {
  rows_of_every_length(examples::longest_run{}, as_bits{});
  rows_of_every_length(ways{}, as_costs{});
}

TEST(fold_values, softmax_mean_of_large_elements) {
  rows_of_every_length(regroup::softmax_mean<float, vector>{}, as_keys{});
}

TEST(fold_values, members_by_their_own_rules) {
  const regroup::fanout m{regroup::moments<float>{}, regroup::log_sum_exp<float>{}, regroup::minimum<float>{},
                          regroup::count{}};
  rows_of_every_length(m, as_it_is<float>{});
}

TEST(fold_values, a_member_that_does_not_commute) {
  const regroup::fanout m{order::hashed<order::rule::pieces>{}, order::hashed<order::rule::striped, order::aggregate>{},
                          order::hashed<order::rule::tile>{}};
  for (const std::int64_t n : {std::int64_t{40}, std::int64_t{1024}, 2 * tile + 77}) {
    const auto xs = order::elements(3 * n);
    expect_the_bits_of_seq(m, emulated::rows_of(xs, 3), "rows of " + std::to_string(n));
  }
}

TEST(fold_values, strided_rows_and_columns) {
  const auto xs = as_it_is<float>{}(kind::special, 300 * 50);
  const regroup::log_sum_exp<float> m;
  expect_the_bits_of_seq(m, regroup::cuda::row_batch<const float>{xs.data(), 50, 300, 1, 50}, "columns");
  expect_the_bits_of_seq(m, regroup::cuda::row_batch<const float>{xs.data() + 299, 50, 300, 300, -1}, "backwards");
  expect_the_bits_of_seq(m, regroup::cuda::row_batch<const float>{xs.data() + 7, 9, 31, 60, 2}, "every second of some");
}

TEST(fold_values, through_a_projection) {
  struct record {
    float price;
    int amount;
  };
  std::vector<record> records;
  for (const float x : as_it_is<float>{}(kind::plain, 5000)) records.push_back({x, 3});
  const auto price = &record::price;
  const regroup::cuda::row_batch<const record, decltype(price)> rows{records.data(), 1, 5000, 5000, 1, price};
  machine on;
  const auto states = emulated::fold(on, regroup::plus<float>{}, rows);
  EXPECT_EQ(digest_of(states[0]), digest_of(regroup::reduce(regroup::seq, records, regroup::plus<float>{}, price)));
}

TEST(fold_values, of_positions) {
  using regroup::with_position;
  const auto xs = as_it_is<float>{}(kind::special, 3 * 9000);
  const regroup::argmin<float> m;
  using rows = regroup::cuda::row_batch<const float, with_position>;
  expect_the_bits_of_seq(m, rows{xs.data(), 3, 9000, 9000, 1, {}}, "rows of tiles");
  expect_the_bits_of_seq(m, rows{xs.data(), 500, 50, 50, 1, {}}, "short rows");
  expect_the_bits_of_seq(m, rows{xs.data(), 50, 300, 1, 50, {}}, "columns");
  const std::vector<int> offsets = {0, 0, 5, 4200, 4201, 5000, 26'000, 27'000};
  using segments = regroup::cuda::segment_batch<const float, int, with_position>;
  expect_the_bits_of_seq(m, segments{xs.data(), offsets.data(), 7, 27'000, {}}, "segments");
  machine on;
  const auto states = emulated::fold(on, regroup::argmax<float>{}, rows{xs.data(), 3, 9000, 9000, 1, {}});
  const regroup::generate second(9000, regroup::enumerate(xs.data() + 9000));
  EXPECT_EQ(states[1].position, regroup::reduce(regroup::seq, second, regroup::argmax<float>{}).position);
}

TEST(fold_values, segments_of_any_mix) {
  order::dice random(5);
  for (const std::int64_t typical : {3, 40, 700, 6000}) {
    if (order::small() && typical == 6000) return;
    std::vector<int> offsets = {0, 0};  // the first is empty
    for (int s = 1; s < 60; ++s) {
      const std::int64_t most = random(0, 9) == 0 ? 3 * tile : 2 * typical;
      const std::int64_t n = random(0, 4) == 0 ? 0 : random(1, most);
      offsets.push_back(offsets.back() + static_cast<int>(n));
    }
    const auto xs = as_it_is<float>{}(kind::special, offsets.back());
    const regroup::cuda::segment_batch<const float, int> rows{xs.data(), offsets.data(), 60, offsets.back()};
    expect_the_bits_of_seq(regroup::log_sum_exp<float>{}, rows, "typically " + std::to_string(typical));
    expect_the_bits_of_seq(regroup::affine<float>{},
                           regroup::cuda::segment_batch<const float, int, affine_of>{xs.data(), offsets.data(), 60,
                                                                              offsets.back(), {}},
                           "maps, typically " + std::to_string(typical));
  }
}

TEST(fold_values, segments_of_many_tiles_among_many_of_one_element) {
  std::vector<int> offsets = {0};
  for (int s = 0; s < 3000; ++s) {
    offsets.push_back(offsets.back() + (s == 700 ? 130 * 4096 : s % 1000 == 999 ? 4097 : s % 70 == 3 ? 1500 : 1));
  }
  const auto xs = order::elements(offsets.back());
  const regroup::cuda::segment_batch<const order::word, int> rows{xs.data(), offsets.data(), 3000, offsets.back()};
  const order::hashed<order::rule::pieces> m;
  const auto plan = plan_fold(lengths_of(rows), 132, sizeof(order::word));
  EXPECT_EQ(plan.levels, 2);
  for (const std::int64_t blocks : {std::int64_t{7}, std::int64_t{1}, regroup::cuda::most_blocks}) {
    if (order::small() && blocks != 7) return;
    machine on(schedule::random, 8);
    EXPECT_EQ(digests_of(m, emulated::fold(on, m, rows, plan, blocks)), on_the_host(m, rows)) << blocks << " blocks";
  }
}

TEST(fold_values, no_plan_and_no_grid_changes_a_bit) {
  const auto xs = order::elements(37 * tile + 11);
  const auto tree = order::expected<order::rule::striped>(xs);
  const order::hashed<order::rule::striped> m;
  const auto rows = emulated::one_row(xs);
  for (const std::int64_t range : {1, 2, 8, 32}) {
    for (const std::int64_t blocks : {std::int64_t{1}, std::int64_t{3}, regroup::cuda::most_blocks}) {
      regroup::cuda::fold_plan plan{.short_team = 0, .shortest = -1, .reach = range * tile, .levels = 1};
      machine on;
      EXPECT_EQ(emulated::fold(on, m, rows, plan, blocks)[0], tree) << range << " tiles a range, " << blocks << " blocks";
    }
  }
}

TEST(fold_values, several_levels_of_nodes) {
  const auto xs = order::elements(140 * tile - 3);
  machine on;
  const auto rows = emulated::one_row(xs);
  const auto plan = regroup::cuda::plan_fold(lengths_of(rows), 132, 8);
  EXPECT_EQ(plan.levels, 2);
  EXPECT_EQ(emulated::fold(on, order::hashed<order::rule::striped>{}, rows, plan)[0],
            order::expected<order::rule::striped>(xs));
}

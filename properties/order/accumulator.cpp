// SPDX-License-Identifier: Apache-2.0
// A stream has the bits of the batch, however it is cut, from any first position: positions before it are absent.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/stream.hpp"

namespace {

const std::vector<std::int64_t> first_positions = {0,    1,    31,   32,     127,    128,   2048,
                                                   4095, 4096, 4097, 12'345, 65'536, 99'999};

/// Pushes xs in pieces of random lengths, some empty, by the three ways of pushing.
template <class Accumulator>
void push_randomly(Accumulator& acc, const std::vector<order::word>& xs, order::dice& random) {
  std::size_t done = 0;
  const std::int64_t longest = std::vector<std::int64_t>{3, 40, 700, 20'000}[static_cast<std::size_t>(random(0, 3))];
  while (done < xs.size()) {
    const auto left = static_cast<std::int64_t>(xs.size() - done);
    const auto n = static_cast<std::size_t>(std::min(left, random(0, longest)));
    const std::span<const order::word> piece(xs.data() + done, n);
    switch (random(0, 3)) {
      case 0:
        acc.push(piece);
        break;
      case 1:
        acc.push(regroup::par.with_threads(3), piece);
        break;
      case 2:
        acc.push(std::deque<order::word>(piece.begin(), piece.end()));
        break;
      default:
        for (const auto x : piece) acc.push_one(x);
    }
    done += n;
  }
}

template <order::rule Rule, class State = order::word>
void every_cut() {
  order::dice random(21);
  for (const auto first : first_positions) {
    for (const std::int64_t n : {0, 1, 31, 130, 1000, 4095, 4096, 8193, 30'000}) {
      if (order::small() && n > 5000) continue;
      const auto xs = order::elements(n);
      const order::word tree = order::expected<Rule>(xs, first);
      for (int repeat = 0; repeat < 2; ++repeat) {
        regroup::accumulator acc{order::hashed<Rule, State>{}, first};
        push_randomly(acc, xs, random);
        ASSERT_EQ(acc.value(), tree) << "from " << first << ", n = " << n;
        ASSERT_EQ(order::tree_of(acc.current()), tree) << "from " << first << ", n = " << n;
        ASSERT_EQ(acc.size(), n);
        ASSERT_EQ(acc.first_position(), first);
      }
    }
  }
}

}  // namespace

TEST(accumulator, contiguous_pieces) { every_cut<order::rule::pieces>(); }
TEST(accumulator, pieces_of_opaque) { every_cut<order::rule::pieces, order::opaque>(); }
TEST(accumulator, striped_lanes) { every_cut<order::rule::striped>(); }
TEST(accumulator, striped_aggregates) { every_cut<order::rule::striped, order::aggregate>(); }
TEST(accumulator, tile_lift) { every_cut<order::rule::tile>(); }
TEST(accumulator, striped_tile_lift) { every_cut<order::rule::striped_tile>(); }

TEST(accumulator, every_short_length_from_every_edge) {
  for (const std::int64_t first : {0, 1, 30, 127, 4000}) {
    regroup::accumulator pieces{order::hashed<order::rule::pieces>{}, first};
    regroup::accumulator striped{order::hashed<order::rule::striped>{}, first};
    regroup::accumulator tile{order::hashed<order::rule::tile>{}, first};
    for (std::int64_t n = 0; n <= 300; ++n) {
      const auto xs = order::elements(n);
      ASSERT_EQ(pieces.value(), order::expected<order::rule::pieces>(xs, first)) << first << ", " << n;
      ASSERT_EQ(striped.value(), order::expected<order::rule::striped>(xs, first)) << first << ", " << n;
      ASSERT_EQ(tile.value(), order::expected<order::rule::tile>(xs, first)) << first << ", " << n;
      pieces.push_one(order::element(n));
      striped.push_one(order::element(n));
      tile.push_one(order::element(n));
    }
  }
}

TEST(accumulator, a_value_on_the_way_changes_nothing) {
  const auto xs = order::elements(20'000);
  regroup::accumulator acc{order::hashed<order::rule::striped>{}, 77};
  for (std::size_t i = 0; i < xs.size(); i += 613) {
    const std::vector<order::word> so_far(xs.begin(), xs.begin() + static_cast<std::ptrdiff_t>(i));
    ASSERT_EQ(acc.value(), order::expected<order::rule::striped>(so_far, 77)) << i;
    acc.push(std::span(xs).subspan(i, std::min<std::size_t>(613, xs.size() - i)));
  }
  EXPECT_EQ(acc.value(), order::expected<order::rule::striped>(xs, 77));
}

TEST(accumulator, a_copy_goes_its_own_way) {
  const auto xs = order::elements(9000);
  regroup::accumulator acc{order::hashed<order::rule::pieces>{}};
  acc.push(std::span(xs).first(5000));
  auto copy = acc;
  copy.push(std::span(xs).subspan(5000));
  EXPECT_EQ(acc.value(), order::expected<order::rule::pieces>({xs.begin(), xs.begin() + 5000}));
  EXPECT_EQ(copy.value(), order::expected<order::rule::pieces>(xs));
  const regroup::accumulator another = copy;
  EXPECT_EQ(another.value(), copy.value());
}

TEST(accumulator, what_is_moved_from_is_empty) {
  const auto xs = order::elements(9000);
  const auto expect_empty = [&](auto& acc) {
    EXPECT_EQ(acc.size(), 0);
    EXPECT_EQ(acc.next_position(), 0);
    EXPECT_EQ(acc.value(), 0U);
    acc.push(xs);
    EXPECT_EQ(acc.value(), order::expected<order::rule::striped>(xs));
  };
  regroup::accumulator first{order::hashed<order::rule::striped>{}, 77}, elsewhere = first;
  first.push(xs);
  elsewhere.push(xs);
  first.merge(elsewhere);  // a base, and no positions
  const auto value = first.value();
  regroup::accumulator second = std::move(first);
  EXPECT_EQ(second.value(), value);
  expect_empty(first);
  elsewhere = std::move(second);
  EXPECT_EQ(elsewhere.value(), value);
  expect_empty(second);
}

TEST(accumulator, positions_end_at_2_62) {
  using sum = regroup::accumulator<regroup::plus<int>>;
  constexpr std::int64_t last = std::int64_t{1} << 62;
  const std::vector<int> ones(4096, 1);
  for (const std::int64_t before : {0, 3, 4096}) {
    sum acc{{}, last - before};
    acc.push(std::span(ones).first(static_cast<std::size_t>(before)));
    EXPECT_EQ(acc.value(), before);
    EXPECT_THROW(acc.push_one(1), regroup::argument_error);
    EXPECT_EQ(acc.size(), before);  // what is refused changes nothing
    EXPECT_EQ(sum::load({}, acc.save()).value(), before);
    EXPECT_THROW(acc.push(ones), regroup::argument_error);
  }
  EXPECT_THROW(sum({}, last + 1), regroup::argument_error);
  EXPECT_THROW(sum({}, std::numeric_limits<std::int64_t>::max()), regroup::argument_error);
}

TEST(accumulator, merged_elements_are_counted_up_to_2_62) {
  regroup::accumulator acc{regroup::plus<int>{}};
  acc.push_one(1);
  for (int i = 0; i < 62; ++i) acc.merge(acc);
  EXPECT_EQ(acc.size(), std::int64_t{1} << 62);
  EXPECT_THROW(acc.merge(acc), regroup::argument_error);
  EXPECT_THROW(acc.push_one(1), regroup::argument_error);
  EXPECT_EQ(acc.size(), std::int64_t{1} << 62);
}

TEST(accumulator, of_yes_and_no) {
  for (const std::int64_t first : {0, 4000}) {
    regroup::accumulator<order::tenfold, bool> acc{{}, first};
    acc.push(std::vector<bool>(100, true));
    acc.push(std::vector<bool>(5000, false));
    EXPECT_EQ(acc.value(), 6000);
    EXPECT_EQ((regroup::accumulator<order::tenfold, bool>::load({}, acc.save()).value()), 6000);
  }
}

/// Elements of another type become the accumulator's as they are pushed, wherever they are cut.
template <class X, class M>
void expect_converted(const M& m) {
  using element = regroup::state_of<M>;
  std::vector<X> xs;
  std::vector<element> converted;
  for (int i = 0; i < 30'000; ++i) {
    xs.push_back(static_cast<X>(static_cast<float>(i * 7919 % 101)));
    converted.push_back(static_cast<element>(regroup::widen(xs.back())));
  }
  order::dice random(5);
  for (const std::int64_t first : {0, 4000}) {
    regroup::accumulator in_pieces{m, first}, whole{m, first};
    for (std::size_t done = 0; done < xs.size();) {
      const auto n = std::min(static_cast<std::size_t>(random(0, 6000)), xs.size() - done);
      in_pieces.push(std::span(xs).subspan(done, n));
      done += n;
    }
    whole.push(converted);
    EXPECT_EQ(in_pieces.save(), whole.save()) << first;
  }
}
TEST(accumulator, of_other_numbers) {
  expect_converted<float>(regroup::plus<double>{});
  expect_converted<regroup::bfloat16>(regroup::plus<float>{});
  expect_converted<regroup::float16>(regroup::maximum<float>{});
  expect_converted<unsigned char>(regroup::plus<std::int64_t>{});
}
/// Half of what comes, by its type's division; by default doubles come.
struct halves {
  double identity() const { return 0; }
  double operator()(double a, double b) const { return a + b; }
  template <class X>
  double lift(X x) const {
    return static_cast<double>(x / 2);
  }
};
TEST(accumulator, narrows_every_element_as_one_by_itself) {
  const auto agree = [](auto m, auto one, const auto& xs) {
    using element = decltype(one);
    regroup::accumulator<decltype(m), element> at_once{m}, by_threads{m}, one_by_one{m};
    at_once.push(xs);
    by_threads.push(regroup::par.with_threads(3), xs);
    for (const auto x : xs) one_by_one.push_one(static_cast<element>(x));
    EXPECT_EQ(at_once.save(), one_by_one.save());
    EXPECT_EQ(by_threads.save(), one_by_one.save());
  };
  agree(regroup::plus<double>{}, float{}, std::vector<double>(9000, 0.1));
  agree(regroup::plus<std::int64_t>{}, static_cast<signed char>(0), std::vector<int>(9000, 300));
  agree(regroup::plus<float>{}, regroup::float16{}, std::vector<float>(9000, 0.1F));
  agree(halves{}, double{}, std::vector<int>(9000, 3));
}

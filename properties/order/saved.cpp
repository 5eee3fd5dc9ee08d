// SPDX-License-Identifier: Apache-2.0
// A saved accumulator continues after loading as if it had not been saved; damaged bytes and another order version are a
// format_error.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "recorder.hpp"
#include "regroup/error.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/fanout.hpp"
#include "regroup/stream.hpp"

namespace {

template <order::rule Rule, class State = order::word>
using stream = regroup::accumulator<order::hashed<Rule, State>, order::word>;

template <order::rule Rule, class State = order::word>
void round_trips() {
  for (const std::int64_t first : {0, 1, 127, 4095, 5000}) {
    for (const std::int64_t n : {0, 1, 130, 4000, 4096, 9000, 40'000}) {
      const auto xs = order::elements(n + 6000);
      stream<Rule, State> acc{{}, first};
      acc.push(std::span(xs).first(static_cast<std::size_t>(n)));
      const std::vector<std::byte> bytes = acc.save();
      auto loaded = stream<Rule, State>::load({}, bytes);
      ASSERT_EQ(loaded.value(), acc.value());
      ASSERT_EQ(loaded.size(), n);
      ASSERT_EQ(loaded.first_position(), first);
      if constexpr (std::has_unique_object_representations_v<State>) {
        ASSERT_EQ(loaded.save(), bytes);
      }
      loaded.push(std::span(xs).subspan(static_cast<std::size_t>(n)));
      ASSERT_EQ(loaded.value(), order::expected<Rule>(xs, first)) << "from " << first << ", n = " << n;
    }
  }
}

stream<order::rule::striped> some_stream() {
  stream<order::rule::striped> acc{{}, 4000};
  acc.push(order::elements(300));
  return acc;
}

/// A letter and a number with seven bytes between them that mean nothing.
struct padded {
  char letter;
  double number;
  std::array<long double, 2> wide;
};
/// A list of these whose padding holds `rubbish`.
class padded_list {
 public:
  padded_list(std::size_t n, int rubbish) : storage_(n) {
    std::memset(static_cast<void*>(storage_.data()), rubbish, n * sizeof(padded));
    for (std::size_t i = 0; i < n; ++i) {
      storage_[i].letter = static_cast<char>('a' + i % 26);
      storage_[i].number = static_cast<double>(i);
      storage_[i].wide = {1.5L, -static_cast<long double>(i)};
    }
  }
  [[nodiscard]] std::span<const padded> all() const { return storage_; }

 private:
  std::vector<padded> storage_;
};
/// The last one.
struct latest {
  padded identity() const { return {0, 0, {}}; }
  padded operator()(const padded& a, const padded& b) const { return b.letter == 0 ? a : b; }
};

/// The same bytes with some of them changed and the checksum right again.
std::vector<std::byte> forged(std::vector<std::byte> bytes, std::size_t at, std::byte change) {
  bytes.resize(bytes.size() - regroup::streams::writer{}.finish().size());
  bytes.at(at) ^= change;
  regroup::streams::writer again;
  for (const std::byte b : bytes) again.put(b);
  return std::move(again).finish();
}

}  // namespace

TEST(saved, contiguous_pieces) { round_trips<order::rule::pieces>(); }
TEST(saved, striped_lanes) { round_trips<order::rule::striped>(); }
TEST(saved, striped_aggregates) { round_trips<order::rule::striped, order::aggregate>(); }
TEST(saved, tile_lift) { round_trips<order::rule::tile>(); }

TEST(saved, a_loaded_one_merges_as_the_original) {
  const auto xs = order::elements(20'000);
  stream<order::rule::striped> left{{}, 10};
  stream<order::rule::striped> right{{}, 10 + 7001};
  left.push(std::span(xs).first(7001));
  right.push(std::span(xs).subspan(7001));
  auto loaded = stream<order::rule::striped>::load({}, left.save());
  loaded.merge(stream<order::rule::striped>::load({}, right.save()));
  EXPECT_EQ(loaded.value(), order::expected<order::rule::striped>(xs, 10));
}

TEST(saved, after_an_inexact_merge) {
  stream<order::rule::pieces> a{{}};
  a.push(order::elements(5000));
  a.merge(a);
  auto loaded = stream<order::rule::pieces>::load({}, a.save());
  EXPECT_EQ(loaded.value(), a.value());
  a.push(order::elements(5000));
  loaded.push(order::elements(5000));
  EXPECT_EQ(loaded.value(), a.value());
}

TEST(saved, equal_accumulators_save_equal_bytes) {
  for (const std::size_t n : {1U, 100U, 4096U, 9000U, 20'000U}) {
    std::vector<std::vector<std::byte>> bytes;
    for (const int rubbish : {0x00, 0xa5, 0xff}) {
      const padded_list xs(n, rubbish);
      regroup::accumulator acc{latest{}, 100};
      acc.push(xs.all());
      bytes.push_back(acc.save());
      acc.merge(acc);  // inexact: leaves a state
      bytes.push_back(acc.save());
      auto loaded = regroup::accumulator<latest>::load({}, bytes.back());
      EXPECT_EQ(loaded.value().letter, static_cast<char>('a' + (n - 1) % 26));
      EXPECT_EQ(loaded.value().number, static_cast<double>(n - 1));
      EXPECT_EQ(loaded.value().wide[1], -static_cast<long double>(n - 1));
    }
    for (std::size_t i = 2; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], bytes[i % 2]) << n << " elements";
  }
}

TEST(saved, a_fanout_state_is_equal_bytes_whatever_its_padding) {
  using state = regroup::state_of<regroup::fanout<regroup::count, regroup::maximum<float>>>;
  const auto saved = [](int rubbish) {
    alignas(state) std::array<std::byte, sizeof(state)> room;
    room.fill(static_cast<std::byte>(rubbish));
    regroup::streams::writer out;
    out.put(*::new (room.data()) state{{7}, {2.5F}});
    return std::move(out).finish();
  };
  static_assert(sizeof(state) == 16);
  EXPECT_EQ(saved(0x00), saved(0xa5));
}

TEST(saved, any_changed_byte_is_a_format_error) {
  const auto bytes = some_stream().save();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int change : {1, 0x80, 0xff}) {
      auto damaged = bytes;
      damaged[i] ^= static_cast<std::byte>(change);
      EXPECT_THROW(stream<order::rule::striped>::load({}, damaged), regroup::format_error) << "byte " << i;
    }
  }
}

TEST(saved, any_other_length_is_a_format_error) {
  auto bytes = some_stream().save();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_THROW(stream<order::rule::striped>::load(
                     {}, std::vector<std::byte>(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n))),
                 regroup::format_error)
        << n;
  }
  bytes.push_back(std::byte{0});
  EXPECT_THROW(stream<order::rule::striped>::load({}, bytes), regroup::format_error);
}

TEST(saved, bytes_of_another_state_are_a_format_error) {
  const auto bytes = some_stream().save();
  using other = stream<order::rule::striped, order::aggregate>;
  EXPECT_THROW(other::load({}, bytes), regroup::format_error);
}

TEST(saved, another_order_version_is_a_format_error_that_says_so) {
  const auto bytes = some_stream().save();
  EXPECT_EQ(forged(bytes, 0, std::byte{0}), bytes);
  const auto other_version = forged(bytes, sizeof(regroup::streams::magic), std::byte{1});
  try {
    stream<order::rule::striped>::load({}, other_version);
    FAIL() << "loaded";
  } catch (const regroup::format_error& e) {
    EXPECT_NE(std::string(e.what()).find("version"), std::string::npos) << e.what();
  }
}

TEST(saved, forged_bytes_with_a_right_checksum_are_refused_or_harmless) {
  const auto bytes = some_stream().save();
  const std::size_t payload = bytes.size() - regroup::streams::writer{}.finish().size();
  for (std::size_t i = 0; i < payload; i += i < 80 ? 1 : 37) {
    for (const int change : {1, 0x10, 0x80, 0xff}) {
      try {
        auto loaded = stream<order::rule::striped>::load({}, forged(bytes, i, static_cast<std::byte>(change)));
        (void)loaded.value();
        loaded.push(order::elements(9000));
        (void)loaded.value();
      } catch (const regroup::error&) {
      }
    }
  }
}

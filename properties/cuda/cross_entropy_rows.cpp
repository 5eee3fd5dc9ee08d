// SPDX-License-Identifier: Apache-2.0
// cross_entropy by the device's kernels has the bits of `seq`: losses, their mean and sum, gradients in place, ignored rows,
// rows of every length, rows that hold infinities and NaN; and what is refused, with the host's sentences.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "faults.hpp"
#include "regroup/algorithms/cross_entropy.hpp"
#include "rows.hpp"
#include "said.hpp"

namespace {

namespace cuda = regroup::cuda;
using emulated::machine;
using emulated::schedule;
using order::digest_of;
using order::kind;
using regroup::loss_reduction;

/// A call of the verb: rows of logits against targets, gradient in place, every answer.
template <class X, class Target>
struct call {
  std::vector<X> logits;  // then the gradient
  std::vector<Target> targets;
  loss_reduction reduction = loss_reduction::mean;
  double scale = 1;
  double gradient_scale = 1;
  regroup::index ignore_index = 7;
  float loss = 99;
  std::vector<float> losses = std::vector<float>(targets.size(), 99);

  [[nodiscard]] regroup::shape shape() const {
    const auto count = static_cast<std::int64_t>(targets.size());
    return {count, static_cast<std::int64_t>(logits.size()) / count};
  }
  void on_the_host()
    requires std::same_as<X, float> && std::same_as<Target, int>
  {
    const regroup::view<X> x(logits.data(), shape());
    loss = regroup::cross_entropy(
        regroup::seq, x, targets,
        {.ignore_index = ignore_index, .reduction = reduction, .gradient = x, .losses = regroup::view<float>(losses),
         .scale = scale, .gradient_scale = gradient_scale});
  }
  /// Whether the targets are right.
  bool on_the_device(machine& on) { return on_the_device(on, on); }
  bool on_the_device(machine& checks, machine& on, regroup::index most_blocks = cuda::most_blocks) {
    const cuda::device_view<X> x(logits.data(), shape());
    const cuda::device_view<Target> t(targets.data(), {shape()[0]});
    const cuda::entropy_work<X, Target> work(
        x, t,
        {.ignore_index = ignore_index, .reduction = reduction, .gradient = x,
         .losses = cuda::device_view<float>(losses.data(), {shape()[0]}), .scale = scale, .gradient_scale = gradient_scale});
    const emulated::executor executor{on, cuda::most_cluster_blocks, most_blocks};
    const std::size_t bytes = work.bytes(executor);
    const auto memory = emulated::memory_of(bytes);
    work.check(emulated::executor{checks}, {memory.data(), bytes});
    const auto said = *reinterpret_cast<const cuda::check_targets::state*>(memory.data());
    if (reduction == loss_reduction::none) loss = 0;
    work.run(executor, &loss, {memory.data(), bytes});
    return said.first_wrong < 0;
  }
};

template <class X, class Target = int>
call<X, Target> some(kind k, std::int64_t count, std::int64_t classes, loss_reduction reduction = loss_reduction::mean,
                     std::uint64_t seed = 3) {
  order::dice random(static_cast<std::uint64_t>(classes));
  std::vector<Target> targets;
  for (std::int64_t r = 0; r < count; ++r) {
    targets.push_back(static_cast<Target>(random(0, 4) == 0 ? 7 : random(0, classes - 1)));
  }
  std::vector<X> xs;
  for (const float x : order::numbers<float>(k, count * classes, seed)) xs.push_back(X(x));
  return {xs, targets, reduction};
}

template <class X>
std::vector<float> widened(const std::vector<X>& xs) {
  std::vector<float> wide;
  for (const X x : xs) wide.push_back(regroup::widen(x));
  return wide;
}

template <class X, class Target>
void expect_the_bits_of_seq(machine on, call<X, Target> device, const std::string& where) {
  call<float, int> host{widened(device.logits), {device.targets.begin(), device.targets.end()}, device.reduction,
                        device.scale, device.gradient_scale};
  host.on_the_host();
  for (float& y : host.logits) y = regroup::widen(static_cast<X>(y));
  ASSERT_TRUE(device.on_the_device(on)) << where;
  ASSERT_EQ(digest_of(device.loss), digest_of(host.loss)) << where;
  ASSERT_EQ(digest_of(device.losses), digest_of(host.losses)) << where;
  ASSERT_EQ(digest_of(widened(device.logits)), digest_of(host.logits)) << where << ", gradient";
}

}  // namespace

TEST(cross_entropy_rows, of_every_length) {
  for (const std::int64_t n : {8, 31, 33, 129, 1000, 1024, 1025, 4096, 4097, 9000, 40'000, 65'537, 150'000}) {
    if (n > 9000 && order::small()) continue;
    for (auto [name, on] : emulated::machines(n, n <= 9000 && !order::small())) {
      for (const kind k : {kind::plain, kind::special, kind::wide}) {
        expect_the_bits_of_seq(on, some<float>(k, n < 200 ? 70 : 3, n), name + ", classes: " + std::to_string(n));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(cross_entropy_rows, of_bfloat16_and_other_targets) {
  for (const std::int64_t n : {8, 500, 5000, 9000}) {
    expect_the_bits_of_seq(machine(schedule::random, 3), some<regroup::bfloat16, std::int64_t>(kind::plain, 40, n),
                           "bfloat16, classes: " + std::to_string(n));
  }
}

TEST(cross_entropy_rows, sums_and_no_sum_and_many_rows) {
  for (const auto reduction : {loss_reduction::sum, loss_reduction::none, loss_reduction::mean}) {
    expect_the_bits_of_seq(machine(), some<float>(kind::plain, order::small() ? 300 : 9000, 8, reduction), "many rows");
  }
}

TEST(cross_entropy_rows, scales) {
  for (const std::int64_t n : {8, 500, 5000, 66'000}) {
    for (const auto reduction : {loss_reduction::sum, loss_reduction::mean}) {
      auto device = some<float>(kind::plain, 5, n, reduction);
      device.scale = 0.3;
      device.gradient_scale = 1000;
      expect_the_bits_of_seq(machine(), device, "classes: " + std::to_string(n));
    }
  }
}

TEST(cross_entropy_rows, all_ignored) {
  auto device = some<float>(kind::plain, 9, 8);
  device.targets.assign(9, 7);
  expect_the_bits_of_seq(machine(), device, "mean");
  device.reduction = loss_reduction::sum;
  expect_the_bits_of_seq(machine(), device, "sum");
}

TEST(cross_entropy_rows, the_first_wrong_target_is_found) {
  machine on;
  const emulated::executor executor{on};
  for (const std::int64_t wrong : {0, 31, 32, 4095, 4096, 9998}) {
    auto device = some<float>(kind::plain, 9999, 1);
    device.targets[static_cast<std::size_t>(wrong)] = wrong % 2 == 0 ? 1 : -3;
    device.targets[9998] = -1;
    std::int64_t used = 0;
    for (const int t : device.targets) used += t != 7;
    const cuda::device_view<float> x(device.logits.data(), {9999, 1});
    const cuda::device_view<int> t(device.targets.data(), {9999});
    const cuda::entropy_work<float, int> work(x, t, {.ignore_index = 7});
    const auto memory = emulated::memory_of(work.bytes(executor));
    work.check(executor, {memory.data(), work.bytes(executor)});
    const auto found = *reinterpret_cast<const cuda::check_targets::state*>(memory.data());
    EXPECT_EQ(found.first_wrong, wrong);
    EXPECT_EQ(found.used, used);
    const int target = *work.target_at(found.first_wrong);
    EXPECT_EQ(said<regroup::argument_error>([&] { work.refuse(found.first_wrong, target); }),
              said<regroup::argument_error>([&] { device.on_the_host(); }));
  }
}

TEST(cross_entropy_rows, a_target_past_every_index_is_wrong_and_not_ignored) {
  std::vector<std::uint64_t> targets(5, 1);
  targets[3] = ~std::uint64_t{99};  // 2^64 - 100
  machine on;
  call<float, std::uint64_t> device{std::vector<float>(40, 1.0f), targets, loss_reduction::sum, 1, 1, -100};
  EXPECT_FALSE(device.on_the_device(on));
  EXPECT_NE(device.losses[3], device.losses[3]);
  EXPECT_EQ(device.losses[2], device.losses[4]);
}

TEST(cross_entropy_rows, a_wrong_target_makes_its_row_nan_where_nobody_can_throw) {
  for (const std::int64_t n : {20, 2000, 5000, 66'000}) {
    auto wrong = some<float>(kind::plain, 3, n, loss_reduction::sum);
    auto right = wrong;
    wrong.targets[1] = static_cast<int>(n);
    right.targets[1] = 7;
    machine on;
    EXPECT_FALSE(wrong.on_the_device(on));
    right.on_the_device(on);
    EXPECT_NE(wrong.loss, wrong.loss);
    EXPECT_EQ(wrong.losses[0], right.losses[0]);
    EXPECT_EQ(wrong.losses[2], right.losses[2]);
    for (std::int64_t i = 0; i < 3 * n; ++i) {
      const float y = wrong.logits[static_cast<std::size_t>(i)];
      ASSERT_EQ(i / n == 1 ? 0 : digest_of(right.logits[static_cast<std::size_t>(i)]), y == y ? digest_of(y) : 0);
    }
  }
}

/// Rows that one block takes in turn, whose largest element stands in each of the lanes that one wrong step leaves out, in
/// any strip. The others are so near it that the weights are alike, and in what order they are added shows; none of the rows
/// is ignored, since 0 hides everything. The targets are checked on a machine that works.
std::function<bool(machine&)> crosses(std::int64_t count, std::int64_t n) {
  std::vector<std::pair<call<float, int>, call<float, int>>> calls;
  for (const std::int64_t at : emulated::places_left_out(n)) {
    auto device = some<float>(kind::plain, count, n, loss_reduction::none, 3 + calls.size());
    for (float& x : device.logits) x /= 8;
    for (std::int64_t r = 0; r < count; ++r) {
      device.logits[static_cast<std::size_t>(r * n + at)] = 1.125f + 0.05f * static_cast<float>(r);
      device.targets[static_cast<std::size_t>(r)] = static_cast<int>((11 + 5 * r) % n);
    }
    auto host = device;
    host.on_the_host();
    calls.emplace_back(device, host);
  }
  return [calls](machine& on) {
    for (auto [device, host] : calls) {
      machine checks;
      device.on_the_device(checks, on, 1);
      if (digest_of(device.losses) != digest_of(host.losses)) return false;
      if (digest_of(device.logits) != digest_of(host.logits)) return false;
    }
    return true;
  };
}

TEST(cross_entropy_faults, every_operation_of_a_row) {
  using emulated::each_is_caught;
  using emulated::fault;
  // Of a maximum, of a sum, and what tells the map. Four threads hold a row, 32 rows a block:
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, crosses(64, 7)), 2 * (3 + 3 + 1));
  // a warp each: its 32 threads are joined; lanes 64 and 32 apart are halved by three, and then 16 to 1
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, crosses(8, 1024)), 2 * (5 + (3 + 5) + 1));
  // two warps: they are joined as well, and the map goes through shared memory, where one place cannot be missed
  EXPECT_EQ(each_is_caught(fault::shift_shuffle, crosses(3, 2048)), 3 * (5 + 1 + (3 + 5)));
  EXPECT_EQ(each_is_caught(fault::skip_barrier, crosses(3, 2048)), 3 * (1 + 2 + 1));
  for (const auto what : {fault::shift_get, fault::shift_set}) EXPECT_EQ(each_is_caught(what, crosses(1, 2048)), 1 + 1);
  if (order::small()) return;
  // Two blocks, of which the first tells the map.
  EXPECT_EQ(each_is_caught(fault::own_block, crosses(1, 16'384)), 3);
}

TEST(row_verbs, refuse_with_sentences) {
  float x[24];
  float y[24];
  int t[6];
  const cuda::device_view<float> logits(x, {6, 4});
  using regroup::softmax_parts::probability;
  EXPECT_EQ(said<regroup::shape_error>([&] { cuda::entropy_work<float, int>(logits, {t, {5}}, {}); }),
            "cross_entropy needs one target a row, 6 for logits of shape (6, 4), in their shape or in a list; the targets have "
            "shape (5,)");
  EXPECT_THROW((cuda::entropy_work<float, int>(logits, {t, {6}}, {.losses = cuda::device_view<float>(x, {6})})),
               regroup::overlap_error);
  EXPECT_THROW((cuda::entropy_work<float, int>(logits, {t, {6}}, {.losses = cuda::device_view<float>(y, {5})})),
               regroup::shape_error);
  EXPECT_THROW((cuda::entropy_work<float, int>(logits, {t, {6}}, {.scale = 1e20, .gradient_scale = 1e20})),
               regroup::argument_error);
  EXPECT_THROW((cuda::entropy_work<float, int>(logits, {t, {6}}, {.gradient = cuda::device_view<float>(y, {4, 6})})),
               regroup::shape_error);
  const auto softmax = [&](const cuda::device_view<float>& to, const cuda::softmax_options<float>& options) {
    return [=] { cuda::normalise<probability>(logits, to, options, "softmax"); };
  };
  EXPECT_EQ(said<regroup::shape_error>(softmax({y, {4, 6}}, {})),
            "the output of softmax has the shape of its input, (6, 4); got (4, 6)");
  EXPECT_EQ(said<regroup::shape_error>(softmax({y, {6, 4}}, {.axis = 2})), "axis 2 does not exist in shape (6, 4)");
  EXPECT_THROW(softmax({x + 4, {6, 4}}, {})(), regroup::overlap_error);
  EXPECT_NO_THROW(softmax({x, {6, 4}}, {.axis = 0})());
  EXPECT_THROW(softmax({y, {6, 4}}, {.scale = std::numeric_limits<double>::infinity()})(), regroup::argument_error);
  EXPECT_THROW(softmax({y, {6, 4}}, {.logsumexp = cuda::device_view<float>(y, {6})})(), regroup::overlap_error);
  EXPECT_THROW(softmax({y, {6, 4}}, {.axis = 0, .logsumexp = cuda::device_view<float>(x, {6})})(), regroup::shape_error);
  EXPECT_THROW(cuda::log_sums(logits, cuda::device_view<float>(y, {7}), {}), regroup::shape_error);
  EXPECT_EQ(cuda::log_sums(logits, cuda::device_view<float>(y, {4}), {.axis = 0}).rows.length, 6);
}

// SPDX-License-Identifier: Apache-2.0
// Executors that share a worker share a verb's code: the types of what a verb passes on (a sink, an answer, a body) do not
// depend on the executor. Level: thread.
#include <gtest/gtest.h>

#include <cstdint>
#include <typeindex>
#include <vector>

#include "regroup/regroup.hpp"

namespace {

using regroup::index;

/// Does as `seq`, and remembers the types of what it is handed.
struct remembering {
  std::vector<std::type_index>* handed;

  template <class Batch, class M, class Sink>
  void fold(const Batch& b, const M& m, const Sink& sink) const {
    handed->push_back(typeid(Sink));
    regroup::seq.fold(b, m, sink);
  }
  template <class Batch, class Out, class M, class Answer>
  void scan(const Batch& b, const Out& out, const M& m, regroup::scan_kind kind, const Answer& answer) const {
    handed->push_back(typeid(Answer));
    regroup::seq.scan(b, out, m, kind, answer);
  }
  template <class Body>
  void for_each(index n, double cost, const Body& body) const {
    handed->push_back(typeid(Body));
    regroup::seq.for_each(n, cost, body);
  }
};

template <int>
struct owner : remembering {
  [[nodiscard]] remembering worker() const { return *this; }
};

/// verb(executor) hands the same types to two executors.
template <class Verb>
void expect_one_code(const Verb& verb) {
  std::vector<std::type_index> one, other;
  verb(owner<1>{{&one}});
  verb(owner<2>{{&other}});
  EXPECT_FALSE(one.empty());
  EXPECT_EQ(one, other);
}

/// A matrix of `rows` rows and as many columns as fit.
struct matrix {
  std::vector<float> elements;
  regroup::view<float> all;
  explicit matrix(index rows, index columns)
      : elements(static_cast<std::size_t>(rows * columns), 1), all(elements.data(), {rows, columns}) {}
};

}  // namespace

TEST(one_worker, executors_on_this_machine) {
  const regroup::host::pool of_one = regroup::worker_of(regroup::seq);
  const regroup::host::pool of_some = regroup::worker_of(regroup::par.with_threads(3));
  EXPECT_EQ(of_one.concurrency(), 1);
  EXPECT_EQ(of_some.concurrency(), 3);
}

TEST(one_worker, reduce) {
  const matrix x(6, 100);
  const std::vector<int> offsets{0, 7, 600};
  const std::vector<float> zeros(600);
  expect_one_code([&](const auto& ex) { (void)reduce(ex, x.elements, regroup::plus<float>{}); });
  expect_one_code([&](const auto& ex) { (void)reduce(ex, x.all, regroup::plus<float>{}); });
  std::vector<float> two(2), six(6), hundred(100), out(600), keys(600);
  expect_one_code([&](const auto& ex) { reduce_rows(ex, x.all, six, regroup::plus<float>{}); });
  expect_one_code([&](const auto& ex) { reduce_axes(ex, x.all, {0}, hundred, regroup::plus<float>{}); });
  expect_one_code([&](const auto& ex) { reduce_segments(ex, x.elements, offsets, two, regroup::plus<float>{}); });
  expect_one_code([&](const auto& ex) { (void)reduce_by_key(ex, zeros, x.elements, keys, out, regroup::plus<float>{}); });
}

TEST(one_worker, scan) {
  const matrix x(6, 100);
  matrix y(6, 100);
  const std::vector<int> offsets{0, 7, 600};
  expect_one_code([&](const auto& ex) { inclusive_scan(ex, x.elements, y.elements, regroup::plus<float>{}); });
  expect_one_code([&](const auto& ex) { exclusive_scan_rows(ex, x.all, y.all, regroup::plus<float>{}); });
  expect_one_code([&](const auto& ex) { inclusive_scan_axis(ex, x.all, 0, y.all, regroup::plus<float>{}); });
  expect_one_code([&](const auto& ex) {
    inclusive_scan_segments(ex, x.elements, offsets, y.elements, regroup::plus<float>{});
  });
}

TEST(one_worker, accumulator) {
  const std::vector<float> x(3 * regroup::tile_elements);
  expect_one_code([&](const auto& ex) { regroup::accumulator(regroup::plus<float>{}).push(ex, x); });
}

TEST(one_worker, rows_of_softmax) {
  for (const auto& [rows, columns] : {std::pair{64, 3}, {6, 100}, {20, 2000}, {1, 40'000}, {1, 70'000}}) {
    const matrix x(rows, columns);
    matrix y(rows, columns);
    std::vector<float> out(static_cast<std::size_t>(rows));
    const std::vector<int> targets(static_cast<std::size_t>(rows));
    expect_one_code([&](const auto& ex) { softmax(ex, x.all, y.all, {.logsumexp = regroup::view<float>(out)}); });
    expect_one_code([&](const auto& ex) { log_softmax(ex, x.all, y.all); });
    expect_one_code([&](const auto& ex) { logsumexp(ex, x.all, out); });
    expect_one_code([&](const auto& ex) { (void)cross_entropy(ex, x.all, targets); });
    expect_one_code([&](const auto& ex) { (void)cross_entropy(ex, x.all, targets, {.gradient = y.all}); });
  }
  const matrix x(64, 65'537);
  std::vector<float> out(64);
  expect_one_code([&](const auto& ex) { logsumexp(ex, x.all, out); });
}

TEST(one_worker, attention) {
  const std::vector<float> q(4 * 16), kv(700 * 16);
  std::vector<float> out(4 * 16);
  const regroup::view<const float> queries(q.data(), {1, 4, 16}), keys(kv.data(), {1, 700, 16});
  const regroup::view<float> o(out.data(), {1, 4, 16});
  const auto source = regroup::dense(keys, keys);
  expect_one_code([&](const auto& ex) { attention(ex, queries, source, o); });
  expect_one_code([&](const auto& ex) { attention(ex, queries, source, o, {.split = 2}); });
  expect_one_code([&](const auto& ex) { regroup::attention_state<float>(ex, queries, source).append(ex, queries, source); });
}

// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp of floats on a device have the bits of `seq`: rows of every kind of kernel, in place,
// scaled, strided, in a captured graph. Without a GPU it has compiled and linked, and says so.
#include "rows.cuh"
#include "regroup/cuda/cross_entropy.cuh"

namespace {

using gpu::array;
using gpu::elements;
using gpu::expect;
using gpu::in_a_graph;
using gpu::is_left_out;
using gpu::softmax_rows;
using order::digest_of;
using order::kind;
using regroup::index;
namespace cuda = regroup::cuda;

/// Every second element of rows that are further apart: those in between stay.
void strided_rows(const cuda::device& on) {
  for (const index n : {5, 33, 1024, 1025, 5000, 20'000, 70'000}) {
    if (is_left_out(n)) continue;
    const index count = 3, apart = 2 * n + 7;
    const auto xs = elements<float>(kind::plain, count * apart);
    const array<float> x(xs);
    const cuda::device_view<float> rows(x.data() + 1, {count, n}, {apart, 2});
    regroup::softmax(on, rows, rows);
    auto expected = xs;
    reference::each_row(expected, count, [&](std::vector<float>& all) {
      std::vector<float> row;
      for (index i = 0; i < n; ++i) row.push_back(all[static_cast<std::size_t>(2 * i + 1)]);
      reference::softmax(row);
      for (index i = 0; i < n; ++i) all[static_cast<std::size_t>(2 * i + 1)] = row[static_cast<std::size_t>(i)];
    });
    expect(digest_of(x.values()) == digest_of(expected), "softmax of strided rows", n);
  }
}

void captured_in_a_graph() {
  const cuda::device on;
  const index n = 100'000;
  const auto xs = elements<float>(kind::plain, 3 * n);
  const array<float> x(xs);
  const array<float> y(xs), logs(xs);
  const array<float> loss(std::vector<float>(1)), lse(std::vector<float>(3));
  const array<int> t(std::vector<int>{5, 99'999, 100'000});  // the last one is none
  const std::size_t bytes = std::max(regroup::softmax_workspace(on, x.rows(3)),
                                     regroup::cross_entropy_workspace(on, x.rows(3), t.view()));
  const array<double> memory(std::vector<double>(bytes / sizeof(double) + 2));
  const cuda::workspace w{memory.data(), bytes};
  auto expected = xs, expected_logs = xs;
  std::vector<float> expected_sums;
  reference::each_row(expected, 3, [](std::vector<float>& row) { reference::softmax(row); });
  reference::each_row(expected_logs, 3, [&](std::vector<float>& row) {
    expected_sums.push_back(gpu::log_sum(row));
    reference::log_softmax(row);
  });
  in_a_graph(
      [&](const cuda::device& captured) {
        regroup::softmax_into(captured, x.rows(3), y.rows(3), w);
        regroup::log_softmax_into(captured, x.rows(3), logs.rows(3), w);
        regroup::logsumexp_into(captured, x.rows(3), lse.view(), w);
        regroup::cross_entropy_into(captured, x.rows(3), t.view(), loss.view(), w);
      },
      [&] {
        expect(digest_of(y.values()) == digest_of(expected), "softmax in a graph");
        expect(digest_of(logs.values()) == digest_of(expected_logs), "log_softmax in a graph");
        expect(digest_of(lse.values()) == digest_of(expected_sums), "logsumexp in a graph");
        expect(loss.values()[0] != loss.values()[0], "a wrong target in a graph is NaN");
        for (const auto* r : {&y, &logs, &lse}) r->forget();
        cuda::check(cudaMemset(loss.data(), 0, sizeof(float)), "cudaMemset");
      });
}

}  // namespace

int main() {
  return gpu::main_of([] {
    const cuda::device on;
    softmax_rows<float>(on, kind::special);
    softmax_rows<float>(on, kind::plain, -0.37);
    softmax_rows<float, true>(on, kind::special);
    softmax_rows<float, true>(on, kind::plain, 1.7);
    strided_rows(on);
    captured_in_a_graph();
  });
}

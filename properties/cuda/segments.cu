// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and logsumexp of segments of floats and doubles on a device have the bits of `seq`: of lengths that
// reach every kernel, among many short ones, in place, scaled, in a captured graph. Without a GPU it has compiled and linked,
// and says so.
#include "rows.cuh"

namespace {

using gpu::array;
using gpu::expect;
using order::digest_of;
using order::kind;
using regroup::index;
namespace cuda = regroup::cuda;

std::vector<std::vector<index>> mixes() {
  std::vector<index> many;
  for (index s = 0; s < 20'000; ++s) many.push_back(s * s % 41);
  return {{7}, {33, 0, 1, 32, 1024, 31, 1025, 0, 4096, 4097, 9001, 5, 0}, many, {5, 65'536, 0, 65'537, 1025, 1'300'001, 3}};
}

/// What the contract's text says of segments, and of their logsumexps.
template <class Real, class Each>
std::vector<Real> said(std::vector<Real> xs, const std::vector<index>& lengths, std::vector<Real>& sums, const Each& each) {
  auto at = xs.begin();
  for (const index n : lengths) {
    std::vector<Real> row(at, at + n);
    if (n > 0) {
      sums.push_back(gpu::log_sum(row));
      each(row);
    } else {
      sums.push_back(-std::numeric_limits<Real>::infinity());
    }
    at = std::copy(row.begin(), row.end(), at);
  }
  return xs;
}

template <class Real>
void segments(const cuda::device& on, kind k) {
  for (const auto& lengths : mixes()) {
    std::vector<int> offsets = {0};
    for (const index n : lengths) offsets.push_back(offsets.back() + static_cast<int>(n));
    const index n = offsets.back();
    if (gpu::is_left_out(n)) continue;
    const auto xs = gpu::elements<Real>(k, n);
    const array<Real> x(xs), y(xs), z(xs), lse(std::vector<Real>(lengths.size()));
    const array<int> at(offsets);
    std::vector<Real> sums, same;
    const auto expected = said(xs, lengths, sums, [](std::vector<Real>& row) { reference::softmax(row); });
    const auto logs = said(xs, lengths, same, [](std::vector<Real>& row) { reference::log_softmax(row); });

    regroup::logsumexp_segments(on, x.view(), at.view(), lse.view());
    expect(digest_of(lse.values()) == digest_of(sums), "logsumexp of segments", n);
    lse.forget();
    regroup::softmax_segments(on, x.view(), at.view(), y.view(), {.logsumexp = lse.view()});
    expect(digest_of(y.values()) == digest_of(expected), "softmax of segments", n);
    expect(digest_of(lse.values()) == digest_of(sums), "its logsumexps", n);

    const std::size_t bytes = regroup::softmax_segments_workspace(on, x.view(), at.view());
    const array<double> memory(std::vector<double>(bytes / sizeof(double) + 2));
    gpu::in_a_graph(
        [&](const cuda::device& captured) {
          regroup::softmax_segments_into(captured, x.view(), at.view(), y.view(), {memory.data(), bytes});
          regroup::log_softmax_segments_into(captured, x.view(), at.view(), z.view(), {memory.data(), bytes});
          regroup::logsumexp_segments_into(captured, x.view(), at.view(), lse.view(), {memory.data(), bytes});
        },
        [&] {
          expect(digest_of(y.values()) == digest_of(expected), "softmax of segments in a graph", n);
          expect(digest_of(z.values()) == digest_of(logs), "log_softmax of segments in a graph", n);
          expect(digest_of(lse.values()) == digest_of(sums), "logsumexp of segments in a graph", n);
          for (const auto* r : {&y, &z, &lse}) r->forget();
        });
    regroup::softmax_segments(on, x.view(), at.view(), x.view());
    expect(digest_of(x.values()) == digest_of(expected), "softmax of segments in place", n);
  }
}

}  // namespace

int main() {
  return gpu::main_of([] {
    const cuda::device on;
    segments<float>(on, kind::special);
    segments<float>(on, kind::plain);
    segments<double>(on, kind::plain);
  });
}

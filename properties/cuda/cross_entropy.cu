// SPDX-License-Identifier: Apache-2.0
// cross_entropy with its gradient on a device has the bits of `seq`: rows for every kind of kernel, of float and of 16 bits.
#include <string>

#include "rows.cuh"
#include "regroup/cuda/cross_entropy.cuh"

namespace {

using gpu::array;
using gpu::count_of;
using gpu::elements;
using gpu::expect;
using gpu::is_left_out;
using gpu::lengths;
using gpu::widened;
using order::digest_of;
using order::kind;
using regroup::index;
namespace cuda = regroup::cuda;

/// The mean of the losses with its gradient in place.
template <class X>
void cross_entropy_rows(const cuda::device& on) {
  for (const index n : lengths) {
    if (is_left_out(n)) continue;
    const index count = count_of(n);
    const auto xs = elements<X>(kind::plain, count * n);
    std::vector<int> targets;
    for (index r = 0; r < count; ++r) targets.push_back(r % 5 == 3 ? -100 : static_cast<int>(r * 7919 % n));
    const array<X> x(xs);
    const array<int> t(targets);
    const float loss = regroup::cross_entropy(on, x.rows(count), t.view(), {.gradient = x.rows(count)});
    auto gradient = widened(xs);
    reference::operands<double> losses;
    double used = 0;
    for (const int target : targets) used += target != -100;
    const float share = 1 / static_cast<float>(used);
    reference::each_row(gradient, count, [&](std::vector<float>& row) {
      const int target = targets[losses.size()];
      if (target != -100) {
        losses.push_back(reference::cross_entropy(row, static_cast<std::size_t>(target), share));
      } else {
        losses.push_back(-0.0);
        std::fill(row.begin(), row.end(), 0.0f);
      }
    });
    for (float& g : gradient) g = regroup::widen(static_cast<X>(g));
    const auto expected = static_cast<float>((*reference::reduce(regroup::plus<double>{}, losses) + 0) / used);
    expect(digest_of(loss) == digest_of(expected), "cross_entropy", n);
    expect(digest_of(widened(x.values())) == digest_of(gradient), "its gradient", n);
  }
}

void a_wrong_target(const cuda::device& on) {
  const array<float> x(std::vector<float>(40, 1.0f));
  const array<int> wrong(std::vector<int>{0, 1, 2, 3, 0, 1, 9, 3, 0, 11});
  try {
    regroup::cross_entropy(on, x.rows(10), wrong.view());
    expect(false, "a target out of range");
  } catch (const regroup::argument_error& e) {
    expect(std::string(e.what()).find("row 6 has target 9") != std::string::npos, e.what());
  }
}

}  // namespace

int main() {
  return gpu::main_of([] {
    const cuda::device on;
    cross_entropy_rows<float>(on);
    cross_entropy_rows<regroup::bfloat16>(on);
    a_wrong_target(on);
  });
}

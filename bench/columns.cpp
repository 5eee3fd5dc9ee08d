// SPDX-License-Identifier: Apache-2.0
// reduce_axes/plus/fp32/ROWSxCOLUMNS: the sums of a matrix's columns, beside the loop one would write, which adds row after
// row to the answers (a thread has columns of its own), and Eigen. Limit: reading x.
#include <Eigen/Core>

#include <algorithm>

#include "limits.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/reduce.hpp"

namespace bench {
namespace {

void contend(program& p) {
  if (p.work.what != "plus" || p.work.type != "fp32") throw std::invalid_argument("no such work: " + p.work.what);
  const auto [rows, columns] = p.work.rows_and_columns();
  const auto x = p.input<float>("x");
  const array<float> y(static_cast<std::size_t>(columns));
  const auto result = [=] { return y; };
  const regroup::view<const float> from(x.data(), {rows, columns});
  const regroup::view<float> to(y.data(), {columns});
  p.with_executor([&](const auto& ex) {
    p.add(
        "ours", [=, keep = x] { regroup::reduce_axes(ex, from, {0}, to, regroup::plus<float>{}); }, result);
  });
  const auto add = [&, rows = rows, columns = columns](const std::string& name, const auto& sum) {
    p.add(
        name,
        [=, threads = p.threads] { in_pieces(threads, columns, [&](index first, index last) { sum(first, last); }); },
        result);
  };
  add("rows added", [=, rows = rows, columns = columns](index first, index last) {
    std::fill(y.data() + first, y.data() + last, 0.0F);
    for (index i = 0; i < rows; ++i) {
      const float* const row = x.data() + i * columns;
      for (index k = first; k < last; ++k) y[k] += row[k];
    }
  });
  add("Eigen", [=, rows = rows, columns = columns](index first, index last) {
    using matrix = Eigen::Array<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Eigen::Map<const matrix> all(x.data(), rows, columns);
    Eigen::Map<Eigen::Array<float, 1, Eigen::Dynamic>> sums(y.data(), columns);
    sums.segment(first, last - first) = all.middleCols(first, last - first).colwise().sum();
  });
  add_read_limits(p, p.input<char>("x"));
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main_of(argc, argv, bench::contend); }

// SPDX-License-Identifier: Apache-2.0
// reduce_axes/plus/fp32/ROWSxCOLUMNS: the sums of a matrix's columns, beside the loop one would write, which adds row after
// row to the answers (a thread has columns of its own), and Eigen. Limit: reading x. scan_axes/MONOID/fp32/ROWSxCOLUMNS (plus,
// log_sum_exp): their prefixes, sums beside the same loop. Limit: copying x to y.
#include <Eigen/Core>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "limits.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"

namespace bench {
namespace {

/// `name` with pieces of the columns [first, last) to a thread.
template <class Body, class Result>
void add_by_columns(program& p, const std::string& name, const Result& result, const Body& body) {
  p.add(
      name,
      [=, threads = p.threads, columns = p.work.rows_and_columns().second] {
        in_pieces(threads, columns, [&](index first, index last) { body(first, last); });
      },
      result);
}

template <class M>
void contend_in_scans(program& p, const M& m) {
  const auto [rows, columns] = p.work.rows_and_columns();
  const auto x = p.input<float>("x");
  const array<float> y(static_cast<std::size_t>(rows * columns));
  const auto result = [=] { return y; };
  const regroup::view<const float> from(x.data(), {rows, columns});
  const regroup::view<float> to(y.data(), {rows, columns});
  p.with_executor([&](const auto& ex) {
    p.add(
        "ours", [=, keep = x] { regroup::inclusive_scan_axis(ex, from, 0, to, m); }, result);
  });
  if constexpr (std::is_same_v<M, regroup::plus<float>>) {
    add_by_columns(p, "rows added", result, [=, rows = rows, columns = columns](index first, index last) {
      std::copy(x.data() + first, x.data() + last, y.data() + first);
      for (index i = 1; i < rows; ++i) {
        const float* const row = x.data() + i * columns;
        float* const sums = y.data() + i * columns;
        for (index k = first; k < last; ++k) sums[k] = sums[k - columns] + row[k];
      }
    });
  }
  const auto bytes = p.input<char>("x");
  add_copy_limits(p, bytes, array<char>(static_cast<std::size_t>(bytes.size())));
}

/// reduce_axes/plus/fp32/IMAGESxCHANNELSxHEIGHTxWIDTH: the sum of each channel, over images, height and width.
void contend_in_channels(program& p, const std::vector<index>& extents) {
  const index images = extents[0], channels = extents[1], plane = extents[2] * extents[3];
  const auto x = p.input<float>("x");
  const array<float> y(static_cast<std::size_t>(channels));
  const auto result = [=] { return y; };
  const regroup::view<const float> from(x.data(), extents);
  const regroup::view<float> to(y.data(), {channels});
  p.with_executor([&](const auto& ex) {
    p.add(
        "ours", [=, keep = x] { regroup::reduce_axes(ex, from, {0, 2, 3}, to, regroup::plus<float>{}); }, result);
  });
  p.add(
      "planes added",
      [=, threads = p.threads] {
        in_pieces(threads, channels, [&](index first, index last) {
          for (index c = first; c < last; ++c) {
            float sum = 0;
            for (index i = 0; i < images; ++i) {
              const float* const numbers = x.data() + (i * channels + c) * plane;
              for (index k = 0; k < plane; ++k) sum += numbers[k];
            }
            y.data()[c] = sum;
          }
        });
      },
      result);
  add_read_limits(p, p.input<char>("x"));
}

void contend(program& p) {
  if (p.work.type != "fp32") throw std::invalid_argument("no such work: " + p.work.type);
  if (p.work.verb == "scan_axes") {
    if (p.work.what == "plus") return contend_in_scans(p, regroup::plus<float>{});
    if (p.work.what == "log_sum_exp") return contend_in_scans(p, regroup::log_sum_exp<float>{});
  }
  if (p.work.verb != "reduce_axes" || p.work.what != "plus")
    throw std::invalid_argument("no such work: " + p.work.what);
  if (const auto extents = p.work.extents(); extents.size() == 4) return contend_in_channels(p, extents);
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
  add_by_columns(p, "rows added", result, [=, rows = rows, columns = columns](index first, index last) {
    std::fill(y.data() + first, y.data() + last, 0.0F);
    for (index i = 0; i < rows; ++i) {
      const float* const row = x.data() + i * columns;
      for (index k = first; k < last; ++k) y[k] += row[k];
    }
  });
  add_by_columns(p, "Eigen", result, [=, rows = rows, columns = columns](index first, index last) {
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

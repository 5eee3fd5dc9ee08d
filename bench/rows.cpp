// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax, logsumexp and cross_entropy (with its gradient) of rows, beside the loops one would write, on
// libm and on our exp, and what Debian has in C++: Eigen, XNNPACK, oneDNN. `softmax/strided` reads and writes columns,
// `softmax/in_place` overwrites its input, of `softmax/vectors` both begin 16 bytes behind a page, as a large std::vector's
// numbers do. softmax_segments/rows/TYPE/N_of_M: segments of M elements on average. Limits: reading x, and copying x to y.
#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <limits>

#include "limits.hpp"
#include "regroup/algorithms/cross_entropy.hpp"
#include "regroup/algorithms/softmax_segments.hpp"

#ifdef REGROUP_HAS_XNNPACK
#include <pthreadpool.h>
#include <xnnpack.h>
#endif
#ifdef REGROUP_HAS_ONEDNN
#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace bench {
namespace {

/// Maximum, exp, sum, quotient: four safe loops a row.
template <class Exp>
void four_loops(const float* x, float* y, index n, const Exp& exp) {
  float m = -std::numeric_limits<float>::infinity(), sum = 0;
  for (index i = 0; i < n; ++i) m = std::max(m, x[i]);
  for (index i = 0; i < n; ++i) y[i] = exp(x[i] - m);
  for (index i = 0; i < n; ++i) sum += y[i];
  for (index i = 0; i < n; ++i) y[i] /= sum;
}

#ifdef REGROUP_HAS_XNNPACK
void add_xnnpack(program& p, const array<float>& x, const array<float>& y, index rows, index columns) {
  xnn_operator_t softmax = nullptr;
  const auto n = static_cast<std::size_t>(columns);
  if (xnn_initialize(nullptr) != xnn_status_success) return;
  if (xnn_create_softmax_nc_f32(n, n, n, 0, &softmax) != xnn_status_success) return;
  pthreadpool_t pool = pthreadpool_create(static_cast<std::size_t>(p.threads));
  xnn_setup_softmax_nc_f32(softmax, static_cast<std::size_t>(rows), x.data(), y.data(), pool);
  p.add(
      "XNNPACK", [=] { xnn_run_operator(softmax, pool); }, [=] { return y; });
}
#endif

#ifdef REGROUP_HAS_ONEDNN
void add_onednn(program& p, const array<float>& x, const array<float>& y, index rows, index columns) {
  using namespace dnnl;
  const engine cpu(engine::kind::cpu, 0);
  const memory::desc both({rows, columns}, memory::data_type::f32, memory::format_tag::ab);
  const softmax_forward::desc asked(prop_kind::forward_inference, both, 1);
  const softmax_forward softmax(softmax_forward::primitive_desc(asked, cpu));
  const memory from(both, cpu, x.data()), to(both, cpu, y.data());
  p.add(
      "oneDNN 2.6 (Debian)",
      [=, queue = stream(cpu)]() mutable {
        softmax.execute(queue, {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
        queue.wait();
      },
      [=] { return y; });
}
#endif

/// The C++ peers: contiguous fp32 softmax.
void add_peers(program& p, const array<float>& x, index rows, index columns) {
  const array<float> y(static_cast<std::size_t>(x.size()));
  const auto add = [&](const std::string& who, auto row) {
    p.add(
        who,
        [=, threads = p.threads] {
          in_pieces(threads, rows, [&](index first, index last) {
            for (index r = first; r < last; ++r) row(x.data() + r * columns, y.data() + r * columns, columns);
          });
        },
        [=] { return y; });
  };
  if (rows >= p.threads) {
    add("four loops on libm",
        [](const float* a, float* b, index n) { four_loops(a, b, n, [](float e) { return std::exp(e); }); });
    add("four loops on our exp", [](const float* a, float* b, index n) {
      regroup::host::dispatch([&] { four_loops(a, b, n, [](float e) { return regroup::math::exp(e); }); });
    });
    add("Eigen", [](const float* a, float* b, index n) {
      const Eigen::Map<const Eigen::ArrayXf> from(a, n);
      Eigen::Map<Eigen::ArrayXf> to(b, n);
      to = (from - from.maxCoeff()).exp();
      to *= 1 / to.sum();
    });
  }
#ifdef REGROUP_HAS_XNNPACK
  add_xnnpack(p, x, y, rows, columns);
#endif
#ifdef REGROUP_HAS_ONEDNN
  add_onednn(p, x, y, rows, columns);
#endif
}

template <class T>
void contend(program& p) {
  using real = std::conditional_t<std::same_as<T, double>, double, float>;
  const auto [rows, columns] = p.work.rows_and_columns();
  const bool in_place = p.work.what == "in_place", strided = p.work.what == "strided";
  const index shift = p.work.what == "vectors" ? index{16 / sizeof(T)} : 0;
  const auto given = p.input<T>("x");
  const array<T> x = shift == 0 ? given : array<T>(static_cast<std::size_t>(given.size() + shift));
  if (shift != 0) std::copy(given.begin(), given.end(), x.begin() + shift);
  const array<T> y = in_place ? x : array<T>(static_cast<std::size_t>(x.size()));
  const auto result = [=] {
    if (shift == 0) return y;
    const array<T> numbers(static_cast<std::size_t>(given.size()));
    std::copy(y.begin() + shift, y.end(), numbers.begin());
    return numbers;
  };
  const auto place = [&, rows = rows, columns = columns](const array<T>& a) {
    const regroup::view<T> whole(a.data() + shift, {rows, columns});
    // strided: the same numbers, a row of the work is a column of memory
    return strided ? regroup::view<T>(a.data(), {rows, columns}, {1, rows}) : whole;
  };
  const regroup::view<const T> from = place(x);
  const auto to = place(y);
  const std::string& verb = p.work.verb;
  p.with_executor([&, rows = rows](const auto& ex) {
    if (verb == "softmax") {
      p.add(
          "ours", [=, keep = x] { regroup::softmax(ex, from, to); }, result);
    } else if (verb == "log_softmax") {
      p.add(
          "ours", [=, keep = x] { regroup::log_softmax(ex, from, to); }, [=] { return y; });
    } else if (verb == "logsumexp") {
      const array<real> answers(static_cast<std::size_t>(rows));
      const regroup::view<real> out(answers.data(), {rows});
      p.add(
          "ours", [=, keep = x] { regroup::logsumexp(ex, from, out); }, [=] { return answers; });
    } else if (verb == "cross_entropy") {
      const auto targets = p.input<std::int64_t>("targets");
      const regroup::view<const std::int64_t> target(targets.data(), {rows});
      const auto loss = std::make_shared<real>();
      p.add(
          "ours", [=, keep = x, also = targets] { *loss = regroup::cross_entropy(ex, from, target, {.gradient = to}); },
          [=] { return y; });
    } else {
      throw std::invalid_argument("no such work: " + verb);
    }
  });
  if constexpr (std::same_as<T, float>) {
    if (verb == "softmax" && p.work.what == "rows") add_peers(p, x, rows, columns);
  }
  const auto bytes = p.input<char>("x");
  add_read_limits(p, bytes);
  if (verb != "logsumexp") add_copy_limits(p, bytes, array<char>(static_cast<std::size_t>(bytes.size())));
}

void contend_segments(program& p) {
  const auto x = p.input<float>("x");
  const auto offsets = p.input<std::int64_t>("offsets");
  const index count = offsets.size() - 1;
  const array<float> y(static_cast<std::size_t>(x.size()));
  const auto result = [=] { return y; };
  p.with_executor([&](const auto& ex) {
    p.add(
        "ours",
        [=] {
          regroup::softmax_segments(ex, std::span<const float>(x.data(), static_cast<std::size_t>(x.size())),
                                    std::span<const std::int64_t>(offsets.data(), static_cast<std::size_t>(count + 1)),
                                    regroup::view<float>(y.data(), {y.size()}));
        },
        result);
  });
  const auto add = [&](const std::string& who, auto segment) {
    p.add(
        who,
        [=, threads = p.threads] {
          in_pieces(threads, count, [&](index first, index last) {
            for (index s = first; s < last; ++s) {
              segment(x.data() + offsets[s], y.data() + offsets[s], offsets[s + 1] - offsets[s]);
            }
          });
        },
        result);
  };
  add("four loops on libm",
      [](const float* a, float* b, index n) { four_loops(a, b, n, [](float e) { return std::exp(e); }); });
  add("four loops on our exp", [](const float* a, float* b, index n) {
    regroup::host::dispatch([&] { four_loops(a, b, n, [](float e) { return regroup::math::exp(e); }); });
  });
  const auto bytes = p.input<char>("x");
  add_copy_limits(p, bytes, array<char>(static_cast<std::size_t>(bytes.size())));
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::main_of(argc, argv, [](bench::program& p) {
    if (p.work.verb == "softmax_segments") return bench::contend_segments(p);
    bench::with_type(p.work.type, [&]<class T>(T) { bench::contend<T>(p); });
  });
}

// SPDX-License-Identifier: Apache-2.0
// scan/MONOID/TYPE/N (plus, affine, log_sum_exp) beside the inclusive scans of std, TBB and Thrust with our operator,
// and reduce_segments/plus/fp32/N_of_M (segments of M elements on average) beside Thrust's reduce_by_key and a plain
// loop. Limits: copying x to y for scans, reading x for segments.
#include <execution>
#include <numeric>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_scan.h>

#ifdef REGROUP_HAS_THRUST
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/system/omp/execution_policy.h>
#include <thrust/system/tbb/execution_policy.h>
#endif

#include "limits.hpp"
#include "regroup/regroup.hpp"

namespace bench {
namespace {

template <class M, class X>
void contend(program& p, const M& m) {
  using state = regroup::state_of<M>;
  using answer = regroup::answer_of<M>;
  const auto x = p.input<X>("x");
  const array<answer> y(static_cast<std::size_t>(x.size()));
  const auto result = [=] { return y; };
  const regroup::view<const X> from(x.data(), {x.size()});
  const regroup::view<answer> to(y.data(), {x.size()});
  p.with_executor([&](const auto& ex) {
    p.add(
        "ours", [=, keep = x] { regroup::inclusive_scan(ex, from, to, m); }, result);
  });
  const auto lift = regroup::lifting(m);
  if constexpr (std::same_as<state, answer>) {  // they store states: log_sum_exp's answers would need a second pass
    p.add(
        "std",
        [=, threads = p.threads] {
          if (threads == 1) {
            std::transform_inclusive_scan(std::execution::unseq, x.begin(), x.end(), y.begin(), m, lift);
          } else {
            std::transform_inclusive_scan(std::execution::par_unseq, x.begin(), x.end(), y.begin(), m, lift);
          }
        },
        result);
#ifdef REGROUP_HAS_THRUST
    const auto thrust_on = [&](const std::string& name, const auto& policy) {
      p.add(
          name,
          [=, &policy] {
            const auto lifted = thrust::make_transform_iterator(x.begin(), lift);
            thrust::inclusive_scan(policy, lifted, lifted + x.size(), y.begin(), m);
          },
          result);
    };
    thrust_on("Thrust OpenMP", thrust::omp::par);
    thrust_on("Thrust TBB", thrust::tbb::par);
#endif
  }
  p.add(
      "TBB",
      [=] {
        tbb::parallel_scan(
            tbb::blocked_range<index>(0, x.size(), 1 << 14), m.identity(),
            [=](const auto& range, state s, bool last) {
              for (index i = range.begin(); i < range.end(); ++i) {
                s = m(s, lift(x[i]));
                if (last) y[i] = regroup::lower(m, s);
              }
              return s;
            },
            m);
      },
      result);
  const auto bytes = p.input<char>("x");
  add_copy_limits(p, bytes, array<char>(static_cast<std::size_t>(bytes.size())));
}

void contend_segments(program& p) {
  const auto x = p.input<float>("x");
  const auto offsets = p.input<std::int64_t>("offsets");
  const index count = offsets.size() - 1;
  const array<float> y(static_cast<std::size_t>(count));
  const auto result = [=] { return y; };
  p.with_executor([&](const auto& ex) {
    p.add(
        "ours",
        [=] {
          regroup::reduce_segments(ex, std::span<const float>(x.data(), static_cast<std::size_t>(x.size())),
                                   std::span<const std::int64_t>(offsets.data(), static_cast<std::size_t>(count + 1)),
                                   regroup::view<float>(y.data(), {count}), regroup::plus<float>{});
        },
        result);
  });
  p.add(
      "plain loop",
      [=, threads = p.threads] {
        in_pieces(threads, count, [&](index first, index last) {
          for (index s = first; s < last; ++s) {
            y[s] = std::reduce(std::execution::unseq, x.data() + offsets[s], x.data() + offsets[s + 1]);
          }
        });
      },
      result);
#ifdef REGROUP_HAS_THRUST
  const array<std::int32_t> keys(static_cast<std::size_t>(x.size()));
  for (index s = 0; s < count; ++s) {
    std::fill(keys.data() + offsets[s], keys.data() + offsets[s + 1], static_cast<std::int32_t>(s));
  }
  p.add(
      "Thrust TBB, by key",
      [=] {
        thrust::reduce_by_key(thrust::tbb::par, keys.begin(), keys.end(), x.begin(), thrust::make_discard_iterator(),
                              y.begin());
      },
      result);
#endif
  add_read_limits(p, p.input<char>("x"));
}

void contend_all(program& p) {
  const std::string what = p.work.verb + "/" + p.work.what + "/" + p.work.type;
  if (what == "scan/plus/fp32") return contend<regroup::plus<float>, float>(p, {});
  if (what == "scan/plus/fp64") return contend<regroup::plus<double>, double>(p, {});
  if (what == "scan/log_sum_exp/fp32") return contend<regroup::log_sum_exp<float>, float>(p, {});
  if (what == "scan/affine/fp32") return contend<regroup::affine<float>, regroup::affine_map<float>>(p, {});
  if (what == "reduce_segments/plus/fp32") return contend_segments(p);
  throw std::invalid_argument("no such work: " + what);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main_of(argc, argv, bench::contend_all); }

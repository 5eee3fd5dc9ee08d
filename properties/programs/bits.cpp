// SPDX-License-Identifier: Apache-2.0
// Prints one line a case, `case 0xhash`: the bits of every verb over floating-point monoids. The same lines must come out
// of every compiler, optimisation level, instruction set and number of threads. Stands alone: no test framework.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "../order/digest.hpp"
#include "regroup/algorithms/attention.hpp"
#include "regroup/algorithms/softmax.hpp"
#include "regroup/host/par.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/reduce.hpp"
#include "regroup/scan.hpp"
#include "regroup/stream.hpp"

namespace {

using order::digest;
using order::kind;

void print(const std::string& name, std::uint64_t hash) {
  std::printf("%s 0x%016llx\n", name.c_str(), static_cast<unsigned long long>(hash));
}

/// The longest run of positive numbers: not commutative, integers.
struct longest_run {
  struct state {
    int prefix, suffix, best, length;
  };
  constexpr state identity() const { return {0, 0, 0, 0}; }
  constexpr state lift(float x) const { return x > 0 ? state{1, 1, 1, 1} : state{0, 0, 0, 1}; }
  constexpr state operator()(state a, state b) const {
    const int across = a.suffix + b.prefix;
    const int best = a.best > b.best ? a.best : b.best;
    return {a.prefix == a.length ? a.length + b.prefix : a.prefix,
            b.suffix == b.length ? b.length + a.suffix : b.suffix, across > best ? across : best, a.length + b.length};
  }
  constexpr int lower(state s) const { return s.best; }
};

struct to_map {
  regroup::affine_map<float> operator()(float x) const { return {x * 0.125f, -x}; }
};
struct to_indexed {
  regroup::indexed<float> operator()(float x) const { return {x, static_cast<regroup::index>(x > 1)}; }
};

/// Whole arrays.
template <class X, class M, class Projection = std::identity>
void wholes(const std::string& name, const M& m, kind k, const Projection& projection = {}) {
  digest all;
  for (const std::int64_t n : {0, 1, 2, 31, 33, 127, 129, 300, 4095, 4096, 4097, 12'321, 40'000}) {
    const auto xs = order::numbers<X>(k, n, static_cast<std::uint64_t>(n));
    all.add(regroup::reduce(regroup::par, xs, m, projection));
  }
  print(name + " reduce", all.value());
}

/// The rows and the columns of a matrix, and segments.
template <class X, class M, class Projection = std::identity>
void batches(const std::string& name, const M& m, kind k, const Projection& projection = {}) {
  const auto xs = order::numbers<X>(k, 37 * 300, 7);
  std::vector<regroup::answer_of<M>> rows(300);
  regroup::reduce_rows(regroup::par, regroup::view<const X>(xs.data(), {300, 37}), rows, m, projection);
  print(name + " rows", order::digest_of(rows));
  std::vector<regroup::answer_of<M>> columns(37);
  regroup::reduce_rows(regroup::par, regroup::view<const X>(xs.data(), {37, 300}, {1, 37}), columns, m, projection);
  print(name + " columns", order::digest_of(columns));
  std::vector<regroup::answer_of<M>> segments(4);
  regroup::reduce_segments(regroup::par, xs, std::vector<int>{0, 100, 100, 5000, 11'100}, segments, m, projection);
  print(name + " segments", order::digest_of(segments));
}

template <class X, class M, class Projection = std::identity>
void scans(const std::string& name, const M& m, kind k, const Projection& projection = {}) {
  digest all;
  for (const std::int64_t n : {1, 33, 300, 4097, 20'000}) {
    const auto xs = order::numbers<X>(k, n, static_cast<std::uint64_t>(n));
    std::vector<regroup::answer_of<M>> ys(xs.size());
    regroup::inclusive_scan(regroup::par, xs, ys, m, projection);
    all.add(ys);
  }
  print(name + " scan", all.value());
}

template <class X, class M>
void streams(const std::string& name, const M& m, kind k) {
  const auto xs = order::numbers<X>(k, 20'000, 3);
  regroup::accumulator<M, X> left(m, 4000);
  regroup::accumulator<M, X> right(m, 4000 + 9001);
  left.push(std::span(xs).first(9001));
  right.push(std::span(xs).subspan(9001));
  left.merge(right);
  print(name + " stream", digest{}.add(left.value()).value());
}

template <class Real>
void softmaxes(const std::string& name, kind k) {
  digest all;
  for (const std::int64_t n : {1, 37, 5000, 70'000}) {
    const auto xs = order::numbers<Real>(k, 2 * n, static_cast<std::uint64_t>(n));
    std::vector<Real> ys(xs.size());
    const regroup::view<const Real> x(xs.data(), {2, n});
    const regroup::view<Real> y(ys.data(), {2, n});
    regroup::softmax(regroup::par, x, y);
    all.add(ys);
    regroup::log_softmax(regroup::par, x, y);
    all.add(ys);
  }
  print(name + " softmax", all.value());
}

/// Queries of two heads over 1100 keys of one, causal; every output and logsumexp.
void attentions() {
  constexpr std::int64_t d = 24;
  const auto q = order::numbers<float>(kind::plain, 2 * 9 * d, 1);
  const auto keys = order::numbers<float>(kind::plain, 1100 * d, 2);
  const auto values = order::numbers<float>(kind::plain, 1100 * d, 3);
  std::vector<float> out(q.size());
  std::vector<float> lse(2 * 9);
  const regroup::view<const float> key(keys.data(), {1, 1100, d});
  const regroup::view<const float> value(values.data(), {1, 1100, d});
  regroup::attention(regroup::par, regroup::view<const float>(q.data(), {2, 9, d}), regroup::dense(key, value),
                     regroup::view<float>(out.data(), {2, 9, d}),
                     {.mask = regroup::causal{}, .logsumexp = regroup::view<float>(lse.data(), {2, 9})});
  print("attention", digest{}.add(out).add(lse).value());
}

}  // namespace

int main() {
  const struct {
    kind k;
    const char* name;
  } kinds[] = {{kind::plain, " plain"}, {kind::wide, " wide"}, {kind::special, " special"}};
  for (const auto& [k, suffix] : kinds) {
    const std::string of = suffix;
    wholes<float>("plus<float>" + of, regroup::plus<float>{}, k);
    wholes<double>("plus<double>" + of, regroup::plus<double>{}, k);
    wholes<float>("log_sum_exp<float>" + of, regroup::log_sum_exp<float>{}, k);
    wholes<double>("log_sum_exp<double>" + of, regroup::log_sum_exp<double>{}, k);
    wholes<double>("moments<double>" + of, regroup::moments<double>{}, k);
    wholes<float>("affine<float>" + of, regroup::affine<float>{}, k, to_map{});
    wholes<float>("argmax<float>" + of, regroup::argmax<float>{}, k, to_indexed{});
    wholes<float>("longest_run" + of, longest_run{}, k);
    batches<float>("plus<float>" + of, regroup::plus<float>{}, k);
    batches<float>("log_sum_exp<float>" + of, regroup::log_sum_exp<float>{}, k);
    scans<float>("log_sum_exp<float>" + of, regroup::log_sum_exp<float>{}, k);
    scans<float>("affine<float>" + of, regroup::affine<float>{}, k, to_map{});
    streams<float>("plus<float>" + of, regroup::plus<float>{}, k);
    softmaxes<float>("float" + of, k);
  }
  attentions();
  return 0;
}

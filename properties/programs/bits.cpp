// SPDX-License-Identifier: Apache-2.0
// Prints one line a case, `case 0xhash`: the bits of every verb over floating-point monoids. The same lines must come out
// of every compiler, optimisation level, instruction set and number of threads. Stands alone: no test framework.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "../order/digest.hpp"
#include "regroup/algorithms/attention.hpp"
#include "regroup/algorithms/cross_entropy.hpp"
#include "regroup/algorithms/softmax.hpp"
#include "regroup/host/par.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/compensated.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/monoids/fanout.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/mean.hpp"
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
    regroup::exclusive_scan(regroup::par, xs, ys, m, projection);
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

/// Numbers of X, from those of float where X has 16 bits.
template <class X>
std::vector<X> inputs(kind k, std::int64_t n, std::uint64_t seed) {
  if constexpr (sizeof(X) > 2) {
    return order::numbers<X>(k, n, seed);
  } else {
    const auto wide = order::numbers<float>(k, n, seed);
    return {wide.begin(), wide.end()};
  }
}
template <class X>
void add_widened(digest& all, const std::vector<X>& xs) {
  for (const X& x : xs) all.add(regroup::widen(x));
}

/// f(x, y) over two rows of several lengths, and what it wrote.
template <class X, class F>
void rows(const std::string& name, kind k, const F& f) {
  digest all;
  for (const std::int64_t n : {1, 37, 5000, 70'000}) {
    const auto xs = inputs<X>(k, 2 * n, static_cast<std::uint64_t>(n));
    std::vector<X> ys(xs.size());
    f(regroup::view<const X>(xs.data(), {2, n}), regroup::view<X>(ys.data(), {2, n}));
    add_widened(all, ys);
  }
  print(name, all.value());
}
constexpr auto softmax = [](const auto& x, const auto& y) { regroup::softmax(regroup::par, x, y); };
constexpr auto log_softmax = [](const auto& x, const auto& y) { regroup::log_softmax(regroup::par, x, y); };
constexpr auto cross_entropy = [](const auto& x, const auto& y) {
  regroup::cross_entropy(regroup::par, x, std::vector<int>{0, static_cast<int>(x.extent(1) - 1)}, {.gradient = y});
};

/// Queries of two heads over 1100 keys of one: every output and logsumexp.
template <class X>
void attentions(const std::string& name, std::int64_t queries, const regroup::attention_mask& mask) {
  using real = regroup::widened<X>;
  constexpr std::int64_t d = 24, keys = 1100;
  const auto q = inputs<X>(kind::plain, 2 * queries * d, 1);
  const auto k = inputs<X>(kind::plain, keys * d, 2);
  const auto v = inputs<X>(kind::plain, keys * d, 3);
  std::vector<X> out(q.size());
  std::vector<real> lse(static_cast<std::size_t>(2 * queries));
  const regroup::view<const X> key(k.data(), {1, keys, d});
  const regroup::view<const X> value(v.data(), {1, keys, d});
  regroup::attention(regroup::par, regroup::view<const X>(q.data(), {2, queries, d}), regroup::dense(key, value),
                     regroup::view<X>(out.data(), {2, queries, d}),
                     {.mask = mask, .logsumexp = regroup::view<real>(lse.data(), {2, queries})});
  digest all;
  add_widened(all, out);
  print("attention<" + name, all.add(lse).value());
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
    wholes<double>("mean<double>" + of, regroup::mean<double>{}, k);
    wholes<float>("compensated_plus<float>" + of, regroup::compensated_plus<float>{}, k);
    wholes<float>("fanout of plus and log_sum_exp" + of,
                  regroup::fanout{regroup::plus<float>{}, regroup::log_sum_exp<float>{}}, k);
    scans<float>("plus<float>" + of, regroup::plus<float>{}, k);
    scans<float>("log_sum_exp<float>" + of, regroup::log_sum_exp<float>{}, k);
    scans<float>("affine<float>" + of, regroup::affine<float>{}, k, to_map{});
    streams<float>("plus<float>" + of, regroup::plus<float>{}, k);
    rows<float>("softmax<float>" + of, k, softmax);
    rows<double>("softmax<double>" + of, k, softmax);
    rows<regroup::bfloat16>("softmax<bfloat16>" + of, k, softmax);
    rows<float>("log_softmax<float>" + of, k, log_softmax);
    rows<float>("cross_entropy<float>" + of, k, cross_entropy);
  }
  // Not bfloat16's: the kind of machine has a say there.
  attentions<float>("float> causal", 90, regroup::causal{});
  attentions<float>("float> decode", 1, {});
  attentions<double>("double> causal", 90, regroup::causal{});
  attentions<regroup::float16>("float16> causal", 90, regroup::causal{});
  attentions<float>("float> window and softcap", 90, regroup::window{50, 0} & regroup::softcap{2});
  return 0;
}

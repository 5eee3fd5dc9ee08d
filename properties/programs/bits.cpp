// SPDX-License-Identifier: Apache-2.0
// Prints one line a case, `case 0xhash`: the bits of every verb over floating-point monoids. The same lines must come out
// of every compiler, optimisation level, instruction set and number of threads. Stands alone: no test framework.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bits.hpp"
#include "regroup/algorithms/cross_entropy.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/compensated.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/monoids/fanout.hpp"
#include "regroup/monoids/histogram.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/mean.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/monoids/top_k.hpp"
#include "regroup/stream.hpp"

namespace {

using namespace bits;

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

/// The rows and the columns of a matrix, and segments.
template <class X, class M, class Projection = std::identity>
void batches(const std::string& name, const M& m, kind k, const Projection& projection = {}) {
  const auto xs = order::numbers<X>(k, 37 * 300, 7);
  std::vector<regroup::answer_of<M>> rows(300);
  regroup::reduce_rows(executor, regroup::view<const X>(xs.data(), {300, 37}), rows, m, projection);
  print(name + " rows", order::digest_of(rows));
  std::vector<regroup::answer_of<M>> columns(37);
  regroup::reduce_rows(executor, regroup::view<const X>(xs.data(), {37, 300}, {1, 37}), columns, m, projection);
  print(name + " columns", order::digest_of(columns));
  std::vector<regroup::answer_of<M>> segments(4);
  regroup::reduce_segments(executor, xs, std::vector<int>{0, 100, 100, 5000, 11'100}, segments, m, projection);
  print(name + " segments", order::digest_of(segments));
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

constexpr auto softmax = [](const auto& x, const auto& y) { regroup::softmax(executor, x, y); };
constexpr auto log_softmax = [](const auto& x, const auto& y) { regroup::log_softmax(executor, x, y); };
constexpr auto cross_entropy = [](const auto& x, const auto& y) {
  regroup::cross_entropy(executor, x, std::vector<int>{0, static_cast<int>(x.extent(1) - 1)}, {.gradient = y});
};

}  // namespace

int main() {
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
    wholes<float>("histogram<float>" + of, regroup::histogram<float>(-5, 7, 40), k);
    wholes<float>("top_k<float>" + of, regroup::top_k<float>(5), k, to_indexed{});
  }
  attentions<float>("float> causal", 90, {.mask = regroup::causal{}});
  attentions<float>("float> decode", 1, {});
  attentions<double>("double> causal", 90, {.mask = regroup::causal{}});
  attentions<regroup::float16>("float16> causal", 90, {.mask = regroup::causal{}});
  attentions<float>("float> window and softcap", 90, {.mask = regroup::window{50, 0} & regroup::softcap{2}});
  // Weights as they are: with narrow_weights the kind of machine has a say.
  attentions<regroup::bfloat16>("bfloat16> causal", 90, {.mask = regroup::causal{}});
  attentions<regroup::bfloat16>("bfloat16> decode", 1, {});
  attentions<float>("float> sinks", 90, {.sinks = std::vector<float>{0.5f, -2}});
  attentions<float>("float> split", 90, {.split = 3});
  attentions<float>("float> paged decode", 1, {}, 16);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A stand-in for the tool's GPU: the sequential executor. So all that the tool does around a GPU (types, orders, axes, blocks,
// options) runs, and must have the bits of --device cpu. (The verbs of a real GPU are tested elsewhere.)
#include "gpu.hpp"
#include "gpu_rules.hpp"
#include "regroup/algorithms/attention.hpp"
#include "regroup/algorithms/softmax.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/scan.hpp"
#include "scan_monoids.hpp"

namespace regroup::tool {
namespace {

template <class E>
view<E> matrix(const plain_rows& x) {
  return {static_cast<E*>(x.data), {x.count, x.length}};
}
template <class T>
view<const T> seen_as(const plain_array<T>& x) {
  return {x.data.data(), x.shape};
}
template <class Mask, class T>
std::optional<Mask> as(const std::optional<plain_array<T>>& x) {
  return x ? std::optional<Mask>(Mask(seen_as(*x))) : std::nullopt;
}

class gpu_on_cpu final : public gpu {
 public:
  void softmax(const plain_rows& x, void* lse, bool log, double scale) const override {
    if (x.type == element::float64) return normalise<double>(x, lse, log, scale);
    normalise<float>(x, lse, log, scale);
  }
  void reduce(const plain_rows& x, index first, std::span<const reduction> all) const override {
    if (x.type == element::float32) fold<float>(matrix<const float>(x), first, all);
    if (x.type == element::float64) fold<double>(matrix<const double>(x), first, all);
    if (x.type == element::int64) fold<std::int64_t>(matrix<const std::int64_t>(x), first, all);
    if (x.type == element::boolean) fold<std::int64_t>(matrix<const std::uint8_t>(x), first, all);
  }
  void scan(const plain_rows& x, const std::string& monoid, element result, bool exclusive) const override {
    with_scanned(monoid, x.type, [&]<class E>(std::type_identity<E>) {
      const view<E> all = matrix<E>(x);
      with_scan_monoid<E>(monoid, result, [&](const auto& m) {
        const auto answer = [&m](const auto& state) { return static_cast<E>(regroup::lower(m, state)); };
        seq.scan(rows(all), rows(all), m, exclusive ? scan_kind::exclusive : scan_kind::inclusive, answer);
      });
    });
  }
  void attention(const plain_attention& a) const override {
    const std::vector<index> table(a.table.data.begin(), a.table.data.end());
    const view<const float> k = seen_as(a.k), v = seen_as(a.v);
    auto keys = a.table.shape.size() > 0 ? paged(k, v, view<const index>(table.data(), a.table.shape)) : dense(k, v);
    if (a.lengths.shape.size() > 0) keys.lengths.emplace(a.lengths.data.begin(), a.lengths.data.end());
    attention_options options{
        .scale = a.scale,
        .mask = given_masks{std::tuple(a.cap, as<alibi>(a.alibi), as<additive<float>>(a.bias),
                                       as<regroup::boolean<std::uint8_t>>(a.seen), a.triangle, a.band)}};
    if (a.lse != nullptr) options.logsumexp = view<float>(a.lse, a.lse_shape);
    if (a.sinks) options.sinks = head_numbers(seen_as(*a.sinks));
    regroup::attention(seq, seen_as(a.q), keys, view<float>(a.out, a.out_shape), options);
  }

 private:
  template <class X>
  static void normalise(const plain_rows& x, void* lse, bool log, double scale) {
    softmax_options<X> options{.scale = scale};
    if (lse != nullptr) options.logsumexp = view<X>(static_cast<X*>(lse), {x.count});
    if (log) {
      log_softmax(seq, matrix<X>(x), matrix<X>(x), options);
    } else {
      regroup::softmax(seq, matrix<X>(x), matrix<X>(x), options);
    }
  }
  template <class X, class T>
  static void fold(const view<const T>& x, index first, std::span<const reduction> all) {
    several<X> m;
    for (const reduction& r : all) m.add(make_member<X>(r.monoid, r.to));
    seq.fold(rows(x), m, [&](index row, const auto& state) { m.answer(first + row, state); });
  }
};

}  // namespace

std::unique_ptr<const gpu> open_gpu() { return std::make_unique<const gpu_on_cpu>(); }

std::optional<gpu_description> find_gpu(std::string& /*why_not*/) { return gpu_description{"a stand-in", 8, 0, 1 << 30}; }

}  // namespace regroup::tool

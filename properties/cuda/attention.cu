// SPDX-License-Identifier: Apache-2.0
// attention on cuda::device has the bits of attention on seq: prefill and decode, grouped queries, several leaves,
// several rules at once, any head size, ragged batches, pages and lengths, with a workspace of the device's and of the
// caller's; on tensor cores it is within the bound. Without a GPU the error that needs none is tested.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "../order/digest.hpp"
#include "gpu.cuh"
#include "regroup/cuda/attention.cuh"
#include "regroup/host/seq.hpp"

namespace {

using order::digest_of;
using regroup::index;
using regroup::shape;
using regroup::view;
namespace cuda = regroup::cuda;

struct every_third {
  template <class Real>
  constexpr Real operator()(Real s, index batch, index head, index query, index key) const {
    return (key + query + head + batch) % 3 == 0 ? Real{regroup::hidden} : s;
  }
};
const auto rules = regroup::softcap{20} & every_third{} & regroup::causal{};

/// The same numbers on both sides.
struct both {
  shape extents;
  std::vector<float> here;
  gpu::array<float> there;

  both(const shape& e, std::uint64_t seed, order::kind k = order::kind::plain)
      : extents(e), here(order::numbers<float>(k, view<float>(nullptr, e).size(), seed)), there(here) {}
  [[nodiscard]] cuda::device_view<const float> device() const { return {there.data(), extents}; }
  [[nodiscard]] view<const float> host() const { return {here.data(), extents}; }
};
struct results {
  both out, lse;
  explicit results(const shape& outer, index dv) : out(with(outer, dv), 1), lse(outer, 1) {}
  static shape with(shape outer, index dv) {
    outer.push_back(dv);
    return outer;
  }
  [[nodiscard]] auto options() const {
    const cuda::device_view<float> to(lse.there.data(), lse.extents);
    return cuda::attention_options{.mask = rules, .logsumexp = to};
  }
  [[nodiscard]] cuda::device_view<float> to() const { return {out.there.data(), out.extents}; }
  /// Against the host's.
  template <class Queries, class Keys>
  void expect(const Queries& q, const Keys& keys, const char* what) {
    const view<float> wanted(out.here.data(), out.extents), wanted_lse(lse.here.data(), lse.extents);
    regroup::attention(regroup::seq, q, keys, wanted, {.mask = rules, .logsumexp = wanted_lse});
    gpu::expect(digest_of(out.there.values()) == digest_of(out.here), what, keys.k.extent(2));
    gpu::expect(digest_of(lse.there.values()) == digest_of(lse.here), "and its logsumexp", keys.k.extent(2));
  }
};

void dense_keys(const cuda::device& on, index batches, index heads, index key_heads, index queries, index keys, index d,
                index dv, order::kind kind) {
  const both q({batches, heads, queries, d}, 1), k({batches, key_heads, keys, d}, 2, kind);
  const both v({batches, key_heads, keys, dv}, 3, kind);
  results r({batches, heads, queries}, dv);
  attention(on, q.device(), cuda::dense(k.device(), v.device()), r.to(), r.options());
  r.expect(q.host(), regroup::dense(k.host(), v.host()), "attention over dense keys");
}

/// Requests of 3, 0, 297, 1 and 70 queries, one behind the other.
void ragged_batch(const cuda::device& on) {
  constexpr index heads = 4, key_heads = 2, d = 64, dv = 72;
  const std::vector<int> q_offsets = {0, 3, 3, 300, 301, 371}, k_offsets = {0, 70, 75, 2500, 2500, 3700};
  const both q({371, heads, d}, 1), k({3700, key_heads, d}, 2), v({3700, key_heads, dv}, 3);
  const gpu::array<int> q_there(q_offsets), k_there(k_offsets);
  results r({371, heads}, dv);
  attention(on, cuda::ragged(q.device(), q_there.view(), 297),
            cuda::ragged(k.device(), v.device(), k_there.view(), 2425), r.to(), r.options());
  r.expect(regroup::ragged(q.host(), q_offsets), regroup::ragged(k.host(), v.host(), k_offsets), "ragged attention");
}

/// Decode from pages, in the stream's order.
void pages(const cuda::device& on) {
  constexpr index batches = 3, heads = 8, key_heads = 2, size = 16, most = 150, d = 128;
  const both q({batches, heads, 1, d}, 1), k({batches * most, key_heads, size, d}, 2),
      v({batches * most, key_heads, size, d}, 3);
  std::vector<int> table(batches * most), lengths = {2400, 1025, 7};
  std::iota(table.begin(), table.end(), 0);
  std::shuffle(table.begin(), table.end(), std::mt19937(7));
  const gpu::array<int> table_there(table), lengths_there(lengths);
  results r({batches, heads, 1}, d);
  const auto keys = cuda::paged(k.device(), v.device(), table_there.rows(batches), lengths_there.view());
  const std::size_t bytes = attention_workspace(on, q.device(), keys, r.to(), r.options());
  const gpu::array<double> memory(std::vector<double>(bytes / sizeof(double) + 1));
  attention_into(on, q.device(), keys, r.to(), {memory.data(), bytes}, r.options());
  on.synchronize();
  r.expect(q.host(), regroup::paged(k.host(), v.host(), view<const int>(table.data(), {batches, most}), lengths),
           "decode from pages");
}

/// Tensor cores: bfloat16 within the bound of rounded weights, and a head, or a request, alone with the bits it has in
/// the batch.
void tensor_cores(const cuda::device& on) {
  using regroup::bfloat16;
  constexpr index heads = 3, n = 1500, d = 128;
  const auto numbers = [](std::uint64_t seed) {
    std::vector<bfloat16> xs;
    for (const float x : order::numbers<float>(order::kind::plain, heads * n * d, seed)) xs.push_back(bfloat16(x));
    return xs;
  };
  const auto q = numbers(1), k = numbers(2), v = numbers(3);
  const gpu::array<bfloat16> q_there(q), k_there(k), v_there(v);
  std::vector<float> expected(heads * n * d);
  const gpu::array<float> all(expected), alone(std::vector<float>(n * d));
  const auto from = [](const auto& x, index first, index count) {
    return cuda::device_view<const bfloat16>(x.data() + first * n * d, {count, n, d});
  };
  const auto run = [&](index first, index count, const gpu::array<float>& to) {
    attention(on.with(cuda::tensor_cores), from(q_there, first, count),
              cuda::dense(from(k_there, first, count), from(v_there, first, count)),
              cuda::device_view<float>(to.data(), {count, n, d}), cuda::attention_options{.mask = regroup::causal{}});
  };
  run(0, heads, all);
  run(1, 1, alone);
  const shape e{heads, n, d};
  regroup::attention(regroup::seq, view<const bfloat16>(q.data(), e),
                     regroup::dense(view<const bfloat16>(k.data(), e), view<const bfloat16>(v.data(), e)),
                     view<float>(expected.data(), e), {.mask = regroup::causal{}});
  float most = 0;
  for (const bfloat16 x : v) most = std::max(most, std::abs(static_cast<float>(x)));
  const auto got = all.values();
  bool is_near = true;
  for (std::size_t i = 0; i < got.size(); ++i) is_near = is_near && std::abs(got[i] - expected[i]) <= 0x1p-6f * most;
  gpu::expect(is_near, "tensor cores, within the bound", heads);
  const std::vector<float> second(got.begin() + n * d, got.begin() + 2 * n * d);
  gpu::expect(digest_of(second) == digest_of(alone.values()), "tensor cores, a head alone", 1);

  constexpr index first = 700;  // of the second of two requests, (tokens, heads, d)
  const gpu::array<int> offsets(std::vector<int>{0, first, n});
  const auto tokens = [](auto* x) { return cuda::device_view(x, {n, heads, d}, {d, n * d, 1}); };
  const auto own = [](auto* x) { return cuda::device_view(x + first * d, {heads, n - first, d}, {n * d, d, 1}); };
  const gpu::array<float> batch(expected), request(expected);
  attention(on.with(cuda::tensor_cores), cuda::ragged(tokens(q_there.data()), offsets.view(), n),
            cuda::ragged(tokens(k_there.data()), tokens(v_there.data()), offsets.view(), n), tokens(batch.data()),
            cuda::attention_options{.mask = regroup::causal{}});
  attention(on.with(cuda::tensor_cores), own(q_there.data()), cuda::dense(own(k_there.data()), own(v_there.data())),
            own(request.data()), cuda::attention_options{.mask = regroup::causal{}});
  for (index h = 0; h < heads; ++h) {
    const auto part = [h](const gpu::array<float>& of) {
      const auto xs = of.values();
      return std::vector<float>(xs.begin() + (h * n + first) * d, xs.begin() + (h + 1) * n * d);
    };
    gpu::expect(digest_of(part(batch)) == digest_of(part(request)), "tensor cores, a request alone", h);
  }
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    try {
      pages(cuda::device{});
      gpu::expect(false, "no device, and no error");
    } catch (const cuda::no_device_error&) {
    }
  }
  return gpu::main_of([] {
    const cuda::device on;
    for (const auto kind : {order::kind::plain, order::kind::wide, order::kind::special}) {
      dense_keys(on, 1, 1, 1, 1, 1, 1, 1, kind);
      dense_keys(on, 2, 4, 2, 70, 1500, 64, 64, kind);
      dense_keys(on, 1, 2, 2, 130, 3000, 128, 128, kind);
      dense_keys(on, 4, 8, 1, 1, 5000, 80, 72, kind);
      dense_keys(on, 1, 6, 2, 3, 700, 33, 300, kind);
    }
    ragged_batch(on);
    pages(on);
    tensor_cores(on);
  });
}

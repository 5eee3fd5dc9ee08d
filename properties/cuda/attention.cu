// SPDX-License-Identifier: Apache-2.0
// attention on cuda::device has the bits of attention on seq: prefill and decode, grouped queries, several leaves, several
// rules at once, any head size, ragged batches, pages and lengths, with the device's workspace and the caller's; options
// combined at random. On tensor cores, for every type, it is within the bound of the definition, and a head or request has the
// bits that it has alone. Without a GPU only the error that needs none is tested.
#pragma nv_diag_suppress 20208  // long double, which the definition is in, is for the host alone
#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "attention_calls.hpp"
#include "gpu.cuh"
#include "regroup/cuda/attention.cuh"
#include "regroup/host/seq.hpp"

namespace {

using order::digest_of;
using regroup::index;
using regroup::shape;
using regroup::view;
namespace cuda = regroup::cuda;

/// A mask whose function is called, and so compiled once: inlined for each of a thread's 32 scores it takes a minute.
template <class Mask>
struct called {
  Mask mask;
  template <class Bound>
  struct rule {
    Bound bound;
    [[nodiscard]] constexpr regroup::key_range range(index batch, index head, index query) const {
      return regroup::mask_rules::range(bound, batch, head, query);
    }
    template <class Real>
    __host__ __device__ __noinline__ Real operator()(Real s, index batch, index head, index query, index key) const {
      return cuda::scored_by(bound, static_cast<float>(s), batch, head, query, key);
    }
  };
  template <class Extents>
  [[nodiscard]] auto bind(const Extents& e) const {
    const auto bound = regroup::mask_rules::bound(mask, e);
    return rule<std::remove_const_t<decltype(bound)>>{bound};
  }
};
template <class Mask>
called(const Mask&) -> called<Mask>;

/// Rules of which those that read an array change nothing, here and there.
struct some_rules {
  index heads;
  double cap;
  regroup::window window;
  calls::sparse own;
  gpu::array<float> slopes{std::vector<float>(static_cast<std::size_t>(heads), 0)}, bias{{0}};
  gpu::array<unsigned char> seen{{1}};

  [[nodiscard]] auto device() const {
    const cuda::device_view<const float> of_heads(slopes.data(), {heads}), nothing(bias.data(), {1});
    const cuda::device_view<const unsigned char> all(seen.data(), {1});
    return called{calls::rules(cap, window, own, of_heads, nothing, all)};
  }
  [[nodiscard]] regroup::attention_mask host() const {
    const std::vector<float> none(static_cast<std::size_t>(heads), 0);
    return regroup::softcap{cap} & window & own & regroup::alibi(none);
  }
};

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
  some_rules rules;
  explicit results(const shape& outer, index dv, index heads)
      : out(with(outer, dv), 1), lse(outer, 1), rules{heads, 20, {-1, 0}, {3}} {}
  static shape with(shape outer, index dv) {
    outer.push_back(dv);
    return outer;
  }
  [[nodiscard]] auto options() const {
    const cuda::device_view<float> to(lse.there.data(), lse.extents);
    return cuda::attention_options{.mask = rules.device(), .logsumexp = to};
  }
  [[nodiscard]] cuda::device_view<float> to() const { return {out.there.data(), out.extents}; }
  /// Against the host's.
  template <class Queries, class Keys>
  void expect(const Queries& q, const Keys& keys, const char* what) {
    const view<float> wanted(out.here.data(), out.extents), wanted_lse(lse.here.data(), lse.extents);
    regroup::attention(regroup::seq, q, keys, wanted, {.mask = rules.host(), .logsumexp = wanted_lse});
    gpu::expect(digest_of(out.there.values()) == digest_of(out.here), what, keys.k.extent(2));
    gpu::expect(digest_of(lse.there.values()) == digest_of(lse.here), "and its logsumexp", keys.k.extent(2));
  }
};

void dense_keys(const cuda::device& on, index batches, index heads, index key_heads, index queries, index keys, index d,
                index dv, order::kind kind) {
  const both q({batches, heads, queries, d}, 1), k({batches, key_heads, keys, d}, 2, kind);
  const both v({batches, key_heads, keys, dv}, 3, kind);
  results r({batches, heads, queries}, dv, heads);
  attention(on, q.device(), cuda::dense(k.device(), v.device()), r.to(), r.options());
  r.expect(q.host(), regroup::dense(k.host(), v.host()), "attention over dense keys");
}

/// Requests of 3, 0, 297, 1 and 70 queries, one behind the other.
void ragged_batch(const cuda::device& on) {
  constexpr index heads = 4, key_heads = 2, d = 64, dv = 72;
  const std::vector<int> q_offsets = {0, 3, 3, 300, 301, 371}, k_offsets = {0, 70, 75, 2500, 2500, 3700};
  const both q({371, heads, d}, 1), k({3700, key_heads, d}, 2), v({3700, key_heads, dv}, 3);
  const gpu::array<int> q_there(q_offsets), k_there(k_offsets);
  results r({371, heads}, dv, heads);
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
  results r({batches, heads, 1}, d, heads);
  const auto keys = cuda::paged(k.device(), v.device(), table_there.rows(batches), lengths_there.view());
  const std::size_t bytes = attention_workspace(on, q.device(), keys, r.to(), r.options());
  const gpu::array<double> memory(std::vector<double>(bytes / sizeof(double) + 1));
  attention_into(on, q.device(), keys, r.to(), {memory.data(), bytes}, r.options());
  on.synchronize();
  r.expect(q.host(), regroup::paged(k.host(), v.host(), view<const int>(table.data(), {batches, most}), lengths),
           "decode from pages");
}

/// Vectors in device memory, for as long as this lives.
struct memory {
  mutable std::vector<std::shared_ptr<void>> kept = {};
  template <class X>
  const X* operator()(const std::vector<X>& xs) const {
    const auto there = std::make_shared<gpu::array<X>>(xs);
    kept.push_back(there);
    return there->data();
  }
};
/// The answers of a call, planned for this device or as for one with a single multiprocessor: then blocks have many rows, and
/// several units each, taken by ticket, whose leaves wait on a stack.
template <class Device, class T>
calls::results<float> answer(const Device& on, const calls::call<T>& c, bool as_for_one) {
  const memory there;
  const auto zeros = [](const shape& e) {
    return std::vector<float>(static_cast<std::size_t>(view<float>(nullptr, e).size()));
  };
  const gpu::array<float> out(zeros(c.full())), lse(zeros(c.outer()));
  c.on_a_device(there, [&](const auto& q, const auto& keys, const auto& given) {
    const cuda::attention_options options{.scale = given.scale,
                                          .mask = called{given.mask},
                                          .logsumexp = cuda::device_view<float>(lse.data(), c.outer()),
                                          .sinks = given.sinks};
    const cuda::device_view<float> to(out.data(), c.full());
    if (!as_for_one) return attention(on, q, keys, to, options);
    using arithmetic = cuda::arithmetic_of<Device>;
    const auto work = cuda::attention_work_of<T>(cuda::queries_of<T>(q), keys, to, options);
    const cuda::attention_plan plan = cuda::plan_attention<arithmetic>(work.call, work.leaves, 1, on.block_bytes());
    cuda::with_workspace(on, plan.bytes, [&](const cuda::workspace& w) {
      const auto launch = [&on](const auto& kernel, index blocks) { on.launch(kernel, blocks); };
      cuda::launch_attention<arithmetic>(launch, plan, work, w.data);
    });
  });
  calls::results<float> got;
  got.out.values = out.values();
  got.lse.values = lse.values();
  return got;
}
unsigned count(unsigned n) { return gpu::is_left_out(1 << 20) ? n / 10 : n; }

void plain_calls(const cuda::device& on) {
  for (unsigned seed = 0; seed < count(60); ++seed) {
    const calls::call<float> c(seed, 140, seed % 3 == 0 ? 3000 : 200);
    const auto host = c.on_the_host<float>();
    for (const bool as_for_one : {false, true}) {
      const auto got = answer(on, c, as_for_one);
      gpu::expect(digest_of(got.out.values) == digest_of(host.out.values), "a call at random", seed);
      gpu::expect(digest_of(got.lse.values) == digest_of(host.lse.values), "its logsumexp", seed);
    }
  }
}
template <class T>
void tensor_calls(const cuda::device& on) {
  for (unsigned seed = 100; seed < 100 + count(20); ++seed) {
    const calls::call<T> c(seed, 70, seed % 5 == 0 ? 2100 : 200);
    for (const bool as_for_one : {false, true}) {
      const auto got = answer(on.with(cuda::tensor_cores), c, as_for_one);
      gpu::expect(c.ratio(got, false) <= 1, "tensor cores, within the bound", seed);
    }
  }
}

/// Tensor cores: a head, or a request, alone has the bits it has in the batch.
template <class T>
void tensor_cores_alone(const cuda::device& on) {
  constexpr index heads = 3, n = 1500, d = 128;
  const auto numbers = [](std::uint64_t seed) {
    std::vector<T> xs;
    for (const float x : order::numbers<float>(order::kind::plain, heads * n * d, seed)) xs.push_back(T(x));
    return gpu::array<T>(xs);
  };
  const auto q = numbers(1), k = numbers(2), v = numbers(3);
  const auto fast = on.with(cuda::tensor_cores);
  const auto run = [&](index of_heads, const auto& queries, const auto& keys, const cuda::device_view<float>& to) {
    const some_rules rules{of_heads, 1e6, {-1, 0}, {0}};
    attention(fast, queries, keys, to, cuda::attention_options{.mask = rules.device()});
  };
  const std::vector<float> nothing(heads * n * d);
  const gpu::array<float> all(nothing), alone(nothing), batch(nothing), request(nothing);
  const auto from = [](auto* x, index first, index count) { return cuda::device_view(x + first * n * d, {count, n, d}); };
  run(heads, from(q.data(), 0, heads), cuda::dense(from(k.data(), 0, heads), from(v.data(), 0, heads)),
      from(all.data(), 0, heads));
  run(1, from(q.data(), 1, 1), cuda::dense(from(k.data(), 1, 1), from(v.data(), 1, 1)), from(alone.data(), 1, 1));
  constexpr index first = 700;  // of the second of two requests, (tokens, heads, d)
  const gpu::array<int> offsets(std::vector<int>{0, first, n});
  const auto tokens = [](auto* x) { return cuda::device_view(x, {n, heads, d}, {d, n * d, 1}); };
  const auto own = [](auto* x) { return cuda::device_view(x + first * d, {heads, n - first, d}, {n * d, d, 1}); };
  run(heads, cuda::ragged(tokens(q.data()), offsets.view(), n),
      cuda::ragged(tokens(k.data()), tokens(v.data()), offsets.view(), n), tokens(batch.data()));
  run(heads, own(q.data()), cuda::dense(own(k.data()), own(v.data())), own(request.data()));
  const auto part = [](const gpu::array<float>& of, index begin, index end) {
    const auto xs = of.values();
    return digest_of(std::vector<float>(xs.begin() + begin * d, xs.begin() + end * d));
  };
  gpu::expect(part(all, n, 2 * n) == part(alone, n, 2 * n), "tensor cores, a head alone", 1);
  for (index h = 0; h < heads; ++h) {
    gpu::expect(part(batch, h * n + first, (h + 1) * n) == part(request, h * n + first, (h + 1) * n),
                "tensor cores, a request alone", h);
  }
}
template <class T>
void tensor_cores(const cuda::device& on) {
  tensor_calls<T>(on);
  tensor_cores_alone<T>(on);
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
    plain_calls(on);
    tensor_cores<float>(on);
    tensor_cores<regroup::float16>(on);
    tensor_cores<regroup::bfloat16>(on);
  });
}

// SPDX-License-Identifier: Apache-2.0
// attention/full|causal/TYPE/h8_n4096_d64 and decode/full/TYPE/h32_kv8_n32768_d128 (q5: five queries; kv: key heads)
// beside tiles on OpenBLAS's products, for fp32; decode/paged/..., where the keys lie in pages of 16 (p32: 32) all over a
// pool, beside the same keys in a row; attention/window/TYPE/h8_q64_n32768_d64_w1024, where a query sees 1024 keys
// of 32768, beside the same without the others. Limits: the multipliers' peaks from registers, 2^30 operations; for
// decode, reading the keys and the values once. Nobody is asked for the logsumexp. `ours` may round weights of
// bfloat16 to 16 bits; what peers round is seen in their errors only.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "limits.hpp"
#include "regroup/algorithms/attention.hpp"

#ifdef REGROUP_HAS_OPENBLAS
#include <cblas.h>
extern "C" void openblas_set_num_threads(int);
#endif

namespace bench {
namespace {

struct problem {
  index heads, key_heads, queries, keys, d;
  bool causal;
  index window;  // 0: none
};

#ifdef REGROUP_HAS_OPENBLAS
/// What one builds on a good sgemm: 256 queries by 512 keys at a time, online softmax between the two products, the
/// causal edge left out tile by tile. One thread's tiles; heads and blocks of queries go to threads.
class tiled {
 public:
  explicit tiled(index d) : scores_(queries * keys), d_(d), m_(queries), l_(queries) {}
  void operator()(const float* q, const float* k, const float* v, float* out, index first, const problem& p) {
    const index n = std::min(queries, p.queries - first), shift = p.keys - p.queries;
    const float scale = 1 / std::sqrt(static_cast<float>(d_));
    std::fill(m_.begin(), m_.end(), -std::numeric_limits<float>::infinity());
    std::fill(l_.begin(), l_.end(), 0.0f);
    std::fill(out, out + n * d_, 0.0f);
    const index limit = p.causal ? std::min(p.keys, first + n + shift) : p.keys;
    for (index tile = 0; tile < limit; tile += keys) {
      const index wide = std::min(keys, limit - tile);
      product(CblasTrans, n, wide, d_, scale, q, d_, k + tile * d_, d_, 0, scores_.data(), keys);
      for (index i = 0; i < n; ++i) {
        weigh(i, p.causal ? std::min(wide, first + i + shift + 1 - tile) : wide, wide, out + i * d_);
      }
      product(CblasNoTrans, n, d_, wide, 1, scores_.data(), keys, v + tile * d_, d_, 1, out, d_);
    }
    for (index i = 0; i < n; ++i) {
      for (index c = 0; c < d_; ++c) out[i * d_ + c] /= l_[static_cast<std::size_t>(i)];
    }
  }
  static constexpr index queries = 256, keys = 512;

 private:
  void weigh(index i, index seen, index wide, float* o) {
    float* const s = scores_.data() + i * keys;
    auto &m = m_[static_cast<std::size_t>(i)], &l = l_[static_cast<std::size_t>(i)];
    regroup::host::dispatch([&] {
      float top = m;
      for (index j = 0; j < seen; ++j) top = s[j] > top ? s[j] : top;
      const float rescale = regroup::math::exp(m - top);
      float sum[16] = {};
      index j = 0;
      for (; j + 16 <= seen; j += 16) {
        for (index c = 0; c < 16; ++c) sum[c] += s[j + c] = regroup::math::exp(s[j + c] - top);
      }
      for (; j < seen; ++j) sum[0] += s[j] = regroup::math::exp(s[j] - top);
      for (j = std::max<index>(seen, 0); j < wide; ++j) s[j] = 0;
      float total = 0;
      for (const float part : sum) total += part;
      l = l * rescale + total;
      m = top;
      for (index c = 0; c < d_; ++c) o[c] *= rescale;
    });
  }
  static void product(CBLAS_TRANSPOSE b_as, index rows, index columns, index depth, float alpha, const float* a,
                      index lda, const float* b, index ldb, float beta, float* c, index ldc) {
    const auto i = [](index n) { return static_cast<blasint>(n); };
    cblas_sgemm(CblasRowMajor, CblasNoTrans, b_as, i(rows), i(columns), i(depth), alpha, a, i(lda), b, i(ldb), beta, c,
                i(ldc));
  }

  std::vector<float> scores_;
  index d_;
  std::vector<float> m_, l_;
};

void add_openblas(program& p, const problem& s, const array<float>& q, const array<float>& k, const array<float>& v) {
  openblas_set_num_threads(1);
  const array<float> out(static_cast<std::size_t>(q.size()));
  p.add(
      "tiles on OpenBLAS",
      [=, threads = p.threads] {
        const index blocks = (s.queries + tiled::queries - 1) / tiled::queries;
#pragma omp parallel num_threads(threads)
        {
          tiled by_tiles(s.d);
#pragma omp for schedule(dynamic) collapse(2)
          for (index h = 0; h < s.heads; ++h) {
            for (index b = 0; b < blocks; ++b) {
              const index first = (blocks - 1 - b) * tiled::queries, at = h * s.key_heads / s.heads * s.keys * s.d;
              const index query = (h * s.queries + first) * s.d;
              by_tiles(q.data() + query, k.data() + at, v.data() + at, out.data() + query, first, s);
            }
          }
        }
      },
      [=] { return out; });
}
#endif

/// Keys (1, heads, n, d), then values, in pages of a pool (pages, heads, page, d), in no order.
template <class T>
struct paged_copy {
  index page, pages;
  std::vector<int> table;
  array<T> k, v;

  paged_copy(const problem& s, index page_size, const array<T>& keys, const array<T>& values)
      : page(page_size), pages((s.keys + page - 1) / page), table(static_cast<std::size_t>(pages)) {
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), std::mt19937(1));
    k = scattered(s, keys), v = scattered(s, values);
  }
  [[nodiscard]] auto source(const problem& s) const {
    const regroup::shape layout = {pages, s.key_heads, page, s.d};
    return regroup::paged(regroup::view<const T>(k.data(), layout), regroup::view<const T>(v.data(), layout),
                          regroup::view(table.data(), {1, pages}), std::vector{s.keys});
  }

 private:
  array<T> scattered(const problem& s, const array<T>& x) const {
    array<T> pool(static_cast<std::size_t>(pages * s.key_heads * page * s.d));
    for (index h = 0; h < s.key_heads; ++h) {
      for (index j = 0; j < s.keys; ++j) {
        const index at = (table[static_cast<std::size_t>(j / page)] * s.key_heads + h) * page + j % page;
        std::copy_n(x.data() + (h * s.keys + j) * s.d, s.d, pool.data() + at * s.d);
      }
    }
    return pool;
  }
};

template <class T>
void contend(program& p) {
  const bool decoding = p.work.verb == "decode";
  const index heads = p.work.extent("h", 8), keys = p.work.extent("n", 1024);
  const problem s{heads,
                  p.work.extent("kv", heads),
                  p.work.extent("q", decoding ? 1 : keys),
                  keys,
                  p.work.extent("d", 64),
                  p.work.what == "causal",
                  p.work.what == "window" ? p.work.extent("w", 1024) : 0};
  const auto q = p.input<T>("q"), k = p.input<T>("k"), v = p.input<T>("v");
  const array<T> out(static_cast<std::size_t>(q.size()));
  const regroup::view<const T> query(q.data(), {1, s.heads, s.queries, s.d});
  const auto dense = regroup::dense(regroup::view<const T>(k.data(), {1, s.key_heads, s.keys, s.d}),
                                    regroup::view<const T>(v.data(), {1, s.key_heads, s.keys, s.d}));
  std::shared_ptr<const paged_copy<T>> pool;
  if (p.work.what == "paged") pool = std::make_shared<paged_copy<T>>(s, p.work.extent("p", 16), k, v);
  const auto source = pool ? pool->source(s) : dense;
  const regroup::view<T> to(out.data(), {1, s.heads, s.queries, s.d});
  regroup::attention_mask mask;
  if (s.causal) mask = regroup::causal{};
  if (s.window > 0) mask = regroup::window{s.window - 1, 0};
  p.with_executor([&](const auto& ex) {
    const auto add = [&](const std::string& who, const auto& keys_and_values, index parts, bool narrow,
                         bool fixed = false) {
      p.add(
          who,
          [=, keep = std::tuple(q, k, v, pool)] {
            regroup::attention(ex, query, keys_and_values, to,
                               {.mask = mask, .split = parts, .narrow_weights = narrow, .fixed_point = fixed});
          },
          [=] { return out; });
    };
    add("ours", source, 1, true, !decoding);  // few queries are faster in floating point
    if constexpr (sizeof(T) == 2) add("ours, in full", source, 1, false);
    if (decoding) add("ours, keys split in 2", source, 2, true);
    if (pool) add("ours, keys in a row", dense, 1, true);
    if (s.window > 0) {
      const index seen = std::min(s.window + s.queries - 1, s.keys);
      const auto last = [&](const array<T>& x) {
        return regroup::view<const T>(x.data() + (s.keys - seen) * s.d, {1, s.key_heads, seen, s.d},
                                      {0, s.keys * s.d, s.d, 1});
      };
      add("ours, without the keys that no query sees", regroup::dense(last(k), last(v)), 1, true);
    }
  });
#ifdef REGROUP_HAS_OPENBLAS
  if constexpr (std::same_as<T, float>) {
    if (s.window == 0 && !pool) add_openblas(p, s, q, k, v);
  }
#endif
  if (decoding) {
    const array<char> both(static_cast<std::size_t>(k.size() + v.size()) * sizeof(T));
    std::memset(both.data(), 0, static_cast<std::size_t>(both.size()));
    add_read_limits(p, both);
  } else {
    add_multiplier_limits(p, p.work.type);
  }
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::main_of(
      argc, argv, [](bench::program& p) { bench::with_type(p.work.type, [&]<class T>(T) { bench::contend<T>(p); }); });
}

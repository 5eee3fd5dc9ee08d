// SPDX-License-Identifier: Apache-2.0
// One query has the same bits alone, in a batch, in prefill, chunked prefill and decode, with any threads, strides, pages
// and grouped or repeated heads.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "cases.hpp"
#include "host/guarded.hpp"

namespace {

using cases::attend;
using cases::index;
using cases::same_bits;
using cases::slice;
using cases::tensor;
using regroup::causal;
using regroup::dense;
using regroup::par;
using regroup::seq;
using regroup::view;

constexpr index batches = 2, heads = 4, key_heads = 2, queries = 70, keys = 1500, d = 24, dv = 17;

template <class T>
class same_bits_of : public testing::Test {
 protected:
  tensor<T> q_ = cases::normal<T>({batches, heads, queries, d}, 1, 1.5);
  tensor<T> k_ = cases::normal<T>({batches, key_heads, keys, d}, 2, 1.5);
  tensor<T> v_ = cases::normal<T>({batches, key_heads, keys, dv}, 3);
  view<const T> q = q_.view(), k = k_.view(), v = v_.view();
};
using types = testing::Types<float, double, regroup::float16, regroup::bfloat16>;

/// The same elements in other memory, its axes outermost in `order`, with gaps.
template <class T>
struct rearranged {
  std::vector<T> memory;
  view<T> seen;
  rearranged(const view<const T>& x, const regroup::shape& order, index gap = 3) {
    regroup::shape strides = x.extents();
    index step = gap;
    for (int a = order.size() - 1; a >= 0; --a) {
      const auto axis = static_cast<int>(order[a]);
      strides[axis] = step;
      step = step * x.extent(axis) + gap;
    }
    memory.resize(static_cast<std::size_t>(step));
    seen = {memory.data(), x.extents(), strides};
    for (index i = 0; i < x.size(); ++i) {
      seen.data()[regroup::offset_of(i, seen.extents(), strides)] =
          x.data()[regroup::offset_of(i, x.extents(), x.strides())];
    }
  }
  [[nodiscard]] view<const T> view_of() const { return seen; }
};

TYPED_TEST_SUITE(same_bits_of, types);

TYPED_TEST(same_bits_of, any_threads) {
  const auto once = attend<TypeParam>(seq, this->q, dense(this->k, this->v), {.mask = causal{}});
  for (const int threads : {1, 2, 3, 7}) {
    EXPECT_TRUE(same_bits(
        once, attend<TypeParam>(par.with_threads(threads), this->q, dense(this->k, this->v), {.mask = causal{}})));
  }
}

TYPED_TEST(same_bits_of, decode_chunks_and_prefill) {
  const auto prefill = attend<TypeParam>(par, this->q, dense(this->k, this->v), {.mask = causal{}});
  for (const index chunk : {1, 3, 32, 50}) {
    for (index first = chunk == 1 ? 60 : 0; first < queries; first += chunk) {
      const index last = std::min(first + chunk, queries);
      const index known = keys - queries + last;  // the cache holds the keys up to the chunk's end
      const auto part =
          attend<TypeParam>(par, slice(this->q, 2, first, last),
                            dense(slice(this->k, 2, 0, known), slice(this->v, 2, 0, known)), {.mask = causal{}});
      ASSERT_TRUE(same_bits<TypeParam>(part.out.view(), slice(prefill.out.view(), 2, first, last)))
          << chunk << " " << first;
      ASSERT_TRUE(same_bits(part.lse.view(), slice(prefill.lse.view(), 2, first, last))) << chunk << " " << first;
    }
  }
}

/// Windows begin at any key; the keys that a block folds, at the first that one of its queries sees. One thread takes the
/// blocks of a head together, and copies keys once for all of them.
TYPED_TEST(same_bits_of, windows_of_any_query) {
  for (const index left : {10, 64, 101}) {
    const regroup::attention_options options = {.mask = regroup::window{left, 0}};
    const auto all =
        attend<TypeParam, regroup::attention_real<TypeParam>>(seq, this->q, dense(this->k, this->v), options);
    const rearranged<TypeParam> k(this->k, {0, 1, 3, 2}), v(this->v, {0, 1, 3, 2});
    EXPECT_TRUE(same_bits(all, attend<TypeParam, regroup::attention_real<TypeParam>>(
                                   seq, this->q, dense(k.view_of(), v.view_of()), options)))
        << left;
    for (index i = 0; i < queries; i += 3) {
      const index known = keys - queries + i + 1;
      const auto one = attend<TypeParam, regroup::attention_real<TypeParam>>(
          par, slice(this->q, 2, i, i + 1), dense(slice(this->k, 2, 0, known), slice(this->v, 2, 0, known)), options);
      EXPECT_TRUE(same_bits(one.out.view(), slice(all.out.view(), 2, i, i + 1))) << left << ", query " << i;
    }
  }
}

TYPED_TEST(same_bits_of, alone_or_in_a_batch) {
  const auto all = attend<TypeParam>(par, this->q, dense(this->k, this->v));
  for (const index b : {0, 1}) {
    for (const index h : {0, 3}) {
      const auto head = attend<TypeParam>(seq, this->q[b][h], dense(this->k[b][h / 2], this->v[b][h / 2]));
      EXPECT_TRUE(same_bits<TypeParam>(head.out.view(), all.out.view()[b][h]));
      for (const index i : {0, 31, 69}) {
        const auto alone =
            attend<TypeParam>(seq, slice(this->q[b][h], 0, i, i + 1), dense(this->k[b][h / 2], this->v[b][h / 2]));
        EXPECT_TRUE(same_bits<TypeParam>(alone.out.view()[0], all.out.view()[b][h][i]));
        EXPECT_TRUE(same_bits(alone.lse.view(), slice(all.lse.view()[b][h], 0, i, i + 1)));
      }
    }
  }
}

/// Few queries and many are computed in different layouts: all group sizes, and extents that fill no register.
TYPED_TEST(same_bits_of, decode_of_any_group_and_any_extents) {
  using T = TypeParam;
  struct extents {
    index d, dv;
  };
  for (const extents& e : {extents{1, 1}, {5, 3}, {7, 0}, {8, 24}, {16, 16}, {17, 33}, {32, 20}, {40, 150}, {64, 64},
                           {80, 72}, {130, 7}}) {
    const index most = 70, known = 200;
    const auto q = cases::normal<T>({1, most, e.d}, 11, 1.5);
    const auto k = cases::normal<T>({1, known, e.d}, 12, 1.5);
    const auto v = cases::normal<T>({1, known, e.dv}, 13);
    const auto prefill = attend<T>(par, q.view(), dense(k.view(), v.view()));
    for (index group = 1; group <= 33; ++group) {
      const index first = most - group;
      const view<const T> heads_of_one_query(q.values.data() + first * e.d, {group, 1, e.d});
      const auto decode = attend<T>(seq, heads_of_one_query, dense(k.view(), v.view()));
      const view<const T> wanted(prefill.out.values.data() + first * e.dv, {group, 1, e.dv});
      ASSERT_TRUE(same_bits<T>(decode.out.view(), wanted)) << group << " d " << e.d << " dv " << e.dv;
    }
  }
}

TYPED_TEST(same_bits_of, grouped_or_repeated_heads) {
  using T = TypeParam;
  const auto repeat = [](const view<const T>& x) {  // each key head twice, by a stride of zero
    tensor<T> y({batches, heads, x.extent(2), x.extent(3)});
    for (index i = 0; i < y.view().size(); ++i) {
      const index row = x.extent(2) * x.extent(3);
      y.values[static_cast<std::size_t>(i)] = x.data()[i / row / 2 * row + i % row];
    }
    return y;
  };
  const auto k = repeat(this->k);
  const auto v = repeat(this->v);
  EXPECT_TRUE(same_bits(attend<T>(par, this->q, dense(this->k, this->v), {.mask = causal{}}),
                        attend<T>(par, this->q, dense(k.view(), v.view()), {.mask = causal{}})));
}

TYPED_TEST(same_bits_of, any_strides) {
  using T = TypeParam;
  const auto plain = attend<T>(par, this->q, dense(this->k, this->v), {.mask = causal{}});
  for (const regroup::shape& order : {regroup::shape{0, 2, 1, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {0, 1, 3, 2}}) {
    const index gap = order[2] == 3 ? 1 : 3;  // the last order is of transposed matrices
    const rearranged<T> q(this->q, order), k(this->k, order, gap), v(this->v, order, gap);
    EXPECT_TRUE(same_bits(plain, attend<T>(par, q.view_of(), dense(k.view_of(), v.view_of()), {.mask = causal{}})));
    EXPECT_TRUE(same_bits(plain, attend<T>(seq, q.view_of(), dense(k.view_of(), v.view_of()), {.mask = causal{}})));
    rearranged<T> out(plain.out.view(), order);
    std::fill(out.memory.begin(), out.memory.end(), T(0.0f));
    regroup::attention(par, this->q, dense(this->k, this->v), out.seen,
                       {.mask = causal{}, .narrow_weights = cases::narrows(), .fixed_point = cases::fixes_points()});
    EXPECT_TRUE(same_bits<T>(out.view_of(), plain.out.view()));
  }
}

TYPED_TEST(same_bits_of, pages_of_any_size_anywhere) {
  using T = TypeParam;
  const std::vector<index> lengths = {keys, 700};
  for (const index size : {1, 3, 16, 64, 100}) {
    const index pages = (keys + size - 1) / size;
    tensor<T> k_pool({2 * pages + 5, key_heads, size, d});
    tensor<T> v_pool({2 * pages + 5, key_heads, size, dv});
    for (auto* pool : {&k_pool, &v_pool}) {  // what no key owns is NaN
      std::fill(pool->values.begin(), pool->values.end(), T(std::numeric_limits<float>::quiet_NaN()));
    }
    std::vector<int> free(static_cast<std::size_t>(2 * pages + 5));
    std::iota(free.begin(), free.end(), 0);
    std::shuffle(free.begin(), free.end(), std::mt19937(static_cast<unsigned>(size)));
    std::vector<int> table(static_cast<std::size_t>(2 * pages), -7);  // pages past a length hold nothing
    for (index b = 0; b < 2; ++b) {
      for (index j = 0; j < lengths[static_cast<std::size_t>(b)]; ++j) {
        int& page = table[static_cast<std::size_t>(b * pages + j / size)];
        if (page < 0) {
          page = free.back();
          free.pop_back();
        }
        for (index h = 0; h < key_heads; ++h) {
          for (index c = 0; c < d; ++c) k_pool.view()(page, h, j % size, c) = this->k(b, h, j, c);
          for (index c = 0; c < dv; ++c) v_pool.view()(page, h, j % size, c) = this->v(b, h, j, c);
        }
      }
    }
    const view<const int> table_view(table.data(), {2, pages});
    EXPECT_TRUE(same_bits(
        attend<T>(par, this->q, dense(this->k, this->v, lengths), {.mask = causal{}}),
        attend<T>(par, this->q, regroup::paged(k_pool.view(), v_pool.view(), table_view, lengths), {.mask = causal{}})))
        << size;
  }
}

/// Rows of whole registers may be read where they lie: few queries of a key head beside all of them, whatever its steps,
/// pages, the keys of the last tile and those that are seen.
TYPED_TEST(same_bits_of, decode_over_keys_where_they_lie) {
  using T = TypeParam;
  for (const index width : {32, 64, 128}) {
    const index most = 40, known = 1200, values = width + 8;
    const auto q = cases::normal<T>({1, 1, most, width}, 21, 1.5);
    const auto k = cases::normal<T>({1, 1, known, width}, 22, 1.5);
    const auto v = cases::normal<T>({1, 1, known, values}, 23);
    for (const index length : {index{64}, index{1093}, index{1135}, known}) {
      const auto k_seen = slice(k.view(), 2, 0, length), v_seen = slice(v.view(), 2, 0, length);
      for (const index left : {index{70}, known}) {
        const regroup::attention_options options = {.mask = regroup::window{left, 0}};
        const auto all = attend<T>(par, q.view(), dense(k_seen, v_seen), options);
        const auto expect = [&](const regroup::attention_source<T>& keys, index count, const std::string& layout) {
          const auto some = attend<T>(seq, slice(q.view(), 2, most - count, most), keys, options);
          EXPECT_TRUE(same_bits<T>(some.out.view(), slice(all.out.view(), 2, most - count, most)))
              << layout << ", " << count << " queries, " << length << " keys of " << width << ", window " << left;
        };
        for (const index count : {1, 4, 16}) expect(dense(k_seen, v_seen), count, "side by side");
        const rearranged<T> far(k_seen, {0, 2, 1, 3}, 5), apart(v_seen, {0, 1, 3, 2});
        expect(dense(far.view_of(), v_seen), 1, "keys apart");
        expect(dense(k_seen, apart.view_of()), 1, "values apart");
        const rearranged<T> k_turned(k_seen, {0, 1, 3, 2}, 1), v_turned(v_seen, {0, 1, 3, 2}, 1);
        for (const index count : {1, 5, 40}) {
          expect(dense(k_turned.view_of(), v_turned.view_of()), count, "keys and values turned");
          expect(dense(k_seen, v_turned.view_of()), count, "values turned");
        }
        for (const index size : {8, 16, 24, 64}) {  // the last page first
          const index pages = (length + size - 1) / size;
          tensor<T> k_pool({pages, 1, size, width}), v_pool({pages, 1, size, values});
          std::vector<int> table(static_cast<std::size_t>(pages));
          for (index j = 0; j < length; ++j) {
            const index page = pages - 1 - j / size;
            table[static_cast<std::size_t>(j / size)] = static_cast<int>(page);
            for (index c = 0; c < width; ++c) k_pool.view()(page, index{0}, j % size, c) = k.view()(0, 0, j, c);
            for (index c = 0; c < values; ++c) v_pool.view()(page, index{0}, j % size, c) = v.view()(0, 0, j, c);
          }
          const view<const int> table_view(table.data(), {1, pages});
          expect(regroup::paged(k_pool.view(), v_pool.view(), table_view, std::vector{length}), 2,
                 "pages of " + std::to_string(size));
          const rearranged<T> k_pages(k_pool.view(), {0, 1, 3, 2}, 1), v_pages(v_pool.view(), {0, 1, 3, 2}, 1);
          expect(regroup::paged(k_pages.view_of(), v_pages.view_of(), table_view, std::vector{length}), 2,
                 "turned pages of " + std::to_string(size));
        }
      }
    }
  }
}

TYPED_TEST(same_bits_of, nothing_is_read_past_the_last_element) {
  using T = TypeParam;
  for (const index width : {24, 32, 65}) {
    for (const index known : {64, 65, 90, 127}) {
      const auto q = cases::normal<T>({1, 20, width}, 31), k = cases::normal<T>({1, known, width}, 32);
      const auto v = cases::normal<T>({1, known, width + 1}, 33);
      const auto all = attend<T>(seq, q.view(), dense(k.view(), v.view()));
      const guarded<T> k_edge(k.values, edge::behind), v_edge(v.values, edge::behind), q_edge(q.values, edge::behind);
      const auto seen = [](const guarded<T>& x, const tensor<T>& of) { return view<const T>(x.data(), of.view().extents()); };
      const auto keys = dense(seen(k_edge, k), seen(v_edge, v));
      EXPECT_TRUE(same_bits(all, attend<T>(seq, seen(q_edge, q), keys)));
      const auto one = attend<T>(seq, slice(seen(q_edge, q), 1, 19, 20), keys);
      EXPECT_TRUE(same_bits<T>(one.out.view(), slice(all.out.view(), 1, 19, 20)));
    }
  }
}

TYPED_TEST(same_bits_of, lengths_are_as_shorter_arrays) {
  using T = TypeParam;
  const std::vector<int> lengths = {1300, 60};
  const auto both = attend<T>(par, this->q, dense(this->k, this->v, lengths), {.mask = causal{}});
  for (const index b : {0, 1}) {
    const index n = lengths[static_cast<std::size_t>(b)];
    const auto one =
        attend<T>(par, this->q[b], dense(slice(this->k[b], 1, 0, n), slice(this->v[b], 1, 0, n)), {.mask = causal{}});
    EXPECT_TRUE(same_bits<T>(one.out.view(), both.out.view()[b]));
    EXPECT_TRUE(same_bits(one.lse.view(), both.lse.view()[b]));
  }
}

TEST(attention_same_bits, one_long_decode_shared_out_by_leaves) {
  const auto q = cases::normal<float>({1, 1, 16}, 1);
  const auto k = cases::normal<float>({1, 100000, 16}, 2);
  const auto v = cases::normal<float>({1, 100000, 8}, 3);
  const auto once = attend<float>(seq, q.view(), dense(k.view(), v.view()));
  for (const int threads : {2, 3, 7}) {
    EXPECT_TRUE(same_bits(once, attend<float>(par.with_threads(threads), q.view(), dense(k.view(), v.view()))));
  }
  const auto more = cases::normal<float>({1, 40, 16}, 1);  // its first query is q
  const auto many = attend<float>(par, more.view(), dense(k.view(), v.view()));
  EXPECT_TRUE(same_bits<float>(slice(many.out.view(), 1, 0, 1), once.out.view()));
}

/// Scores so large that rounding shows, infinite ones and NaN are a query's own, also where a pack holds its neighbours.
template <class T>
void alone_whatever_the_neighbours() {
  for (const index d : {64, 80}) {
    auto q = cases::normal<T>({1, 32, d}, 5);
    auto k = cases::normal<T>({1, 1100, d}, 6);
    const auto v = cases::normal<T>({1, 1100, 40}, 7);
    for (index j = 0; j < 1100; ++j) k.values[static_cast<std::size_t>(j * d)] = T(8.0f);
    for (index i = 0; i < 32; ++i) q.values[static_cast<std::size_t>(i * d)] = T(i % 2 == 0 ? 1.0f : 200.0f);
    const auto before = cases::attend<T>(par, q.view(), dense(k.view(), v.view()));
    for (const float neighbour : {3000.0f, -3000.0f, INFINITY, NAN}) {
      auto changed = q;
      changed.values[static_cast<std::size_t>(d)] = T(neighbour);
      const auto after = cases::attend<T>(par, changed.view(), dense(k.view(), v.view()));
      for (const auto& [first, last] : {std::pair<index, index>{0, 1}, {2, 32}}) {
        EXPECT_TRUE(cases::same_bits<T>(cases::slice(before.out.view(), 1, first, last),
                                        cases::slice(after.out.view(), 1, first, last)))
            << "d " << d << ", beside " << neighbour;
      }
    }
  }
}
TEST(attention_same_bits, alone_whatever_the_neighbours) {
  alone_whatever_the_neighbours<float>();
  alone_whatever_the_neighbours<regroup::bfloat16>();
  alone_whatever_the_neighbours<regroup::float16>();
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Calls of attention drawn at random, one from each seed: extents, grouped heads, where queries and keys stand, rules,
// scale, sinks, values that are not numbers (in turn, so that among twelve seeds each occurs with each place of the keys). Each
// call is made three times: by a device, by the host, and by the definition with its bound. It uses no test framework, so that
// emulated kernels and a GPU make the same calls.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "../attention/definition.hpp"
#include "../order/digest.hpp"
#include "regroup/algorithms/attention.hpp"
#include "regroup/cuda/attention_arguments.hpp"
#include "regroup/cuda/attention_masks.hpp"
#include "regroup/host/seq.hpp"

namespace calls {

namespace cuda = regroup::cuda;
using regroup::index;
using regroup::shape;
using regroup::view;

inline constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// A user's rule: of every `period` keys one is hidden; none where it is 0.
struct sparse {
  index period;
  template <class Real>
  constexpr Real operator()(Real s, index batch, index head, index query, index key) const {
    return period > 0 && (key + query + head + batch) % period == 0 ? Real{regroup::hidden} : s;
  }
};

/// Every rule that a device has, of which a call leaves out some: kernels are compiled once for all calls.
template <class Bias, class Seen>
auto rules(double cap, const regroup::window& window, const sparse& own, const cuda::device_view<const float>& slopes,
           const Bias& bias, const Seen& seen) {
  return regroup::softcap{cap} & window & own & cuda::alibi{slopes} & cuda::additive(bias) & cuda::boolean(seen);
}

/// An array with its memory, any strides.
template <class T>
struct array {
  std::vector<T> values;
  shape extents, strides;

  array() = default;
  /// In C order, or with two axes swapped in memory.
  array(const shape& e, T filling, int axis = 0, int with = 0) : extents(e), strides(e) {
    std::vector<int> order;
    for (int a = 0; a < e.size(); ++a) order.push_back(a);
    std::swap(order[static_cast<std::size_t>(axis)], order[static_cast<std::size_t>(with)]);
    index size = 1;
    for (auto a = order.rbegin(); a != order.rend(); ++a) {
      strides[*a] = size;
      size *= e[*a];
    }
    values.assign(static_cast<std::size_t>(size), filling);
  }
  [[nodiscard]] view<T> all() { return {values.data(), extents, strides}; }
  [[nodiscard]] view<const T> all() const { return {values.data(), extents, strides}; }
};

template <class T>
struct results {
  array<T> out;
  array<float> lse;
};

enum class keys_stand { dense, of_lengths, in_pages, ragged };

template <class T>
struct call {
  index batches, heads, key_heads, d, dv;
  bool queries_are_ragged;
  keys_stand keys;
  std::vector<int> query_counts, key_counts;  // one a batch
  array<T> q, k, v;
  std::vector<int> query_offsets, key_offsets, table;
  index pages = 0;
  std::optional<double> scale;
  std::vector<float> sinks;
  double cap;
  regroup::window window;
  sparse own;
  std::vector<float> slopes;
  array<float> bias;
  array<unsigned char> seen;

  call(unsigned seed, index most_queries, index most_keys) {
    std::mt19937 random(seed);
    const auto below = [&](index n) { return static_cast<index>(random() % static_cast<unsigned>(n)); };
    const auto often = [&] { return random() % 8 < 5; };
    batches = 1 + below(3);
    key_heads = 1 + below(2);
    heads = key_heads * (1 + below(3));
    d = often() ? 1 + below(70) : 128;
    dv = often() ? 1 + below(70) : 1 + below(140);
    if (sizeof(T) == 2 && seed % 2 == 0) d = (d + 7) / 8 * 8, dv = (dv + 7) / 8 * 8;  // rows of whole 16 bytes
    keys = static_cast<keys_stand>(seed % 4);
    queries_are_ragged = keys == keys_stand::ragged || often();
    const index queries = 1 + below(most_queries), all_keys = most_keys - below(most_keys / 8 + 1);
    for (index b = 0; b < batches; ++b) {
      query_counts.push_back(static_cast<int>(queries_are_ragged ? below(queries + 1) : queries));
      key_counts.push_back(static_cast<int>(keys == keys_stand::dense || b == 0 ? all_keys : below(all_keys + 1)));
    }
    place(random, queries, all_keys);

    const auto number = [&] { return static_cast<float>(static_cast<int>(random() % 4096) - 2048) / 512; };
    fill(random, number, seed % 3 == 1);
    if (often()) scale = number() / 20;
    for (index h = 0; h < heads; ++h) {
      sinks.push_back(h % 3 == 2 ? -std::numeric_limits<float>::infinity() : number());
      slopes.push_back(0);
    }
    if (often()) sinks.clear();
    cap = often() ? 1e6 : 3;
    window = {often() ? -1 : below(40), often() ? -1 : below(4)};
    own = {often() ? 0 : 2 + below(3)};
    if (!often()) {
      for (float& slope : slopes) slope = number() / 64;
    }
    const auto one_of = [&](index n) { return often() ? 1 : n; };
    const index rows = queries_are_ragged ? longest(query_counts) : queries;
    const index columns = keys == keys_stand::ragged     ? longest(key_counts)
                          : keys == keys_stand::in_pages ? pages * k.extents[2]
                                                         : all_keys;
    bias = {{one_of(batches), one_of(heads), one_of(rows), columns}, 0};
    if (!often()) {
      for (float& x : bias.values) x = random() % 6 == 0 ? float{regroup::hidden} : number();
    }
    seen = {{1, 1, one_of(rows), columns}, 1};
    if (!often()) {
      for (unsigned char& x : seen.values) x = random() % 4 != 0;
    }
  }

  /// f(queries, keys, options) as a device takes them; `there(x)` is where a device finds a vector's memory.
  template <class There, class F>
  auto on_a_device(const There& there, const F& f) const {
    const auto of = [&](const auto& x) { return cuda::device_view(there(x.values), x.extents, x.strides); };
    const auto integers = [&](const std::vector<int>& x) {
      return cuda::device_view<const int>(there(x), {static_cast<index>(x.size())});
    };
    const auto numbers = [&](const std::vector<float>& x) { return cuda::device_view<const float>(there(x), {heads}); };
    const auto mask = rules(cap, window, own, numbers(slopes), of(bias), of(seen));
    cuda::attention_options<std::remove_const_t<decltype(mask)>> options{.scale = scale, .mask = mask};
    if (!sinks.empty()) options.sinks.emplace(numbers(sinks));
    const auto queries = queries_are_ragged ? cuda::ragged(of(q), integers(query_offsets), longest(query_counts))
                                            : cuda::attention_queries<T>(of(q));
    switch (keys) {
      case keys_stand::dense: return f(queries, cuda::dense(of(k), of(v)), options);
      case keys_stand::of_lengths: return f(queries, cuda::dense(of(k), of(v), integers(key_counts)), options);
      case keys_stand::in_pages: {
        const cuda::device_view<const int> pages_of(there(table), {batches, pages});
        return f(queries, cuda::paged(of(k), of(v), pages_of, integers(key_counts)), options);
      }
      default: return f(queries, cuda::ragged(of(k), of(v), integers(key_offsets), longest(key_counts)), options);
    }
  }

  [[nodiscard]] shape outer() const {
    if (queries_are_ragged) return {q.extents[0], heads};
    return {batches, heads, q.extents[2]};
  }
  [[nodiscard]] shape full() const {
    shape e = outer();
    e.push_back(dv);
    return e;
  }

  /// The host's own answer.
  template <class Out>
  [[nodiscard]] results<Out> on_the_host() const {
    results<Out> r{{full(), Out(0.0f)}, {outer(), 0}};
    regroup::attention_options options{.scale = scale, .logsumexp = r.lse.all()};
    options.mask = regroup::attention_mask::all({regroup::softcap{cap}, window, own, regroup::alibi(slopes),
                                                 regroup::additive(bias.all()), regroup::boolean(seen.all())});
    if (!sinks.empty()) options.sinks = sinks;
    const auto attend = [&](const auto& source) {
      if (queries_are_ragged) {
        regroup::attention(regroup::seq, regroup::ragged(q.all(), query_offsets), source, r.out.all(), options);
      } else if constexpr (requires { regroup::attention(regroup::seq, q.all(), source, r.out.all(), options); }) {
        regroup::attention(regroup::seq, q.all(), source, r.out.all(), options);
      }
    };
    switch (keys) {
      case keys_stand::dense: attend(regroup::dense(k.all(), v.all())); break;
      case keys_stand::of_lengths: attend(regroup::dense(k.all(), v.all(), key_counts)); break;
      case keys_stand::in_pages:
        attend(regroup::paged(k.all(), v.all(), view<const int>(table.data(), {batches, pages}), key_counts));
        break;
      case keys_stand::ragged: attend(regroup::ragged(k.all(), v.all(), key_offsets)); break;
    }
    return r;
  }

  /// The worst error on tensor cores as a part of what they may do to the definition.
  [[nodiscard]] double ratio(const results<float>& got, bool are_emulated) const {
    cases::worst_ratio worst;
    const auto by = cases::of_tensor_cores<T>(are_emulated);
    const auto factor = static_cast<float>(scale.value_or(1 / std::sqrt(static_cast<double>(d))));
    for (index b = 0; b < batches; ++b) {
      for (index h = 0; h < heads; ++h) {
        const array<T> own_k = keys_of(k, b, h), own_v = keys_of(v, b, h);
        for (index i = 0; i < query_counts[static_cast<std::size_t>(b)]; ++i) {
          auto visible = cases::keys_of<T>(query(b, h, i), own_k.all(), own_v.all(), factor,
                                           [&](index j, auto& key) { return sees(b, h, i, j, key); });
          if (!sinks.empty() && sinks[static_cast<std::size_t>(h)] != float{regroup::hidden}) {
            visible.push_back({sinks[static_cast<std::size_t>(h)], 0,
                               std::vector<long double>(static_cast<std::size_t>(dv), 0)});
          }
          const index row = queries_are_ragged ? (query_offsets[static_cast<std::size_t>(b)] + i) * heads + h
                                               : (b * heads + h) * q.extents[2] + i;
          auto e = cases::define(visible, d, dv, 0x1p-24, 0x1p-24, 1, cases::narrow_weight_u<T>, by);
          const float* const out = got.out.values.data() + row * dv;
          for (index c = 0; c < dv; ++c) {  // a weight may round to 0, and 0 times infinity is NaN
            long double& wanted = e.out[static_cast<std::size_t>(c)];
            if (std::isinf(wanted) && std::isnan(out[c])) wanted = not_a_number;
          }
          worst.add(e, out, got.lse.values[static_cast<std::size_t>(row)]);
        }
      }
    }
    return worst.ratio;
  }

 private:
  static index longest(const std::vector<int>& counts) { return *std::max_element(counts.begin(), counts.end()); }

  /// Arrays for queries and keys, all NaN where nobody's stand.
  void place(std::mt19937& random, index queries, index all_keys) {
    const auto offsets = [](const std::vector<int>& counts) {
      std::vector<int> from = {0};
      for (const int n : counts) from.push_back(from.back() + n);
      return from;
    };
    const T nothing(not_a_number);
    query_offsets = offsets(query_counts);
    key_offsets = offsets(key_counts);
    const int swapped = random() % 2 == 0 ? 2 : 1;  // tokens before heads, in memory
    q = queries_are_ragged ? array<T>({query_offsets.back(), heads, d}, nothing)
                           : array<T>({batches, heads, queries, d}, nothing, 1, swapped);
    const auto keys_by = [&](const shape& e, index width) {
      shape extents = e;
      extents.push_back(width);
      return e.size() == 2 ? array<T>(extents, nothing) : array<T>(extents, nothing, 1, swapped);
    };
    shape e{batches, key_heads, all_keys};
    if (keys == keys_stand::ragged) e = {key_offsets.back(), key_heads};
    if (keys == keys_stand::in_pages) {
      const index size = 1 + static_cast<index>(random() % 40);
      pages = (all_keys + size - 1) / size;
      for (index page = 0; page < batches * pages; ++page) table.push_back(static_cast<int>(page));
      std::shuffle(table.begin(), table.end(), random);
      e = {batches * pages, key_heads, size};
    }
    k = keys_by(e, d);
    v = keys_by(e, dv);
  }

  [[nodiscard]] index at_query(index b, index h, index i) const {
    if (queries_are_ragged) return (query_offsets[static_cast<std::size_t>(b)] + i) * q.strides[0] + h * q.strides[1];
    return b * q.strides[0] + h * q.strides[1] + i * q.strides[2];
  }
  [[nodiscard]] index at_key(const array<T>& x, index b, index kh, index j) const {
    if (keys == keys_stand::ragged) {
      return (key_offsets[static_cast<std::size_t>(b)] + j) * x.strides[0] + kh * x.strides[1];
    }
    index first = b;
    if (keys == keys_stand::in_pages) {
      first = table[static_cast<std::size_t>(b * pages + j / x.extents[2])];
      j %= x.extents[2];
    }
    return first * x.strides[0] + kh * x.strides[1] + j * x.strides[2];
  }
  [[nodiscard]] view<const T> query(index b, index h, index i) const {
    return {q.values.data() + at_query(b, h, i), {d}, {q.strides[q.extents.size() - 1]}};
  }
  /// What stands there for head h, key by key.
  [[nodiscard]] array<T> keys_of(const array<T>& x, index b, index h) const {
    const index n = key_counts[static_cast<std::size_t>(b)], width = x.extents[x.extents.size() - 1];
    array<T> own({n, width}, T(0.0f));
    for (index j = 0; j < n; ++j) {
      const T* const from = x.values.data() + at_key(x, b, h / (heads / key_heads), j);
      for (index c = 0; c < width; ++c) own.all()(j, c) = from[c * x.strides[x.extents.size() - 1]];
    }
    return own;
  }

  template <class Number>
  void fill(std::mt19937& random, const Number& number, bool has_infinite_values) {
    for (index b = 0; b < batches; ++b) {
      for (index h = 0; h < heads; ++h) {
        for (index i = 0; i < query_counts[static_cast<std::size_t>(b)]; ++i) {
          T* const to = q.values.data() + at_query(b, h, i);
          for (index c = 0; c < d; ++c) to[c * q.strides[q.extents.size() - 1]] = T(number());
        }
      }
      for (index h = 0; h < key_heads; ++h) {
        for (index j = 0; j < key_counts[static_cast<std::size_t>(b)]; ++j) {
          for (array<T>* const x : {&k, &v}) {
            const index width = x->extents[x->extents.size() - 1];
            T* const to = x->values.data() + at_key(*x, b, h, j);
            for (index c = 0; c < width; ++c) {
              const auto rare = has_infinite_values && x == &v ? random() % 300 : 300;
              to[c * x->strides[x->extents.size() - 1]] =
                  T(rare == 0 ? not_a_number : rare == 1 ? std::numeric_limits<float>::infinity() : number());
            }
          }
        }
      }
    }
  }

  /// Whether a query sees a key, by the text of the rules, which change its score.
  bool sees(index b, index h, index i, index j, cases::seen_key& key) const {
    const auto at = static_cast<std::size_t>(b);
    const index centre = i + key_counts[at] - query_counts[at];
    const auto rounded = [&](long double score) {
      key.magnitude += 2 * std::abs(score);
      key.score = score;
    };
    const auto in = [&](const auto& x) {
      const auto clamped = [&](index n, int axis) { return x.extents[axis] == 1 ? 0 : n; };
      return x.all()(clamped(b, 0), clamped(h, 1), clamped(i, 2), j);
    };
    const float added = in(bias);
    rounded(cap * std::tanh(key.score / cap));
    rounded(key.score + slopes[static_cast<std::size_t>(h)] * static_cast<long double>(j - centre));
    if (added != float{regroup::hidden}) rounded(key.score + added);
    if (window.left >= 0 && j < centre - window.left) return false;
    if (window.right >= 0 && j > centre + window.right) return false;
    if (own.period > 0 && (j + i + h + b) % own.period == 0) return false;
    return added != float{regroup::hidden} && in(seen) != 0;
  }
};

}  // namespace calls

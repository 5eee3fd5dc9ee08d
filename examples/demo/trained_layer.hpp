// SPDX-License-Identifier: Apache-2.0
// The first layer of a trained transformer (examples/data/README.md): 12 heads, 512 tokens, 32 channels; what attention
// must give, in float64; and views of some of its tokens.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "demo.hpp"
#include "regroup/algorithms/attention.hpp"

namespace demo {

using regroup::index;

/// Indices [first, last) of one axis of a view.
template <class T>
regroup::view<T> some(const regroup::view<T>& whole, int axis, index first, index last) {
  regroup::shape extents = whole.extents();
  extents[axis] = last - first;
  return {whole.data() + first * whole.stride(axis), extents, whole.strides()};
}

struct trained_layer {
  array<float> q = data<float>("minilm/layer0_q.npy");  // (1, heads, tokens, channels), as are k, v and wanted
  array<float> k = data<float>("minilm/layer0_k.npy");
  array<float> v = data<float>("minilm/layer0_v.npy");
  array<double> wanted = data<double>("minilm/layer0_out.npy");

  [[nodiscard]] index heads() const { return q.extents[1]; }
  [[nodiscard]] index tokens() const { return q.extents[2]; }
  [[nodiscard]] index channels() const { return q.extents[3]; }
  /// Keys and values of the tokens [first, last).
  [[nodiscard]] auto keys(index first, index last) const {
    return regroup::dense(some(k.view(), 2, first, last), some(v.view(), 2, first, last));
  }
  [[nodiscard]] auto keys() const { return keys(0, tokens()); }
};

/// The layer's keys and values cut into pages that lie anywhere in a pool, as an inference server keeps them.
class scattered_pages {
 public:
  scattered_pages(const trained_layer& layer, index page_tokens)
      : pages_(layer.tokens() / page_tokens),
        pool_{pages_, layer.heads(), page_tokens, layer.channels()},
        table_(static_cast<std::size_t>(pages_)),
        k_(layer.k.values.size()),
        v_(layer.v.values.size()) {
    std::iota(table_.begin(), table_.end(), index{0});
    std::shuffle(table_.begin(), table_.end(), std::mt19937(1));
    for (index h = 0; h < layer.heads(); ++h) {
      for (index token = 0; token < layer.tokens(); ++token) {
        const index page = table_[static_cast<std::size_t>(token / page_tokens)];
        for (index c = 0; c < layer.channels(); ++c) {
          regroup::view<float>(k_.data(), pool_)(page, h, token % page_tokens, c) = layer.k.view()(0, h, token, c);
          regroup::view<float>(v_.data(), pool_)(page, h, token % page_tokens, c) = layer.v.view()(0, h, token, c);
        }
      }
    }
  }
  [[nodiscard]] auto keys() const {
    return regroup::paged(regroup::view<const float>(k_.data(), pool_), regroup::view<const float>(v_.data(), pool_),
                          regroup::view<const index>(table_.data(), {1, pages_}));
  }

 private:
  index pages_;
  regroup::shape pool_;  // (pages, heads, tokens of a page, channels)
  std::vector<index> table_;
  std::vector<float> k_, v_;
};

}  // namespace demo

// SPDX-License-Identifier: Apache-2.0
// Attention as a loop that everyone has written: each thread takes a share of the keys, sums exp(score - max) v over it,
// and adds its sums to everybody's when it is done. Right within rounding, with other bits for every number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "trained_layer.hpp"

namespace demo {

inline std::vector<float> plain_attention(const trained_layer& layer, int threads) {
  const auto q = layer.q.view()[0], k = layer.k.view()[0], v = layer.v.view()[0];
  const index heads = layer.heads(), tokens = layer.tokens(), channels = layer.channels();
  const float scale = 1 / std::sqrt(static_cast<float>(channels));
  const auto score = [&](index h, index i, index j) {
    float s = 0;
    for (index c = 0; c < channels; ++c) s += q(h, i, c) * k(h, j, c);
    return s * scale;
  };
  struct sums {
    std::vector<float> l, o;
  };
  const auto none = [&] {
    return sums{std::vector<float>(static_cast<std::size_t>(heads * tokens)),
                std::vector<float>(layer.q.values.size())};
  };

  sums all = none();
  std::mutex door;
  const auto work = [&](int thread) {
    sums mine = none();
    for (index h = 0; h < heads; ++h) {
      for (index i = 0; i < tokens; ++i) {
        const auto row = static_cast<std::size_t>(h * tokens + i);
        float* const o = mine.o.data() + (h * tokens + i) * channels;
        for (index j = tokens * thread / threads; j < tokens * (thread + 1) / threads; ++j) {
          const float w = std::exp(score(h, i, j));  // these scores stay below 74, so nothing overflows
          mine.l[row] += w;
          for (index c = 0; c < channels; ++c) o[c] += w * v(h, j, c);
        }
      }
    }
    const std::lock_guard lock(door);
    std::transform(mine.l.begin(), mine.l.end(), all.l.begin(), all.l.begin(), std::plus<>());
    std::transform(mine.o.begin(), mine.o.end(), all.o.begin(), all.o.begin(), std::plus<>());
  };
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) pool.emplace_back(work, t);
  for (std::thread& t : pool) t.join();

  for (std::size_t i = 0; i < all.o.size(); ++i) all.o[i] /= all.l[i / static_cast<std::size_t>(channels)];
  return all.o;
}

}  // namespace demo

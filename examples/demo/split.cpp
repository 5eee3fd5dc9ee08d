// SPDX-License-Identifier: Apache-2.0
// (a) Attention states over disjoint keys merge by one associative combine: so blocks of any size, in any order, split over
// any number of workers, or scattered in pages give the same answer up to rounding, and rounding has a computed bound.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "attention_bounds.hpp"
#include "demo.hpp"
#include "pictures.hpp"
#include "regroup/host/par.hpp"
#include "trained_layer.hpp"

namespace demo {
namespace {

using state = regroup::attention_state<float>;

class judge {
 public:
  explicit judge(const trained_layer& layer) : layer_(layer) {
    const double scale = 1 / std::sqrt(static_cast<double>(layer.channels()));
    for (index h = 0; h < layer.heads(); ++h) {
      for (index i = 0; i < layer.tokens(); ++i) {
        bounds_.emplace_back(layer.q.view()[0][h][i], layer.k.view()[0][h], layer.v.view()[0][h], scale);
      }
    }
  }
  accuracy operator()(const std::string& name, const std::string& label, const std::vector<float>& out,
                      depth way) const {
    accuracy result{label};
    const auto channels = static_cast<std::size_t>(layer_.channels());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double difference = std::fabs(static_cast<double>(out[i]) - layer_.wanted.values[i]);
      const double bound = bounds_[i / channels].of(i % channels, way);
      result.largest = worse(result.largest, difference);
      if (worse(result.ratio(), difference / bound) != result.ratio())
        result.nearest = difference, result.bound = bound;
    }
    std::printf("  %-38s %12.2e %16.2e %12.2e %8.3f\n", name.c_str(), result.largest, result.nearest, result.bound,
                result.ratio());
    return result;
  }

 private:
  using row = regroup::view<const float>;
  const trained_layer& layer_;
  std::vector<attention_bounds<row, row>> bounds_;  // one a query
};

std::vector<float> result_of(const state& s, const trained_layer& layer) {
  std::vector<float> out(layer.q.values.size());
  s.normalise(regroup::view<float>(out.data(), layer.q.extents));
  return out;
}

/// Blocks of keys folded apart and merged one after another.
state merged_blocks(const trained_layer& layer, index block, bool backwards) {
  state all;
  const index blocks = layer.tokens() / block;
  for (index b = 0; b < blocks; ++b) {
    const index at = (backwards ? blocks - 1 - b : b) * block;
    all.merge(state(regroup::par, layer.q.view(), layer.keys(at, at + block)));
  }
  return all;
}

/// Workers [first, last) of `all`, each with its share of the keys; their states merged in a tree.
state merged_workers(const trained_layer& layer, index first, index last, index all) {
  if (last - first == 1) {
    return state(regroup::par, layer.q.view(), layer.keys(layer.tokens() * first / all, layer.tokens() * last / all));
  }
  const index middle = (first + last) / 2;
  return merge(merged_workers(layer, first, middle, all), merged_workers(layer, middle, last, all));
}

}  // namespace

void section_split() {
  heading("(a) A trained layer's attention, its 512 keys folded in pieces that are merged");
  const trained_layer layer;
  const judge see(layer);
  std::printf("  %-38s %12s %16s %12s %8s\n", "", "largest", "difference", "that", "");
  std::printf("  %-38s %12s %16s %12s %8s\n", "the keys", "difference", "nearest its bound", "bound", "ratio");

  std::vector<accuracy_group> ways{
      {"keys a block", {}}, {"keys a block, last block first", {}}, {"workers", {}}, {"pages", {}}};
  for (const bool backwards : {false, true}) {
    for (const index block : {1, 2, 8, 32, 128, 512}) {
      const std::string name = "in blocks of " + std::to_string(block) + (backwards ? ", last block first" : "");
      ways[backwards ? 1 : 0].columns.push_back(see(name, std::to_string(block),
                                                    result_of(merged_blocks(layer, block, backwards), layer),
                                                    depth_of(block, layer.tokens() / block)));
    }
  }
  for (const index workers : {2, 3, 7}) {
    const index share = (layer.tokens() + workers - 1) / workers;
    ways[2].columns.push_back(see("split over " + std::to_string(workers) + " workers", std::to_string(workers),
                                  result_of(merged_workers(layer, 0, workers, workers), layer), depth_of(share, 3)));
  }
  const scattered_pages pages(layer, 16);
  ways[3].columns.push_back(see("in 32 scattered pages of 16", "32",
                                result_of(state(regroup::par, layer.q.view(), pages.keys()), layer),
                                depth_of(layer.tokens(), 0)));

  double worst = 0;
  for (const accuracy_group& g : ways) {
    for (const accuracy& a : g.columns) worst = worse(worst, a.ratio());
  }
  claim(worst <= 1, "all " + std::to_string(layer.wanted.values.size()) +
                        " results of each way are within their bounds, at worst " + text_of("%.3f", worst) + " of it");
  draw_accuracy(ways);
}

}  // namespace demo

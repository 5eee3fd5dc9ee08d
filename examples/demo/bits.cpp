// SPDX-License-Identifier: Apache-2.0
// (b) The order of combination depends on the number of keys only, so attention has the same bits with any number of
// threads, query by query, in chunks and from pages. A loop that gives each thread a share of the keys and adds up what
// comes back has other bits for every number of threads, and from three threads on may change from run to run.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "demo.hpp"
#include "pictures.hpp"
#include "plain_attention.hpp"
#include "regroup/host/par.hpp"
#include "trained_layer.hpp"

namespace demo {
namespace {

/// Prints how every run differs from the first; whether none did.
bool compare(const std::vector<run>& runs) {
  bool same = true;
  for (const run& r : runs) {
    const std::size_t count = different(r.out, runs[0].out);
    std::printf("    %-44s %7zu of %zu numbers differ\n", r.label.c_str(), count, r.out.size());
    same = same && count == 0;
  }
  return same;
}

std::string threads_of(int count) { return std::to_string(count) + (count == 1 ? " thread" : " threads"); }

}  // namespace

void section_bits() {
  heading("(b) The same attention with any threads, chunks and pages: the same bits");
  const trained_layer layer;
  // All queries, so many at once. `keys_until(i)`: the keys that queries before i are given.
  const auto attend = [&](const auto& executor, index at_once, const auto& keys_until,
                          const regroup::attention_options& options = {}) {
    std::vector<float> out(layer.q.values.size());
    const regroup::view<float> all(out.data(), layer.q.extents);
    for (index i = 0; i < layer.tokens(); i += at_once) {
      const index end = std::min(i + at_once, layer.tokens());
      regroup::attention(executor, some(layer.q.view(), 2, i, end), keys_until(end), some(all, 2, i, end), options);
    }
    return out;
  };
  const auto every_key = [&](index) { return layer.keys(); };
  const scattered_pages pages(layer, 16);

  std::vector<run> ours, plain;
  for (const int count : {1, 2, 3, 7}) {
    ours.push_back({threads_of(count), attend(regroup::par.with_threads(count), layer.tokens(), every_key)});
    plain.push_back({threads_of(count), plain_attention(layer, count)});
  }
  ours.push_back({"query by query", attend(regroup::par, 1, every_key)});
  ours.push_back({"in chunks of 100 queries", attend(regroup::par, 100, every_key)});
  ours.push_back(
      {"keys in scattered pages", attend(regroup::par, layer.tokens(), [&](index) { return pages.keys(); })});
  plain.push_back({"7 threads, once more", plain_attention(layer, 7)});

  std::printf("  regroup, beside its first run:\n");
  const bool same = compare(ours);
  std::printf("  a plain loop, keys split over threads, beside its first run:\n");
  compare(plain);
  claim(same, "regroup's results have the same bits, all of them");

  const regroup::attention_options causal{.mask = regroup::causal{}};
  const auto keys_so_far = [&](index end) { return layer.keys(0, end); };
  const auto prefill = attend(regroup::par, layer.tokens(), keys_so_far, causal);
  const auto chunked = attend(regroup::par, 100, keys_so_far, causal);
  const auto decoded = attend(regroup::par, 1, keys_so_far, causal);
  claim(different(prefill, chunked) == 0 && different(prefill, decoded) == 0,
        "causal: the prompt at once, in chunks, or token by token as it grows (decode) have the same bits");
  draw_bits(ours, plain, layer.channels());
}

}  // namespace demo

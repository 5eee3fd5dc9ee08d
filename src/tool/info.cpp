// SPDX-License-Identifier: Apache-2.0
// regroup info: describes this build and this machine; with --measure, the limits that speed is compared with.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

#include "../targets.hpp"
#include "commands.hpp"
#include "gpu.hpp"
#include "progress.hpp"
#include "regroup/executor.hpp"
#include "regroup/host/dispatch.hpp"
#include "regroup/math.hpp"
#include "regroup/memory.hpp"
#include "text.hpp"
#include "typed.hpp"

namespace regroup::tool {
namespace {

/// A name and a value that is already JSON.
using entry = std::pair<std::string, std::string>;

std::string rounded(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 2).ptr;
  return {text, end};
}

/// Strings and lists of strings without JSON's quotes and brackets; anything else unchanged.
std::string plain(std::string value) {
  const bool marked = value.front() == '"' || value.front() == '[';
  if (marked) std::erase_if(value, [](char c) { return std::strchr("[]\",", c) != nullptr; });
  return value;
}

template <class F>
double seconds_of(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The fastest of five runs, in seconds; fewer runs if they take half a second together.
template <class F>
double fastest(const F& f) {
  double best = 1e300, all = 0;
  for (int repeat = 0; repeat < 5 && all < 0.5; ++repeat) {
    const double seconds = seconds_of(f);
    best = std::min(best, seconds);
    all += seconds;
  }
  return best;
}

/// The instruction sets that the library has code for and this processor supports.
std::string instruction_sets() {
  std::vector<std::string> all;
  for (const auto t : {host::target::baseline, host::target::x86_64_v3, host::target::x86_64_v4,
                       host::target::x86_64_v4_vnni, host::target::x86_64_v4_bf16, host::target::x86_64_v4_amx}) {
    if (host::has(t)) all.push_back(json_string(host::name(t)));
  }
  return json_list(all);
}

/// The exclusive-or of some memory, read as fast as possible, which takes prefetches (twice the bandwidth on a Zen 4).
std::uint64_t read_all(const std::uint64_t* words, index count) {
  std::uint64_t result = 0;
  host::dispatch([&] {
    std::array<std::uint64_t, 64> sums{};
    for (index i = 0; i + 64 <= count; i += 64) {
      find_pages_ahead(words + i, 64 * sizeof *words);
      for (index j = 0; j < 64; j += 8) __builtin_prefetch(words + i + j + 512, 0, 2);
      for (std::size_t j = 0; j < 64; ++j) sums[j] ^= words[i + static_cast<index>(j)];
    }
    for (const std::uint64_t sum : sums) result ^= sum;
  });
  return result;
}

/// `rounds` times 128 multiply-adds on registers.
float multiply_add(index rounds) {
  float result = 0;
  host::dispatch([&] {
    std::array<float, 128> lane;
    for (std::size_t j = 0; j < 128; ++j) lane[j] = 1.0f + 1e-3f * static_cast<float>(j);
    for (index i = 0; i < rounds; ++i) {
      for (std::size_t j = 0; j < 128; ++j) lane[j] = math::fma(lane[j], 0.999f, 0.001f);
    }
    for (const float x : lane) result += x;
  });
  return result;
}

/// Takes the results of the loops above, so that no compiler removes them.
std::atomic<std::uint64_t> kept = 0;

/// Memory whose pages exist already, because the threads that use it have written to it.
template <class T>
std::vector<T> touched(const workers& ex, index count, T value) {
  std::vector<T> memory(static_cast<std::size_t>(count));
  constexpr index pieces = 256;
  ex.bulk(pieces, [&](index i) {
    std::fill(memory.begin() + i * count / pieces, memory.begin() + (i + 1) * count / pieces, value);
  });
  return memory;
}

/// How many rounds of multiply_add take a tenth of a second; without an fma instruction a round takes far longer.
index rounds_of_a_tenth() {
  for (index rounds = 1000;; rounds *= 4) {
    const double seconds = seconds_of([&] { kept = static_cast<std::uint64_t>(multiply_add(rounds)); });
    if (seconds >= 0.02) return std::max<index>(static_cast<index>(static_cast<double>(rounds) * 0.1 / seconds), 1);
  }
}

/// Measures the limits, in a few seconds whatever the processor and number of threads, on 256 MiB, more than any cache holds.
void measure(const workers& ex, std::vector<entry>& entries) {
  constexpr index words = index{1} << 25, pieces = 256, piece = words / pieces;
  const std::vector<std::uint64_t> memory = touched<std::uint64_t>(ex, words, 1);
  std::vector<std::uint64_t> other = touched<std::uint64_t>(ex, words, 2);
  const auto bytes = static_cast<double>(words * 8);
  const auto on_all_threads = [&](index n, const auto& f) { return fastest([&] { ex.bulk(n, f); }); };
  const auto report = [&](const char* name, double amount, double seconds) {
    entries.emplace_back(name, rounded(amount / seconds * 1e-9));
  };
  const auto copy = [&](index first, index count) {  // the C library's, which has non-temporal stores
    std::memcpy(other.data() + first, memory.data() + first, static_cast<std::size_t>(count) * 8);
  };
  report("read_gigabytes_per_second_one_thread", bytes, fastest([&] { kept = read_all(memory.data(), words); }));
  report("read_gigabytes_per_second", bytes,
         on_all_threads(pieces, [&](index i) { kept = read_all(memory.data() + i * piece, piece); }));
  report("copy_gigabytes_per_second_one_thread", 2 * bytes, fastest([&] { copy(0, words); }));
  const index threads = ex.concurrency();
  report("copy_gigabytes_per_second", 2 * bytes, on_all_threads(threads, [&](index i) {
           copy(words * i / threads, words * (i + 1) / threads - words * i / threads);
         }));
  kept = other[0];
  const auto flops_of = [](index rounds) { return 2 * 128 * static_cast<double>(rounds); };
  const index rounds = rounds_of_a_tenth();
  report("multiply_add_gigaflops_one_thread", flops_of(rounds),
         fastest([&] { kept = static_cast<std::uint64_t>(multiply_add(rounds)); }));
  const index cores = std::max<index>(std::thread::hardware_concurrency(), 1);
  const index share = std::max<index>(rounds * std::min(threads, cores) / threads, 1);  // threads may exceed cores
  report("multiply_add_gigaflops", flops_of(share * threads),
         on_all_threads(threads, [&](index) { kept = static_cast<std::uint64_t>(multiply_add(share)); }));
}

}  // namespace

namespace {

/// The GPU of --device cuda.
std::string gpu_text(bool json) {
  std::string why_not;
  const std::optional<gpu_description> g = find_gpu(why_not);
  if (!g) return json ? "null" : "none (" + why_not + ")";
  const std::string capability = std::to_string(g->major) + "." + std::to_string(g->minor);
  if (!json) {
    return g->name + ", compute capability " + capability + ", " + rounded(static_cast<double>(g->bytes) / 0x1p30) +
           " GiB";
  }
  return "{\"name\": " + json_string(g->name) + ", \"compute_capability\": " + json_string(capability) +
         ", \"memory_bytes\": " + std::to_string(g->bytes) + "}";
}

}  // namespace

int run(const info_command& c, const settings& s) {
  const workers ex(s);
  if (s.cuda) open_gpu();
  std::vector<entry> entries = {
      {"version", json_string(REGROUP_VERSION)},
      {"order_version", std::to_string(order_version)},
      {"tile_elements", std::to_string(tile_elements)},
      {"lanes", std::to_string(lanes)},
      {"instruction_sets", instruction_sets()},
      {"target", json_string(host::name(host::current_target()))},
      {"threads", std::to_string(ex.concurrency())},
      {"hardware_threads", std::to_string(std::thread::hardware_concurrency())},
      {"gpu", gpu_text(s.json)},
  };
  if (c.measure) {
    const progress shown(s, "regroup info --measure");
    measure(ex, entries);
  }
  json_object json;
  for (const auto& [name, value] : entries) {
    if (s.json) {
      json.add(name, value);
    } else {
      std::cout << name << ' ' << plain(value) << '\n';
    }
  }
  if (s.json) std::cout << json.text() << '\n';
  return 0;
}

}  // namespace regroup::tool

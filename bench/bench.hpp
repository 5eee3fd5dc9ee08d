// SPDX-License-Identifier: Apache-2.0
// What every benchmark program does: it is given one work by its name (`verb/what/type/shape`), a number of threads and
// a directory with the inputs as raw arrays, and times everybody who can do that work, ourselves and the machine's
// limit among them, with Google Benchmark, interleaved. With `--keep` each leaves its result beside the inputs; with
// `--memory` each is called once, and prints the bytes by which that call's resident memory peaked, a tab and its name.
// Called by bench.py, which knows the works, makes the inputs and joins what the programs of all peers say.
#pragma once

#include <benchmark/benchmark.h>
#include <omp.h>
#include <sys/mman.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <oneapi/tbb/global_control.h>

#include "regroup/host/par.hpp"
#include "regroup/host/seq.hpp"

namespace bench {

using regroup::index;

/// A fixed number of elements at the start of a page, in huge pages where they pay, which is where NumPy puts its
/// arrays and so every peer in Python (in small ones, all of them, with `--small-pages`). Copies are the same elements.
template <class T>
class array {
 public:
  explicit array(std::size_t n = 0)
      : data_(static_cast<T*>(std::aligned_alloc(huge, (n * sizeof(T) / huge + 1) * huge)), std::free), size_(n) {
    if (data_ == nullptr) throw std::bad_alloc();
    madvise(data_.get(), n * sizeof(T), MADV_HUGEPAGE);
  }
  [[nodiscard]] T* data() const noexcept { return data_.get(); }
  [[nodiscard]] index size() const noexcept { return static_cast<index>(size_); }
  [[nodiscard]] T* begin() const noexcept { return data(); }
  [[nodiscard]] T* end() const noexcept { return data() + size_; }
  T& operator[](index i) const noexcept { return data()[i]; }

 private:
  static constexpr std::size_t huge = std::size_t{1} << 21;
  std::shared_ptr<T[]> data_;
  std::size_t size_;
};

inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// 4096, 64K (65,536) or 64M (2^26).
inline index count_of(const std::string& text) {
  index n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  const char unit = *end;
  if (error != std::errc{} || n < 1)
    throw std::invalid_argument("a shape's numbers are like 1000, 64K or 64M: " + text);
  return unit == 'K' ? n << 10 : unit == 'M' ? n << 20 : n;
}

/// One line of the results: `softmax/rows/fp32/4096x1024`.
struct work {
  std::string verb, what, type, shape;
  explicit work(const std::string& name) {
    const auto parts = split(name, '/');
    if (parts.size() != 4) throw std::invalid_argument("a work is verb/what/type/shape; got " + name);
    verb = parts[0], what = parts[1], type = parts[2], shape = parts[3];
  }
  /// `4096x1024`, or `4096x1024_k50`, as {4096, 1024}; `64M` as {1, 64M}.
  [[nodiscard]] std::vector<index> extents() const {
    std::vector<index> all;
    for (const auto& part : split(split(shape, '_')[0], 'x')) all.push_back(count_of(part));
    return all;
  }
  [[nodiscard]] std::pair<index, index> rows_and_columns() const {
    const auto all = extents();
    if (all.size() == 1) return {1, all[0]};
    return {all[0], all[1]};
  }
  /// The number after a letter or word in `h32_kv8_n32768_d128`, or `otherwise` where it is missing.
  [[nodiscard]] index extent(std::string_view letter, index otherwise) const {
    for (const auto& part : split(shape, '_')) {
      const auto digit = part.find_first_of("0123456789");
      if (part.substr(0, digit) == letter) return count_of(part.substr(digit));
    }
    return otherwise;
  }
};

/// Calls f(first, last) for one contiguous piece of [0, n) a thread, on OpenMP's threads.
template <class F>
void in_pieces(int threads, index n, const F& f) {
  if (threads == 1) return f(index{0}, n);
#pragma omp parallel num_threads(threads)
  {
    const index i = omp_get_thread_num(), of = omp_get_num_threads();
    f(n * i / of, n * (i + 1) / of);
  }
}

/// Bytes by which resident memory peaks above what it is now.
template <class Body>
long peak_of(Body& body) {
  const auto kib = [](std::string_view key) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(key)) return std::stol(line.substr(key.size()));
    }
    return 0L;
  };
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins here
  const long before = kib("VmRSS:");
  body();
  return (kib("VmHWM:") - before) * 1024;
}

class program {
 public:
  bench::work work;
  int threads;

  program(int argc, char** argv)
      : work(argc > 3 ? argv[1] : throw std::invalid_argument("give WORK THREADS DIRECTORY [--keep|--memory]")),
        threads(std::stoi(argv[2])),
        directory_(argv[3]),
        keep_(argc > 4 && std::string_view(argv[4]) == "--keep"),
        memory_(argc > 4 && std::string_view(argv[4]) == "--memory"),
        limit_(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads)) {
    omp_set_num_threads(threads);
    benchmark::Initialize(&argc, argv);
  }
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  /// The array that bench.py left under this name.
  template <class T>
  [[nodiscard]] array<T> input(const std::string& name) const {
    const auto path = directory_ / name;
    array<T> x(std::filesystem::file_size(path) / sizeof(T));
    std::ifstream(path, std::ios::binary)
        .read(reinterpret_cast<char*>(x.data()),
              static_cast<std::streamsize>(x.size() * static_cast<index>(sizeof(T))));
    return x;
  }

  /// body() is one call of `who`; result() is a contiguous range of what it computed.
  template <class Body, class Result>
  void add(const std::string& who, Body body, Result result) {
    if (memory_) {
      const auto to = result();  // each is the first to touch its output
      const auto bytes = static_cast<std::size_t>(std::size(to)) * sizeof(*std::data(to));
      madvise(const_cast<void*>(static_cast<const void*>(std::data(to))), bytes, MADV_DONTNEED);
      std::printf("%ld\t%s\n", peak_of(body), who.c_str());
      return;
    }
    const auto run = [=, this, warm = false](benchmark::State& state) mutable {
      if (!warm) {
        body();
        if (keep_) save(who, result());
        warm = true;
      }
      for (auto _ : state) {
        body();
        benchmark::ClobberMemory();
      }
    };
    benchmark::RegisterBenchmark(who.c_str(), run)->UseRealTime()->Unit(benchmark::kNanosecond);
  }
  /// A limit of the machine: nobody asks for its result.
  template <class Body>
  void add_limit(const std::string& what, Body body) {
    add("limit " + what, std::move(body), [] { return std::span<const char>(); });
  }

  void run() const {
    if (!memory_) benchmark::RunSpecifiedBenchmarks();
  }

  /// f(executor) with one thread's executor, or that of all threads.
  template <class F>
  void with_executor(const F& f) const {
    if (threads == 1) {
      f(regroup::seq);
    } else {
      f(regroup::par.with_threads(threads));
    }
  }

 private:
  template <class Range>
  void save(const std::string& who, const Range& values) const {
    using element = std::remove_cvref_t<decltype(*std::data(values))>;
    std::ofstream file(directory_ / ("result of " + who), std::ios::binary);
    file.write(reinterpret_cast<const char*>(std::data(values)),
               static_cast<std::streamsize>(static_cast<std::size_t>(std::size(values)) * sizeof(element)));
  }

  std::filesystem::path directory_;
  bool keep_, memory_;
  tbb::global_control limit_;
};

/// main: contend(program) adds whoever can do the work. 2 where it cannot be done, with a sentence.
template <class Contend>
int main_of(int argc, char** argv, const Contend& contend) {
  try {
    program p(argc, argv);
    contend(p);
    p.run();
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 2;
  }
}

/// f(T{}) for the C++ type that a work's type names.
template <class F>
void with_type(const std::string& type, const F& f) {
  if (type == "fp32") return f(float{});
  if (type == "fp64") return f(double{});
  if (type == "fp16") return f(regroup::float16{});
  if (type == "bf16") return f(regroup::bfloat16{});
  throw std::invalid_argument("the types are fp32, fp64, fp16 and bf16; got " + type);
}

}  // namespace bench

// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share: a fuzzer's bytes read as choices, a law that ends the process where it fails, and files
// in memory. A target is one LLVMFuzzerTestOneInput, for libFuzzer and for replay.cpp alike.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "regroup/monoid.hpp"

namespace fuzz {

using regroup::index;

/// Ends the process, which both drivers report with the input, unless the law holds.
inline void require(bool holds, const std::string& law) {
  if (holds) return;
  std::fprintf(stderr, "a law fell: %s\n", law.c_str());
  std::abort();
}

/// Choices made by bytes, from the front; when they are used up, every choice is 0.
class choices {
 public:
  choices(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}

  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }
  /// 0 to n - 1.
  index below(index n) { return byte() % n; }
  bool one_in(index n) { return below(n) == n - 1; }
  template <class T, std::size_t N>
  const T& among(const T (&values)[N]) {
    return values[below(static_cast<index>(N))];
  }
  /// Any 64 bits.
  std::uint64_t word() {
    std::uint64_t w = 0;
    for (int i = 0; i < 8; ++i) w = w << 8 | byte();
    return w;
  }
  /// An integer that something might stumble over.
  index awkward() {
    constexpr index greatest = std::numeric_limits<index>::max();
    constexpr index values[] = {-1,
                                0,
                                1,
                                2,
                                7,
                                64,
                                65,
                                4095,
                                4096,
                                index{1} << 31,
                                index{1} << 32,
                                index{1} << 60,
                                index{1} << 62,
                                greatest - 1,
                                greatest,
                                -greatest - 1};
    const index at = below(17);
    return at == 16 ? static_cast<index>(word()) : values[at];
  }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] std::span<const std::uint8_t> rest() const { return bytes_; }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// A regular file without a name; `path` opens it.
class memory_file {
 public:
  explicit memory_file(std::span<const std::uint8_t> content) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    require(::write(descriptor_, content.data(), content.size()) == static_cast<ssize_t>(content.size()),
            "a file is made");
  }
  explicit memory_file(const std::string& content)
      : memory_file(std::span(reinterpret_cast<const std::uint8_t*>(content.data()), content.size())) {}
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;
  ~memory_file() { ::close(descriptor_); }
  /// To be read from its beginning.
  [[nodiscard]] int rewound() const {
    ::lseek(descriptor_, 0, SEEK_SET);
    return descriptor_;
  }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

/// From now on no file grows past `bytes`: an absurd output is an error of the call that makes it, not a full disk.
inline void limit_files(std::size_t bytes) {
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

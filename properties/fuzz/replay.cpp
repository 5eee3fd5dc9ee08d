// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without a fuzzer: replay CORPUS [MUTATIONS [SEED]] on every file of a folder, in the order of their
// names, and then on mutations of them, the same ones each time. The bytes of an input that fails are left in ./failed_input.
// replay FILE runs that file alone.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "choices.hpp"

extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "abort_on_error=1:allocator_may_return_null=1"; }

namespace {

using bytes = std::vector<std::uint8_t>;
bytes input;  // the one that runs

extern "C" void keep_input(int) {
  std::ofstream("failed_input", std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

void run(bytes next) {
  input = std::move(next);
  const bytes exact(input);  // so that a sanitizer knows its end
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

bytes read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// One to eight changes: a bit, a byte, a piece doubled, cut out, or taken from another input.
bytes mutated(bytes x, const bytes& other, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  const auto at = [](bytes& b, std::size_t i) { return b.begin() + static_cast<std::ptrdiff_t>(i); };
  for (std::size_t changes = 1 + below(8); changes > 0; --changes) {
    const std::size_t i = below(x.size());
    const std::size_t n = std::min(x.size() - i, 1 + below(16));
    constexpr std::uint8_t awkward[] = {0, 1, 0x7f, 0x80, 0xff, '-', ',', '9'};
    switch (below(6)) {
      case 0:
        if (!x.empty()) x[i] = static_cast<std::uint8_t>(x[i] ^ (1U << below(8)));
        break;
      case 1:
        if (!x.empty()) x[i] = awkward[below(8)];
        break;
      case 2:
        x.insert(at(x, i), static_cast<std::uint8_t>(random()));
        break;
      case 3:
        x.erase(at(x, i), at(x, i + n));
        break;
      case 4: {
        const bytes piece(at(x, i), at(x, i + n));
        x.insert(at(x, i), piece.begin(), piece.end());
        break;
      }
      default: {
        const std::size_t from = below(other.size());
        bytes piece(other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
        piece.resize(std::min<std::size_t>(piece.size(), 1 + below(32)));
        x.insert(at(x, i), piece.begin(), piece.end());
      }
    }
  }
  return x;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGABRT, keep_input);
  if (argc < 2) return 2;
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(argv[1])) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
  } else {
    files.emplace_back(argv[1]);
  }
  std::sort(files.begin(), files.end());
  std::vector<bytes> corpus;
  for (const auto& file : files) run(corpus.emplace_back(read(file)));
  const int mutations = argc > 2 ? std::stoi(argv[2]) : 0;
  std::mt19937 random(argc > 3 ? static_cast<unsigned>(std::stoul(argv[3])) : 1);
  for (int i = 0; i < mutations && !corpus.empty(); ++i) {
    const bytes& other = corpus[random() % corpus.size()];
    run(mutated(corpus[static_cast<std::size_t>(i) % corpus.size()], other, random));
  }
  std::printf("%zu inputs and %d mutations of them\n", corpus.size(), mutations);
  return corpus.empty() ? 1 : 0;
}

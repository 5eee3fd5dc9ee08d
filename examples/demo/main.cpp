// SPDX-License-Identifier: Apache-2.0
// The demo: what associativity buys, on the queries, keys, values and logits of a trained transformer.
// Every line that starts with "holds" was computed just now; the exit code is 1 if one of them did not.
//     demo [FOLDER FOR PICTURES]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

#include "demo.hpp"

namespace demo {
namespace {
int made = 0;
int failed = 0;
std::filesystem::path folder;
}  // namespace

void heading(const std::string& title) {
  std::printf("\n%s\n%s\n", title.c_str(), std::string(title.size(), '-').c_str());
}

void claim(bool holds, const std::string& what) {
  ++made;
  if (!holds) ++failed;
  std::printf("  %s  %s\n", holds ? "holds" : "FAILS", what.c_str());
  std::fflush(stdout);
}

std::string text_of(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

int claims_made() { return made; }
int claims_failed() { return failed; }

void set_picture_folder(const std::filesystem::path& where) {
  folder = std::filesystem::weakly_canonical(where);
  std::filesystem::create_directories(folder);
}
std::filesystem::path picture(const std::string& name) { return folder / name; }

}  // namespace demo

int main(int argc, char** argv) try {
  const auto start = std::chrono::steady_clock::now();
  const auto beside_the_program = std::filesystem::path(argv[0]).parent_path() / ".." / "demo";
  demo::set_picture_folder(argc > 1 ? std::filesystem::path(argv[1]) : beside_the_program);

  demo::section_split();
  demo::section_bits();
  demo::section_softmax();
  demo::section_logits();
  demo::section_laws();
  demo::section_memory();

  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("\n%d claims, %d failed, in %.0f s. Pictures: %s/*.svg\n", demo::claims_made(), demo::claims_failed(),
              seconds.count(), demo::picture("").parent_path().c_str());
  return demo::claims_failed() == 0 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "demo: %s\n", e.what());
  return 1;
}

// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .npy file. They give a sentence, or an array that is the same read from a mapped file and from a stream in any
// pieces, that fits its description, and whose description survives being written and read again.
#include <cstring>
#include <optional>

#include "choices.hpp"
#include "header.hpp"
#include "input.hpp"
#include "regroup/error.hpp"

namespace {

using namespace regroup::tool;
using fuzz::index;
using fuzz::require;

template <class F>
auto unless_refused(const std::string& name, const F& f) -> std::optional<decltype(f())> {
  try {
    return f();
  } catch (const regroup::format_error& e) {
    const std::string sentence = e.what();
    require(sentence.starts_with(name + ": "), "a sentence names the file: " + sentence);
    require(sentence.find('\n') == std::string::npos, "a sentence is one line: " + sentence);
    return {};
  }
}

void same_array(const input& a, const input& b) {
  require(a.type() == b.type() && a.shape() == b.shape(), "file and stream have one type and shape");
  require(a.about().bytes() == 0 || std::memcmp(a.data(), b.data(), a.about().bytes()) == 0,
          "file and stream have the same elements");
}

/// Elements on request, `piece` at a time.
std::vector<char> in_pieces(int descriptor, index piece) {
  stream s(descriptor, "stream");
  const std::size_t width = size_of(s.about().type);
  std::vector<char> all;
  while (s.remaining() > 0) {
    const auto count = std::min(piece, s.remaining());
    all.resize(all.size() + static_cast<std::size_t>(count) * width);
    s.read(all.data() + all.size() - static_cast<std::size_t>(count) * width, count);
  }
  return all;
}

void written_again(const description& about) {
  const std::string header = write_header(about.type, about.shape);
  require(header.size() % 64 == 0, "data begin at a multiple of 64 bytes");
  std::size_t at = 0;
  const byte_source source = [&](void* p, std::size_t n) {
    const std::size_t count = std::min(n, header.size() - at);
    std::memcpy(p, header.data() + at, count);
    at += count;
    return count;
  };
  std::size_t offset = 0;
  const description again = read_header(source, "again", offset);
  require(offset == header.size() && again.type == about.type && again.shape == about.shape && !again.swapped &&
              !again.fortran_order,
          "what was written is read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::memory_file file(std::span(data, size));
  const auto mapped = unless_refused(file.path(), [&] { return open_array(file.path()); });
  const auto spooled = unless_refused("stream", [&] { return stream(file.rewound(), "stream").spool(); });
  require(mapped.has_value() == spooled.has_value(), "a file is refused where the stream is");
  for (const fuzz::index piece : {1, 3, 1000}) {
    const auto pieces = unless_refused("stream", [&] { return in_pieces(file.rewound(), piece); });
    require(pieces.has_value() == mapped.has_value(), "a stream in pieces is refused where the file is");
    if (!pieces || pieces->empty()) continue;
    require(
        pieces->size() == mapped->about().bytes() && std::memcmp(pieces->data(), mapped->data(), pieces->size()) == 0,
        "pieces have the same elements");
  }
  if (!mapped) return 0;
  same_array(*mapped, *spooled);
  require(mapped->about().bytes() <= size, "no element comes from beyond the file");
  written_again(mapped->about());
  return 0;
}

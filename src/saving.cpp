// SPDX-License-Identifier: Apache-2.0
#include "regroup/saving.hpp"

#include <utility>

namespace regroup::streams {

namespace {

/// FNV-1a, 64 bits: enough to notice damage, not tampering.
std::uint64_t checksum(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte b : bytes) hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3;
  return hash;
}

}  // namespace

std::vector<std::byte> writer::finish() && {
  put(checksum(bytes_));
  return std::move(bytes_);
}

reader::reader(std::span<const std::byte> bytes) : bytes_(bytes) {
  constexpr std::size_t tail = sizeof(std::uint64_t);
  require(bytes.size() >= tail, "these bytes are too few to be something saved by this library");
  std::uint64_t expected = 0;
  std::memcpy(&expected, bytes.data() + bytes.size() - tail, tail);
  bytes_ = bytes.first(bytes.size() - tail);
  require(checksum(bytes_) == expected, "the checksum of these saved bytes does not match; they are damaged or cut off");
}

void reader::require(bool holds, const char* what) {
  if (!holds) throw_format(what);
}

void reader::take_bytes(void* to, std::size_t count) {
  require(count <= bytes_.size(), "these saved bytes end too early");
  std::memcpy(to, bytes_.data(), count);
  bytes_ = bytes_.subspan(count);
}

}  // namespace regroup::streams

// SPDX-License-Identifier: Apache-2.0
#include "input.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "files.hpp"
#include "header.hpp"
#include "regroup/error.hpp"

namespace regroup::tool {
namespace {

/// Reads until `n` bytes are there or the input ends.
std::size_t read_fully(int descriptor, const std::string& name, void* destination, std::size_t n) {
  std::size_t done = 0;
  while (done < n) {
    const ssize_t got = ::read(descriptor, static_cast<char*>(destination) + done, n - done);
    if (got == 0) break;
    if (got < 0 && !may_go_on(descriptor, POLLIN)) throw_format(name + ": cannot be read: " + reason(errno));
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  return done;
}

/// Reverses the bytes of each element, if `about` says so.
void to_native(void* data, const description& about, index count) {
  if (!about.swapped) return;
  const std::size_t width = size_of(about.type);
  auto* bytes = static_cast<unsigned char*>(data);
  for (index i = 0; i < count; ++i, bytes += width) {
    for (std::size_t j = 0; j < width / 2; ++j) std::swap(bytes[j], bytes[width - 1 - j]);
  }
}

[[noreturn]] void too_short(const std::string& name, const description& about, std::size_t actual) {
  throw_format(name + ": the data end early: the shape " + to_string(about.shape) + " of " + name_of(about.type) +
               " needs " + std::to_string(about.bytes()) + " bytes, found " + std::to_string(actual));
}

std::shared_ptr<void> allocate(const std::string& name, std::size_t bytes) {
  const std::size_t rounded = (bytes + 63) / 64 * 64;
  void* const p = std::aligned_alloc(64, rounded > 0 ? rounded : 64);
  if (p == nullptr) {
    throw_format(name + ": there is not enough memory for a copy of its " + std::to_string(bytes) +
                 " bytes; one in this machine's byte order, with data at a multiple of 64, is not copied");
  }
  return {p, std::free};
}

/// Maps `bytes` bytes of an open file, from `offset` on.
std::shared_ptr<const void> map(int descriptor, const std::string& name, std::size_t offset, std::size_t bytes) {
  if (bytes == 0) return allocate(name, 0);
  const std::size_t length = offset + bytes;
  void* const base = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (base == MAP_FAILED) throw_format(name + ": cannot be mapped into memory: " + reason(errno));
  remember_mapping(base, length, name);
  return {static_cast<const char*>(base) + offset, [base, length](const void*) {
            forget_mapping(base);
            ::munmap(base, length);
          }};
}

}  // namespace

stream::stream(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {
  std::size_t offset = 0;
  about_ = read_header([this](void* p, std::size_t n) { return read_fully(descriptor_, name_, p, n); }, name_, offset);
  remaining_ = about_.size();
}

void stream::read(void* destination, index count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * size_of(about_.type);
  const std::size_t got = read_fully(descriptor_, name_, destination, bytes);
  if (got < bytes) {
    const index before = about_.size() - remaining_;
    too_short(name_, about_, static_cast<std::size_t>(before) * size_of(about_.type) + got);
  }
  to_native(destination, about_, count);
  remaining_ -= count;
}

input stream::spool() {
  const unnamed_file file;
  const std::size_t width = size_of(about_.type);
  constexpr std::size_t piece = std::size_t{1} << 20;
  std::vector<std::uint64_t> buffer(piece / sizeof(std::uint64_t));
  const std::size_t bytes = static_cast<std::size_t>(remaining_) * width;
  while (remaining_ > 0) {
    const index count = std::min(remaining_, static_cast<index>(piece / width));
    read(buffer.data(), count);
    file.write(buffer.data(), static_cast<std::size_t>(count) * width);
  }
  description about = about_;
  about.swapped = false;
  return {name_, about, map(file.descriptor(), name_, 0, bytes)};
}

input open_array(const std::string& path) {
  if (path == "-") return stream(STDIN_FILENO).spool();
  const file_descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw_format(path + ": cannot be opened: " + reason(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_format(path + ": cannot be examined: " + reason(errno));
  if (S_ISDIR(status.st_mode)) throw_format(path + ": is a directory; expected a .npy file");
  if (!S_ISREG(status.st_mode)) return stream(file.get(), path).spool();

  std::size_t offset = 0;
  const auto read = [&](void* p, std::size_t n) { return read_fully(file.get(), path, p, n); };
  description about = read_header(read, path, offset);
  const std::size_t bytes = about.bytes();
  const auto length = static_cast<std::size_t>(status.st_size);
  const std::size_t actual = length > offset ? length - offset : 0;
  if (actual < bytes) too_short(path, about, actual);
  const std::shared_ptr<const void> data = map(file.get(), path, offset, bytes);
  const bool misaligned = reinterpret_cast<std::uintptr_t>(data.get()) % size_of(about.type) != 0;
  if (!about.swapped && !misaligned) return {path, about, data};
  const std::shared_ptr<void> copy = allocate(path, bytes);
  std::memcpy(copy.get(), data.get(), bytes);
  to_native(copy.get(), about, about.size());
  about.swapped = false;
  return {path, about, copy};
}

}  // namespace regroup::tool

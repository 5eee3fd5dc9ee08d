// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "header.hpp"
#include "regroup/error.hpp"

namespace regroup::tool {
namespace {

[[noreturn]] void cannot_write(const std::string& path, const std::string& why) {
  throw_format(path + ": cannot be written: " + why);
}

/// A device, pipe or socket cannot be replaced by renaming; it is written into at the end.
bool is_special(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  if (S_ISDIR(status.st_mode)) cannot_write(path, "it is a directory; give a file name");
  return !S_ISREG(status.st_mode);
}

}  // namespace

result::result(std::string path, element type, extents shape)
    : path_(std::move(path)), type_(type), shape_(std::move(shape)), header_(write_header(type, shape_)) {
  if (!path_.empty() && !is_special(path_)) file_ = std::make_unique<file_beside>(path_);
  map_bytes_ = header_.size() + static_cast<std::size_t>(size()) * size_of(type_);
  void* const map = ::mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  map_ = map;
  std::memcpy(map_, header_.data(), header_.size());
  data_ = static_cast<char*>(map_) + header_.size();
}

result::~result() {
  if (map_ != nullptr) ::munmap(map_, map_bytes_);
}

void result::finish() {
  if (path_.empty()) return;
  if (file_) return write_fully(file_->descriptor(), path_, map_, map_bytes_);
  const file_descriptor special(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  if (special.get() < 0) cannot_write(path_, reason(errno));
  write_fully(special.get(), path_, map_, map_bytes_);
}

void result::appear() {
  if (file_) file_->become_target();
}

result& results::add(std::string path, element type, extents shape) {
  return all_.emplace_back(std::move(path), type, std::move(shape));
}

void results::commit() {
  for (result& r : all_) r.finish();
  for (result& r : all_) r.appear();
}

}  // namespace regroup::tool

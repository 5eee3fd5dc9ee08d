// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
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

/// Whether a descriptor is writable and was open before the program began; those that it opens itself are closed on exec.
bool is_for_writing(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0 && (::fcntl(descriptor, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

}  // namespace

bool is_special(const std::string& path) {
  if (const int descriptor = descriptor_named(path); descriptor >= 0) {
    if (is_for_writing(descriptor)) return true;
    cannot_write(path, "descriptor " + std::to_string(descriptor) + " is not open for writing; give a file name");
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  if (S_ISDIR(status.st_mode)) cannot_write(path, "it is a directory; give a file name");
  return !S_ISREG(status.st_mode);
}

namespace {

bool lacks(int descriptor, std::size_t bytes) {
  struct statvfs disk {};
  return ::fstatvfs(descriptor, &disk) == 0 && bytes / std::max(disk.f_frsize, 1ul) > disk.f_bfree;
}

void reserve(int descriptor, const std::string& path, std::size_t bytes) {
  const auto problem_of = [](int result) { return result == 0 ? 0 : errno; };
  const auto allocate = [&](off_t size) {  // posix_fallocate would write into every block where there is no other way
    int problem = problem_of(::fallocate(descriptor, 0, 0, size));
    while (problem == EINTR) problem = problem_of(::fallocate(descriptor, 0, 0, size));
    return problem;
  };
  const auto size = static_cast<off_t>(bytes);
  int problem = allocate(1);
  // A stream's header may claim anything: what cannot fit is not begun, for others need the space meanwhile.
  if (problem == 0) problem = lacks(descriptor, bytes) ? ENOSPC : allocate(size);
  if (problem == EOPNOTSUPP) problem = problem_of(::ftruncate(descriptor, size));
  if (problem != 0) cannot_write(path, reason(problem) + " (it needs " + std::to_string(bytes) + " bytes)");
}

}  // namespace

result::result(std::string path, element type, extents shape)
    : path_(std::move(path)), type_(type), shape_(std::move(shape)), header_(write_header(type, shape_)) {
  if (!fits_memory(type_, shape_)) {
    throw_shape((path_.empty() ? std::string("the result") : path_) + ": the shape " + to_string(shape_) + " of " +
                name_of(type_) + " holds more elements than an address space");
  }
  const std::size_t bytes = static_cast<std::size_t>(size()) * size_of(type_);
  map_bytes_ = header_.size() + bytes;
  const bool in_file = !path_.empty() && !is_special(path_);
  if (in_file) {
    file_ = std::make_unique<file_beside>(path_);
    reserve(file_->descriptor(), path_, map_bytes_);
  }
  void* const map = ::mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE,
                           in_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, in_file ? file_->descriptor() : -1, 0);
  if (map == MAP_FAILED) {
    if (in_file) cannot_write(path_, reason(errno));
    throw_shape((path_.empty() ? std::string("the result") : path_) + ": there is not enough memory for the " +
                std::to_string(bytes) + " bytes of the shape " + to_string(shape_) + " of " + name_of(type_) +
                "; name a file with -o, and they are on the disk");
  }
  map_ = map;
  std::memcpy(map_, header_.data(), header_.size());
  data_ = static_cast<char*>(map_) + header_.size();
}

result::~result() {
  if (map_ != nullptr) ::munmap(map_, map_bytes_);
}

void result::done_with(index count) {
  const std::size_t bytes = header_.size() + static_cast<std::size_t>(count) * size_of(type_);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t end = bytes / page * page;
  if (!file_ || end <= released_) return;  // without a file the elements would be lost
  ::madvise(static_cast<char*>(map_) + released_, end - released_, MADV_DONTNEED);
  released_ = end;
}

void result::finish() {
  if (path_.empty() || file_) return;
  if (const int descriptor = descriptor_named(path_); descriptor >= 0) {
    return write_fully(descriptor, path_, map_, map_bytes_);
  }
  const file_descriptor special(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  if (special.get() < 0) cannot_write(path_, reason(errno));
  write_fully(special.get(), path_, map_, map_bytes_);
}

void result::appear() {
  if (file_) file_->become_target();
}

result& results::add(std::string path, element type, extents shape) {
  for (const result& other : all_) {
    if (path.empty() || other.path().empty() || !lead_to_one_file(path, other.path())) continue;
    throw_argument(path + ": leads to the same file as another output, " + other.path() + "; give each its own");
  }
  return all_.emplace_back(std::move(path), type, std::move(shape));
}

void results::commit() {
  for (result& r : all_) r.finish();
  take_last_word();
  const signals_wait until_all_have_their_names;
  for (result& r : all_) r.appear();
}

}  // namespace regroup::tool

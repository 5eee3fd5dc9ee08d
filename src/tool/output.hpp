// SPDX-License-Identifier: Apache-2.0
// Output arrays. A result is memory to compute into. With a path, it is the mapped data of a temporary .npy file beside that
// path, which takes the path's name when `commit` is called: an output file appears whole or not at all. Since it is mapped, an
// output may be larger than memory, and pages are written to disk while others are computed.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "array.hpp"
#include "files.hpp"

namespace regroup::tool {

/// One array being computed, C order, this machine's byte order, 64-byte aligned.
class result {
 public:
  /// Without a path the array is plain memory. Space on the disk is reserved here, so that a full disk is an error now and not
  /// a fault later. Throws format_error with a sentence that names the file.
  result(std::string path, element type, extents shape);
  result(const result&) = delete;
  result& operator=(const result&) = delete;
  ~result();

  const std::string& path() const { return path_; }
  element type() const { return type_; }
  const extents& shape() const { return shape_; }
  index size() const { return count_of(shape_); }
  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

  /// Says that the first `count` elements will not be used again: if the output is a file, their pages leave memory.
  void done_with(index count);

 private:
  friend class results;
  void finish();  // puts all bytes into the file
  void appear();  // gives the file its name

  std::string path_;
  element type_;
  extents shape_;
  std::string header_;
  std::unique_ptr<file_beside> file_;
  void* map_ = nullptr;
  std::size_t map_bytes_ = 0;
  void* data_ = nullptr;
  std::size_t released_ = 0;  // bytes of the map
};

/// Whether an output is written into at the end and not replaced by renaming. That is so for a device, pipe or socket, which
/// cannot be replaced, and for an open descriptor, whose file must not be.
bool is_special(const std::string& path);

/// The outputs of one command. All are complete before the first takes its name; when the system puts them on the disk is its
/// own affair.
class results {
 public:
  result& add(std::string path, element type, extents shape);
  /// Makes every output with a path appear. Throws format_error; then the outputs that have not appeared yet never do.
  void commit();

 private:
  std::deque<result> all_;
};

}  // namespace regroup::tool

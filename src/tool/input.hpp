// SPDX-License-Identifier: Apache-2.0
// Input arrays: a .npy file mapped into memory read-only, or standard input read as it arrives. A file in this machine's byte
// order, with its elements aligned, is not copied: data() points into the map.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "array.hpp"

namespace regroup::tool {

/// A read-only array with its name for error messages. Copies share the memory.
class input {
 public:
  /// Elements that are in memory already, in this machine's byte order.
  input(std::string name, description about, std::shared_ptr<const void> data)
      : name_(std::move(name)), about_(std::move(about)), data_(std::move(data)) {}

  const std::string& name() const { return name_; }
  element type() const { return about_.type; }
  const extents& shape() const { return about_.shape; }
  index size() const { return about_.size(); }
  const description& about() const { return about_; }
  /// The first element in memory order, in this machine's byte order; aligned for the element type.
  const void* data() const { return data_.get(); }

 private:
  std::string name_;
  description about_;
  std::shared_ptr<const void> data_;
};

/// Opens `path`, or standard input for "-". Regular files are mapped; anything else is written to an unnamed temporary file
/// (in TMPDIR or /tmp), which is mapped. A file in the other byte order, or with misaligned data, is copied, which takes as
/// much memory as the array. Throws format_error with a sentence that names the file.
input open_array(const std::string& path);

/// Standard input as a stream: the header is read at once, elements on request, in the file's order.
class stream {
 public:
  /// Reads the header of the array on file descriptor `descriptor`.
  explicit stream(int descriptor, std::string name = "standard input");

  const std::string& name() const { return name_; }
  const description& about() const { return about_; }
  /// Elements not yet read.
  index remaining() const { return remaining_; }
  /// Fills `destination` with the next `count` elements in this machine's byte order, waiting for whatever sizes the
  /// pieces arrive in. Throws format_error where the input ends before them.
  void read(void* destination, index count);
  /// Writes everything not yet read to an unnamed temporary file and maps that.
  input spool();

 private:
  int descriptor_;
  std::string name_;
  description about_;
  index remaining_ = 0;
};

}  // namespace regroup::tool

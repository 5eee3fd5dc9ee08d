// SPDX-License-Identifier: Apache-2.0
// The input X of commands whose output has X's shape: a mapped file, or standard input. A stream in C order is read into the
// output's memory and computed there in place, so it needs no temporary file and no memory but the output's.
#pragma once

#include <optional>
#include <string>

#include "input.hpp"
#include "output.hpp"

namespace regroup::tool {

class arriving {
 public:
  /// Opens `path`, or reads the header on standard input for "-"; a stream in Fortran order is spooled here.
  explicit arriving(const std::string& path);

  const std::string& name() const { return stream_ ? stream_->name() : whole_->name(); }
  const description& about() const { return stream_ ? stream_->about() : whole_->about(); }
  element type() const { return about().type; }
  const extents& shape() const { return about().shape; }
  index size() const { return about().size(); }
  /// Whether elements are still to be read.
  bool is_stream() const { return stream_.has_value(); }

  /// The next `count` elements of a stream, of X's type.
  void read(void* to, index count) { stream_->read(to, count); }
  /// All elements: the map, or those of the stream, in y's memory and of y's type. Where y's type is int64 and X's is not, y is
  /// not written: this is a count, which looks at no element.
  input whole(const result& y);

 private:
  std::optional<stream> stream_;
  std::optional<input> whole_;
};

}  // namespace regroup::tool

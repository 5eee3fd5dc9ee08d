// SPDX-License-Identifier: Apache-2.0
// What regroup throws. Every message is one sentence that says what was wrong and what would be right.
#pragma once

#include <limits>
#include <stdexcept>
#include <string>

namespace regroup {

/// The base of everything this library throws itself. An exception thrown by a user's operator passes through unchanged.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Extents, ranks or axes of two arguments do not fit together.
struct shape_error : error {
  using error::error;
};

/// A value lies outside its range: a target past the classes, a thread count below one, a page outside its pool.
struct argument_error : error {
  using error::error;
};

/// Segment offsets that decrease, do not begin at 0 or do not end at the number of elements.
struct offsets_error : error {
  using error::error;
};

/// An output shares memory with an input without being exactly that input, or two of its elements are one place.
struct overlap_error : error {
  using error::error;
};

/// Bytes that are not what they claim to be: a truncated file, a wrong checksum, another order version.
struct format_error : error {
  using error::error;
};

[[noreturn]] void throw_shape(const std::string& sentence);
[[noreturn]] void throw_argument(const std::string& sentence);
[[noreturn]] void throw_offsets(const std::string& sentence);
[[noreturn]] void throw_overlap(const std::string& sentence);
[[noreturn]] void throw_format(const std::string& sentence);
[[noreturn]] void throw_not_finite(const std::string& what, double got, double largest);

/// Throws argument_error, "`what` must be finite", for a number that is not, as a Real.
template <class Real>
void require_finite_as(double x, const std::string& what) {
  constexpr auto largest = static_cast<double>(std::numeric_limits<Real>::max());
  if (!(-largest <= x && x <= largest)) throw_not_finite(what, x, largest);
}

}  // namespace regroup

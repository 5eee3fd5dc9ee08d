// SPDX-License-Identifier: Apache-2.0
#include "regroup/error.hpp"

#include <array>
#include <charconv>

namespace regroup {

void throw_shape(const std::string& sentence) { throw shape_error(sentence); }
void throw_argument(const std::string& sentence) { throw argument_error(sentence); }
void throw_offsets(const std::string& sentence) { throw offsets_error(sentence); }
void throw_overlap(const std::string& sentence) { throw overlap_error(sentence); }
void throw_format(const std::string& sentence) { throw format_error(sentence); }
void throw_not_finite(const std::string& what, double got, double largest) {
  const auto text = [](double x) {
    if (x != x) return std::string("nan");
    std::array<char, 32> digits{};
    return std::string(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), x).ptr);
  };
  throw_argument(what + " must be finite, from -" + text(largest) + " to " + text(largest) + "; got " + text(got));
}

}  // namespace regroup

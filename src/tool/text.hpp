// SPDX-License-Identifier: Apache-2.0
// Results as text: every number with the fewest digits that read back as the same value, NAME VALUE lines or JSON.
#pragma once

#include <string>
#include <vector>

#include "output.hpp"

namespace regroup::tool {

/// Element `i` of an array: "1.5", "-0.0", "nan", "-inf", "7", "true"; for JSON "NaN", "-Infinity".
std::string number_text(const result& r, index i, bool json);

/// All elements in C order, separated by spaces.
std::string plain_text(const result& r);

/// A number, or nested lists of the array's shape.
std::string json_text(const result& r);

/// A number for JSON, with the digits that read back as the same value; NaN and infinities as Python writes them.
std::string json_number(double x);

/// `s` as a JSON string. Bytes that are not UTF-8 become \udc80 to \udcff, which Python's os.fsencode converts back.
std::string json_string(const std::string& s);

/// An object of JSON; values are JSON already.
class json_object {
 public:
  json_object& add(const std::string& name, const std::string& value);
  [[nodiscard]] std::string text() const { return '{' + members_ + '}'; }

 private:
  std::string members_;
};
/// A list of JSON.
std::string json_list(const std::vector<std::string>& values);

/// {"path": ..., "type": ..., "shape": [...]}: an output file.
std::string json_file(const result& r);

}  // namespace regroup::tool

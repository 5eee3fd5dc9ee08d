// SPDX-License-Identifier: Apache-2.0
// Reads the texts of one command's options as values. Every error is a usage_error with a sentence.
#pragma once

#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "command_line.hpp"

namespace regroup::tool {

/// All of `text` as a number, with at most one sign. Beyond the range of double it is infinite; too small a number is 0.
template <class Number>
bool read_number(std::string_view text, Number& value) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return false;
  if constexpr (std::is_floating_point_v<Number>) {
    if (problem == std::errc::result_out_of_range) {  // too large or too small: from_chars does not say which
      value = static_cast<Number>(std::strtod(std::string(text).c_str(), nullptr));
      return true;
    }
  }
  return problem == std::errc{};
}

/// The parts between commas.
std::vector<std::string> fields_of(const std::string& text);

/// "from 1 to 2147483647".
template <class Number>
std::string range_from(Number least) {
  return "from " + std::to_string(least) + " to " + std::to_string(std::numeric_limits<Number>::max());
}

struct words {
  std::string command;

  [[noreturn]] void wrong(const std::string& sentence) const { throw usage_error(sentence, command); }
  [[noreturn]] void wrong_value(const std::string& option, const std::string& wanted, const std::string& text) const {
    wrong(option + " needs " + wanted + "; got '" + text + "'");
  }
  template <class Number>
  Number integer(const std::string& option, const std::string& text, Number least, const std::string& wanted) const {
    Number value = 0;
    if (!read_number(text, value) || value < least) wrong_value(option, wanted, text);
    return value;
  }
  template <class Number>
  Number integer(const std::string& option, const std::string& text, Number least) const {
    return integer(option, text, least, "a whole number " + range_from(least));
  }
  double finite(const std::string& option, const std::string& text) const;
  double positive(const std::string& option, const std::string& text) const;
  std::vector<int> axes(const std::string& text) const;
  std::optional<int> axis(const std::string& text) const;
  attention_window window(const std::string& text) const;

  void required(const std::string& what, const std::string& name) const;
  /// A file name. One that looks like an option means that the value was forgotten.
  void file(const std::string& what, const std::string& name) const;
  void output(const std::string& what, const std::string& name) const;
  /// Checks that two outputs, if both are given, are not the same file.
  void distinct(const std::string& a, const std::string& b) const;
};

}  // namespace regroup::tool

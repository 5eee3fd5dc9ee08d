// SPDX-License-Identifier: Apache-2.0
#include "text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "regroup/error.hpp"

namespace regroup::tool {
namespace {

template <class Real>
std::string real_text(Real x, bool json) {
  if (std::isnan(x)) return json ? "NaN" : "nan";
  if (std::isinf(x)) return std::string(x < 0 ? "-" : "") + (json ? "Infinity" : "inf");
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, x).ptr;
  std::string text(digits, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";  // so that -0.0 is still read as a negative zero
  return text;
}

/// The length in bytes of the UTF-8 character that `s` begins with, or 0. (The Unicode Standard, table 3-7.)
std::size_t character_length(std::string_view s) {
  const auto byte = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (first < 0xc2 || first > 0xf4 || byte(1) < least || byte(1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return length;
}

void append_lists(std::string& text, const result& r, int axis, index& at) {
  if (axis == r.shape().size()) {
    text += number_text(r, at++, true);
    return;
  }
  text += '[';
  for (index i = 0; i < r.shape()[axis]; ++i) {
    if (i > 0) text += ", ";
    append_lists(text, r, axis + 1, at);
  }
  text += ']';
}

}  // namespace

std::string number_text(const result& r, index i, bool json) {
  switch (r.type()) {
    case element::boolean:
      return r.as<std::uint8_t>()[i] != 0 ? "true" : "false";
    case element::int32:
      return std::to_string(r.as<std::int32_t>()[i]);
    case element::int64:
      return std::to_string(r.as<std::int64_t>()[i]);
    case element::float16:
      return real_text(static_cast<float>(r.as<regroup::float16>()[i]), json);
    case element::bfloat16:
      return real_text(static_cast<float>(r.as<regroup::bfloat16>()[i]), json);
    case element::float32:
      return real_text(r.as<float>()[i], json);
    case element::float64:
      return real_text(r.as<double>()[i], json);
  }
  return {};
}

std::string plain_text(const result& r) {
  std::string text;
  for (index i = 0; i < r.size(); ++i) {
    if (i > 0) text += ' ';
    text += number_text(r, i, false);
  }
  return text;
}

std::string json_text(const result& r) {
  constexpr index most_empty_lists = index{1} << 20;
  index lists = 1;
  for (int axis = 0; axis < r.shape().size() && r.shape()[axis] > 0; ++axis) lists *= r.shape()[axis];
  if (r.size() == 0 && lists > most_empty_lists) {
    throw_shape("--json would print " + std::to_string(lists) + " empty lists for the shape " + to_string(r.shape()) +
                "; write the result to a file with -o");
  }
  std::string text;
  index at = 0;
  append_lists(text, r, 0, at);
  return text;
}

std::string json_number(double x) { return real_text(x, true); }

std::string json_string(const std::string& s) {
  std::string text = "\"";
  for (std::size_t at = 0; at < s.size();) {
    const auto byte = static_cast<unsigned char>(s[at]);
    const std::size_t length = character_length(std::string_view(s).substr(at));
    if (length == 0 || byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", length == 0 ? 0xdc00u + byte : byte);
      text += escape;
    } else {
      if (byte == '"' || byte == '\\') text += '\\';
      text += s.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return text + '"';
}

std::string json_file(const result& r) {
  std::string text =
      "{\"path\": " + json_string(r.path()) + ", \"type\": " + json_string(name_of(r.type())) + ", \"shape\": [";
  for (int axis = 0; axis < r.shape().size(); ++axis) text += (axis > 0 ? ", " : "") + std::to_string(r.shape()[axis]);
  return text + "]}";
}

}  // namespace regroup::tool

// SPDX-License-Identifier: Apache-2.0
#include "text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "numbers.hpp"
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
  return with_any(r.type(), [&]<class T>(std::type_identity<T>) -> std::string {
    const T x = r.as<T>()[i];
    if constexpr (std::is_same_v<T, boolean>) {
      return x ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
      return std::to_string(x);
    } else {
      return real_text(regroup::widen(x), json);
    }
  });
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

json_object& json_object::add(const std::string& name, const std::string& value) {
  members_ += (members_.empty() ? "" : ", ") + json_string(name) + ": " + value;
  return *this;
}

std::string json_list(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
  return '[' + text + ']';
}

std::string json_file(const result& r) {
  std::vector<std::string> extents;
  for (const index extent : r.shape()) extents.push_back(std::to_string(extent));
  return json_object()
      .add("path", json_string(r.path()))
      .add("type", json_string(name_of(r.type())))
      .add("shape", json_list(extents))
      .text();
}

}  // namespace regroup::tool

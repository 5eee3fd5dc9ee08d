// SPDX-License-Identifier: Apache-2.0
// A reader of the small part of Python that a .npy dictionary uses; it never guesses, and every refusal says why.
#include "header.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "regroup/error.hpp"

namespace regroup::tool {
namespace {

constexpr std::size_t longest_header = std::size_t{1} << 20;  // NumPy itself stops at 10,000 bytes

/// What NumPy calls a type; of several names the first is written.
struct type_code {
  element type;
  std::string_view code;
};
constexpr type_code type_codes[] = {
    {element::float16, "f2"}, {element::bfloat16, "V2"}, {element::float32, "f4"},
    {element::float64, "f8"}, {element::int32, "i4"},    {element::int64, "i8"},
    {element::boolean, "b1"}, {element::boolean, "?"},   {element::bfloat16, "bfloat16"}};

[[noreturn]] void refuse(const std::string& name, const std::string& why) { throw_format(name + ": " + why); }

/// Bytes of the file, to be shown in a message: '?' for any byte that is not printable.
std::string quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text.substr(0, 60)) result += c >= ' ' && c < 127 ? c : '?';
  return result + (text.size() > 60 ? "...'" : "'");
}

class dictionary_parser {
 public:
  dictionary_parser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  description parse() {
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        once(has_type_, key);
        descr();
      } else if (key == "fortran_order") {
        once(has_order_, key);
        result_.fortran_order = truth();
      } else if (key == "shape") {
        once(has_shape_, key);
        shape();
      } else {
        refuse(name_, "the header has an unknown key " + quoted(key) + "; it must have descr, fortran_order and shape");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) malformed("the end of the header");
    if (!has_type_) missing("descr");
    if (!has_order_) missing("fortran_order");
    if (!has_shape_) missing("shape");
    check_size();
    return result_;
  }

 private:
  [[noreturn]] void malformed(const std::string& wanted) const {
    refuse(name_, "the header is malformed at byte " + std::to_string(at_) + ": expected " + wanted + ", found " +
                      (at_ < text_.size() ? quoted(text_.substr(at_, 20)) : std::string("its end")));
  }
  [[noreturn]] void missing(const std::string& key) const {
    refuse(name_, "the header lacks the key '" + key + "'; it must have descr, fortran_order and shape");
  }
  void once(bool& seen, const std::string& key) const {
    if (seen) refuse(name_, "the header gives the key '" + key + "' twice");
    seen = true;
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n\f\v").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) malformed(std::string("'") + c + "'");
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::string string() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == 'u') ++at_;  // Python 2 wrote u'descr'
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') malformed("a quoted string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) malformed("a string that ends");
    std::string result(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return result;
  }

  bool truth() {
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    malformed("True or False");
  }

  void descr() {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) {
      std::size_t end = at_;
      for (int depth = 0; end < text_.size() && (end == at_ || depth > 0); ++end) {
        depth += (text_[end] == '[' || text_[end] == '(') - (text_[end] == ']' || text_[end] == ')');
      }
      refuse(name_, "a structured element type " + quoted(text_.substr(at_, end - at_)) + " is not supported; " + supported());
    }
    const std::string text = string();
    std::string_view code = text;
    char order = '=';
    if (!code.empty() && std::string_view("<>=|").find(code[0]) != std::string_view::npos) {
      order = code[0];
      code.remove_prefix(1);
    }
    const auto type = type_of(code);
    if (!type) refuse(name_, "the element type " + quoted(text) + " is not supported; " + supported());
    result_.type = *type;
    constexpr char other = std::endian::native == std::endian::little ? '>' : '<';
    result_.swapped = order == other && size_of(*type) > 1;
  }

  static std::optional<element> type_of(std::string_view code) {
    const auto* const known = std::ranges::find(type_codes, code, &type_code::code);
    return known == std::end(type_codes) ? std::nullopt : std::optional(known->type);
  }
  static std::string supported() {
    return "supported are float16, bfloat16 (as the 2-byte void type), float32, float64, int32, int64 and bool";
  }

  void shape() {
    expect('(');
    while (!accept(')')) {
      skip_space();
      index extent = 0;
      const char* const first = text_.data() + at_;
      const auto [end, problem] = std::from_chars(first, text_.data() + text_.size(), extent);
      if (problem == std::errc::result_out_of_range) {
        refuse(name_, "an extent of the shape does not fit 64 bits: " + quoted(text_.substr(at_, 40)));
      }
      if (problem != std::errc{} || (*first == '0' && end != first + 1)) malformed("an extent of the shape");
      at_ += static_cast<std::size_t>(end - first);
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote 3L
      if (extent < 0) refuse(name_, "the shape has a negative extent " + std::to_string(extent));
      if (result_.shape.size() == max_rank) {
        refuse(name_, "the array has more than " + std::to_string(max_rank) + " axes");
      }
      result_.shape.push_back(extent);
      if (accept(',')) continue;
      if (result_.shape.size() == 1) malformed("a comma: a shape of one axis is written (3,)");
      expect(')');
      break;
    }
  }

  void check_size() {
    if (!fits_memory(result_.type, result_.shape)) {
      refuse(name_, "the shape " + to_string(result_.shape) + " holds more elements than an address space");
    }
    if (std::ranges::count_if(result_.shape, [](index e) { return e != 1; }) <= 1) result_.fortran_order = false;
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  description result_;
  bool has_type_ = false, has_order_ = false, has_shape_ = false;
};

}  // namespace

description parse_dictionary(std::string_view text, const std::string& name) {
  return dictionary_parser(text, name).parse();
}

description read_header(const byte_source& source, const std::string& name, std::size_t& offset) {
  unsigned char start[12] = {};
  std::size_t got = source(start, 8);
  if (got == 0) refuse(name, "the file is empty; expected a .npy file");
  if (got < 8 || std::string_view(reinterpret_cast<const char*>(start), 6) != "\x93NUMPY") {
    refuse(name, "not a .npy file: it does not begin with the bytes \\x93NUMPY and a version");
  }
  const int major = start[6];
  if (major < 1 || major > 3 || start[7] != 0) {
    refuse(name, ".npy version " + std::to_string(major) + "." + std::to_string(start[7]) +
                     " is unknown; versions 1.0, 2.0 and 3.0 are read");
  }
  const std::size_t width = major == 1 ? 2 : 4;
  got = source(start + 8, width);
  if (got < width) refuse(name, "the file ends inside its header's length, after " + std::to_string(8 + got) + " bytes");
  std::size_t length = 0;
  for (std::size_t i = 0; i < width; ++i) length |= static_cast<std::size_t>(start[8 + i]) << (8 * i);
  if (length > longest_header) {
    refuse(name, "the header claims " + std::to_string(length) + " bytes; at most 1048576 are read");
  }
  std::string text(length, ' ');
  const std::size_t read = source(text.data(), text.size());
  if (read < length) {
    refuse(name, "the file ends inside its header: expected " + std::to_string(8 + width + length) + " bytes, found " +
                     std::to_string(8 + width + read));
  }
  offset = 8 + width + length;
  return parse_dictionary(text, name);
}

std::string write_header(element type, const extents& shape) {
  constexpr char order = std::endian::native == std::endian::little ? '<' : '>';
  std::string text = "{'descr': '";
  text += size_of(type) > 1 ? order : '|';
  text += std::ranges::find(type_codes, type, &type_code::type)->code;
  text += "', 'fortran_order': False, 'shape': " + to_string(shape) + ", }";
  text.append((64 - (10 + text.size() + 1) % 64) % 64, ' ');
  text += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace regroup::tool

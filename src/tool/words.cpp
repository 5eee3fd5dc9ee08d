// SPDX-License-Identifier: Apache-2.0
#include "words.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "files.hpp"
#include "regroup/view.hpp"

namespace regroup::tool {
namespace {

std::string usage(const std::string& command) {
  if (command == "softmax") return "regroup softmax X.npy -o P.npy";
  if (command == "reduce") return "regroup reduce X.npy --with NAME[,NAME...]";
  if (command == "scan") return "regroup scan X.npy --with NAME -o Y.npy";
  if (command == "merge") return "regroup merge STATE_DIR... -o O.npy";
  return "regroup attention Q.npy K.npy V.npy -o O.npy";
}

const std::string axis_range = "from " + std::to_string(-max_rank) + " to " + std::to_string(max_rank - 1);

}  // namespace

std::vector<std::string> fields_of(const std::string& text) {
  std::vector<std::string> result(1);
  for (const char c : text) {
    if (c == ',') {
      result.emplace_back();
    } else {
      result.back() += c;
    }
  }
  return result;
}

double words::finite(const std::string& option, const std::string& text) const {
  double value = 0.0;
  if (!read_number(text, value) || !std::isfinite(value)) wrong_value(option, "a finite number", text);
  return value;
}

double words::positive(const std::string& option, const std::string& text) const {
  double value = 0.0;
  if (!read_number(text, value) || !std::isfinite(value) || !(value > 0)) {
    wrong_value(option, "a finite number above 0", text);
  }
  return value;
}

std::vector<int> words::axes(const std::string& text) const {
  std::vector<int> result;
  for (const std::string& field : fields_of(text)) {
    int axis = 0;
    if (!read_number(field, axis)) wrong_value("--axis", "integers " + axis_range + ", separated by commas", text);
    if (std::find(result.begin(), result.end(), axis) != result.end()) wrong("--axis names axis " + field + " twice");
    result.push_back(axis);
  }
  return result;
}

std::optional<int> words::axis(const std::string& text) const {
  if (text.empty()) return {};
  int value = 0;
  if (!read_number(text, value)) wrong_value("--axis", "one integer " + axis_range, text);
  return value;
}

attention_window words::window(const std::string& text) const {
  const std::vector<std::string> sides = fields_of(text);
  attention_window w;
  if (sides.size() != 2 || !read_number(sides[0], w.left) || !read_number(sides[1], w.right) || w.left < -1 ||
      w.right < -1) {
    wrong_value("--window", "two whole numbers LEFT,RIGHT " + range_from(index{0}) + ", or -1 for no limit", text);
  }
  return w;
}

void words::required(const std::string& what, const std::string& name) const {
  if (name.empty()) wrong(what + " is missing: " + usage(command));
}

void words::file(const std::string& what, const std::string& name) const {
  required(what, name);
  if (name.size() > 1 && name[0] == '-') {
    wrong(what + " needs a file name; got '" + name + "' (a file of that name is ./" + name + ")");
  }
}

void words::output(const std::string& what, const std::string& name) const {
  file(what, name);
  if (name == "-") wrong(what + " needs a file name; '-' is only for reading");
}

void words::distinct(const std::string& a, const std::string& b) const {
  if (a.empty() || b.empty() || !lead_to_one_file(a, b)) return;
  const auto normal = [](const std::string& name) { return std::filesystem::path(name).lexically_normal(); };
  if (normal(a) == normal(b)) wrong("two outputs have the same name '" + b + "'; give each its own");
  wrong("two outputs, '" + a + "' and '" + b + "', lead to one file; give each its own");
}

}  // namespace regroup::tool

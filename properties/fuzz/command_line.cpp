// SPDX-License-Identifier: Apache-2.0
// Any words, one a line, as a command line. They give one sentence, or values that all lie in their ranges and are the same
// when the words are read again.
#include "command_line.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "choices.hpp"
#include "files.hpp"

namespace {

using namespace regroup::tool;
using fuzz::require;

struct check {
  void output(const std::string& name) const {
    require(name != "-" && !(name.size() > 1 && name[0] == '-'), "an output is no option: " + name);
  }
  void input(const std::string& name) const {
    require(!name.empty() && (name == "-" || name[0] != '-'), "an input is no option: " + name);
  }
  void operator()(const show_command& c) const { require(!c.text.empty(), "help says something"); }
  void operator()(const softmax_command& c) const {
    input(c.x);
    output(c.output);
    output(c.lse);
    require(!c.output.empty() && std::isfinite(c.scale), "softmax's values");
    require(c.lse.empty() || !lead_to_one_file(c.output, c.lse), "softmax's outputs are two");
  }
  void operator()(const reduce_command& c) const {
    input(c.x);
    output(c.output);
    require(!c.with.empty() && (!c.axes || !c.axes->empty()), "reduce has a monoid, and axes where it has --axis");
    for (const monoid_name& m : c.with) {
      require(m.name != "top_k" || m.k >= 1, "top_k's length");
      require(m.name != "histogram" || (m.bins >= 1 && m.low <= m.high && std::isfinite(m.high - m.low)),
              "histogram's range");
    }
  }
  void operator()(const scan_command& c) const {
    input(c.x);
    output(c.output);
    require(!c.output.empty() && !c.with.empty(), "scan's values");
  }
  void operator()(const attention_command& c) const {
    for (const std::string* x : {&c.q, &c.k, &c.v}) input(*x);
    for (const std::string* x : {&c.output, &c.lse, &c.state_out}) output(*x);
    require(!c.output.empty() || !c.state_out.empty(), "attention has somewhere to write to");
    require(c.state_out.empty() || c.sinks.empty(), "no sinks in a state");
    require(!c.scale || std::isfinite(*c.scale), "a scale is finite");
    require(!c.softcap || (std::isfinite(*c.softcap) && *c.softcap > 0), "a softcap is finite and positive");
    require(!c.window || (c.window->left >= -1 && c.window->right >= -1), "a window's sides are at least -1");
    require(c.split >= 1, "a split is at least 1");
  }
  void operator()(const merge_command& c) const {
    for (const std::string& directory : c.states) input(directory);
    output(c.output);
    output(c.lse);
    require(!c.states.empty() && !c.output.empty(), "merge's values");
  }
  void operator()(const laws_command& c) const { require(c.cases >= 1, "laws' cases"); }
  void operator()(const info_command&) const {}
};

/// What the words mean, or the sentence about them.
std::pair<std::size_t, std::string> meaning(const std::vector<const char*>& argv) {
  try {
    const command_line line = parse_command_line(static_cast<int>(argv.size()), argv.data());
    require(line.everywhere.threads >= 0, "no negative number of threads");
    std::visit(check{}, line.command);
    return {line.command.index(), ""};
  } catch (const usage_error& e) {
    require(std::string(e.what()).size() > 10, "a refusal is a sentence: " + std::string(e.what()));
    return {std::variant_npos, e.what()};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> words{"regroup"};
  bool starts = true;
  for (std::size_t i = 0; i < size && data[i] != 0; ++i) {
    if (starts) words.emplace_back();
    starts = data[i] == '\n';
    if (!starts) words.back() += static_cast<char>(data[i]);
  }
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  require(meaning(argv) == meaning(argv), "the same words mean the same again");
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A command line, parsed into plain values; nothing is opened yet. Everything that can be wrong with the words alone is a
// usage_error here (exit code 2). Later errors are the commands' (exit code 1).
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "regroup/monoid.hpp"

namespace regroup::tool {

/// The words themselves are wrong. `command` is the command whose help to read, or empty.
struct usage_error : std::runtime_error {
  usage_error(const std::string& sentence, std::string command_name)
      : std::runtime_error(sentence), command(std::move(command_name)) {}
  std::string command;
};

/// Options that every command takes.
struct settings {
  int threads = 0;  // 0: all
  bool cuda = false;
  bool json = false;
  bool quiet = false;
};

/// One entry of `--with`: a monoid's name and its parameters.
struct monoid_name {
  std::string name;
  index k = 0;                   // top_k
  double low = 0.0, high = 0.0;  // histogram
  index bins = 0;                // histogram
};

struct softmax_command {
  std::string x, output, lse;
  std::optional<int> axis;
  bool log = false;
  double scale = 1.0;
};

struct reduce_command {
  std::string x, output;
  std::vector<monoid_name> with;
  std::optional<std::vector<int>> axes;
  bool keepdims = false;
};

struct scan_command {
  std::string x, output, with;
  std::optional<int> axis;
  bool exclusive = false, reverse = false;
};

enum class causality { none, bottom_right, top_left };

/// How far a query sees to either side; -1 for no limit.
struct attention_window {
  index left = -1, right = -1;
};

struct attention_command {
  static constexpr const char* state_files[] = {"m.npy", "l.npy", "o.npy"};  // in the directory `state_out`

  std::string q, k, v, output, lse, mask, alibi, sinks, kv_lengths, page_table, state_out;
  std::optional<double> scale, softcap;
  causality causal = causality::none;
  std::optional<attention_window> window;
  index split = 1;
};

struct merge_command {
  std::vector<std::string> states;
  std::string output, lse;
};

struct laws_command {
  std::vector<std::string> monoids;
  int cases = 200;
  std::uint64_t seed = 1;
};

struct info_command {
  bool measure = false;
};

/// `--help` or `--version`: the text is the whole answer.
struct show_command {
  std::string text;
};

using command = std::variant<show_command, softmax_command, reduce_command, scan_command, attention_command,
                             merge_command, laws_command, info_command>;

struct command_line {
  settings everywhere;
  regroup::tool::command command;
};

/// Throws usage_error.
command_line parse_command_line(int argc, const char* const* argv);

/// The value of `--with`: names separated by commas, `top_k:K`, `histogram:LO,HI,BINS`. Throws usage_error.
std::vector<monoid_name> parse_monoids(const std::string& text);

}  // namespace regroup::tool

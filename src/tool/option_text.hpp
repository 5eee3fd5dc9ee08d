// SPDX-License-Identifier: Apache-2.0
// Options as CLI11 leaves them: text, present or not. None is marked as required for CLI11, so that a misspelt option is
// reported before the option that it leaves missing.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace regroup::tool {

struct option_text {
  std::string x, q, k, v, output, lse, axis, scale, with, causal, window, mask, softcap, alibi, sinks, kv_lengths,
      page_table, split, state_out, cases, seed;
  std::vector<std::string> monoids, states;
  bool log = false, keepdims = false, exclusive = false, reverse = false, measure = false;
  std::string threads, device;
  bool json = false, quiet = false;
};

/// Every command and option, with its help.
void declare(CLI::App& app, option_text& t);

/// The words of the command line. A number that begins with a minus is joined to the option before it, and words in brackets
/// are marked, since CLI11 would take them apart.
std::vector<std::string> joined_words(int argc, const char* const* argv);

/// A word as it was given, without the mark.
std::string unmarked(std::string word);

}  // namespace regroup::tool

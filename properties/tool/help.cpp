// SPDX-License-Identifier: Apache-2.0
// Every command's --help, and the program's own, names every option that the parser knows there, in lines that fit a terminal.
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "command_line.hpp"
#include "option_text.hpp"

namespace {

using namespace regroup::tool;

std::string help_of(const std::string& command) {
  std::vector<const char*> words{"regroup"};
  if (!command.empty()) words.push_back(command.c_str());
  words.push_back("--help");
  const command_line line = parse_command_line(static_cast<int>(words.size()), words.data());
  return std::get<show_command>(line.command).text;
}

void expect_options(const std::string& text, const CLI::App& app, const std::string& command) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (name == "version" && !command.empty()) continue;  // of the program
      EXPECT_NE(text.find("--" + name), std::string::npos) << command << " --help does not name --" << name;
    }
    if (option->get_positional()) {
      EXPECT_NE(text.find("  " + option->get_name() + " "), std::string::npos) << command << ": " << option->get_name();
    }
  }
}

TEST(help, names_every_option) {
  option_text t;
  CLI::App app;
  declare(app, t);
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  EXPECT_EQ(commands.size(), 7u);
  expect_options(help_of(""), app, "");
  for (const CLI::App* command : commands) {
    const std::string text = help_of(command->get_name());
    expect_options(text, app, command->get_name());
    expect_options(text, *command, command->get_name());
    EXPECT_NE(help_of("").find(command->get_name()), std::string::npos);
  }
}

TEST(help, fits_a_terminal) {
  for (const char* const command : {"", "softmax", "reduce", "scan", "attention", "merge", "laws", "info"}) {
    std::size_t begin = 0;
    const std::string text = help_of(command);
    for (std::size_t end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin)) {
      EXPECT_LE(end - begin, 100u) << command << ": " << text.substr(begin, end - begin);
    }
  }
}

}  // namespace

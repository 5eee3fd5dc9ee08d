// SPDX-License-Identifier: Apache-2.0
// The tool `regroup`: understands the command line, runs one command, turns errors into one sentence and an exit status.
// 0: done. 1: an error once something had to be opened or computed. 2: the words of the command line are wrong.
#include <cerrno>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <variant>

#include "commands.hpp"
#include "files.hpp"
#include "regroup/error.hpp"

namespace {

using namespace regroup::tool;

struct runner {
  const settings& everywhere;
  int operator()(const show_command& c) const {
    std::cout << c.text;
    return 0;
  }
  template <class Command>
  int operator()(const Command& c) const {
    return run(c, everywhere);
  }
};

int fail(int status, const std::string& sentence) {
  std::cout.exceptions(std::ios::goodbit);  // what is left of it goes out before the sentence, or not
  std::cerr << "regroup: " << sentence << '\n';
  return status;
}

int run_command(int argc, const char* const* argv) {
  try {
    std::cout.exceptions(std::ios::badbit);  // where a write fails, not at the end, when nobody knows why
    const command_line line = parse_command_line(argc, argv);
    const int status = std::visit(runner{line.everywhere}, line.command);
    std::cout.flush();
    return status;
  } catch (const std::ios_base::failure&) {
    return fail(1, "standard output cannot be written: " + reason(errno));
  } catch (const usage_error& e) {
    fail(2, e.what());
    std::cerr << "Try 'regroup " << (e.command.empty() ? "" : e.command + " ") << "--help'.\n";
    return 2;
  } catch (const std::bad_alloc&) {
    return fail(1, "there is not enough memory for this array");
  } catch (const std::exception& e) {
    return fail(1, e.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  install_signal_handlers();
  return run_command(argc, argv);
}

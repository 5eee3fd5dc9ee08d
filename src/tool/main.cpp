// SPDX-License-Identifier: Apache-2.0
// The tool `regroup`: parses the command line, runs one command, and turns errors into one sentence and an exit status.
// 0: done. 1: an error once something had to be opened or computed. 2: the words of the command line are wrong.
#include <unistd.h>

#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <streambuf>
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

/// The buffer behind std::cout. It writes to descriptor 1, also where that is non-blocking.
class standard_output : public std::streambuf {
 public:
  standard_output() : before_(std::cout.rdbuf(this)) { empty(); }
  standard_output(const standard_output&) = delete;
  standard_output& operator=(const standard_output&) = delete;
  ~standard_output() override {
    std::cout.flush();
    std::cout.rdbuf(before_);
  }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }
  int sync() override {
    const auto bytes = static_cast<std::size_t>(pptr() - pbase());
    empty();  // so that nothing is written twice, even after a failure
    try {
      write_fully(STDOUT_FILENO, "standard output", buffer_.data(), bytes);
    } catch (const regroup::format_error&) {  // errno says why
      return -1;
    }
    return 0;
  }

 private:
  void empty() { setp(buffer_.data(), buffer_.data() + buffer_.size()); }
  std::array<char, 1 << 16> buffer_;
  std::streambuf* before_;
};

/// Whether this is oneTBB's exception for a thread that cannot be started, whose text does not say what to do.
bool is_of_threads(const std::exception& e) { return std::strstr(e.what(), "pthread_create") != nullptr; }

const char* words_of(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) {
    return "there is not enough memory for what is computed; take smaller arrays, or allow more (ulimit)";
  }
  if (!is_of_threads(e)) return e.what();
  return "a thread cannot be started; use fewer, as with --threads 2, or allow more memory and threads (ulimit)";
}

constexpr int nothing_yet = -1;
std::atomic<int> answered{nothing_yet};  // the exit status

/// The terminate handler, for exceptions that cannot be caught: oneTBB's threads start others, also while the program ends.
[[noreturn]] void ended_by_exception() {
  if (const int status = answered; status != nothing_yet) ::_exit(status);
  take_last_word();
  remove_temporaries();
  const std::exception_ptr thrown = std::current_exception();
  const char* words = "ended by a fault of its own";
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    words = words_of(e);
  } catch (...) {
  }
  for (const char* const text : {"regroup: ", words, "\n"}) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  }
  ::_exit(1);
}

int fail(int status, const std::string& sentence) {
  take_last_word();
  std::cout.exceptions(std::ios::goodbit);  // output so far is written first, if it can be
  std::cerr << "regroup: ";
  for (const char c : sentence) std::cerr << (std::iscntrl(static_cast<unsigned char>(c)) != 0 ? '?' : c);  // of a file's name
  std::cerr << '\n';
  return status;
}

int run_command(int argc, const char* const* argv) {
  try {
    std::cout.exceptions(std::ios::badbit);  // report a failed write at once, while errno says why
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
  } catch (const std::exception& e) {
    if (is_of_threads(e)) ended_by_exception();  // its other threads cannot be joined
    return fail(1, words_of(e));
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  install_signal_handlers();
  std::set_terminate(ended_by_exception);
  const standard_output out;
  return answered = run_command(argc, argv);
}

// SPDX-License-Identifier: Apache-2.0
// A signal reaches another thread while temporary or output names are made: all outputs appear, or none, and it ends the
// program.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <thread>

#include "files.hpp"
#include "output.hpp"

namespace {
bool interrupted_when_made = false;
}  // namespace

/// The system's, whose file may be followed by a signal at once.
extern "C" int mkostemp(char* name, int flags) {
  static const auto systems = reinterpret_cast<int (*)(char*, int)>(::dlsym(RTLD_NEXT, "mkostemp"));
  const int descriptor = systems(name, flags);
  if (interrupted_when_made) ::raise(SIGTERM);
  return descriptor;
}

namespace {

namespace fs = std::filesystem;

/// A folder of one test's own.
class signals : public testing::Test {
 protected:
  signals() {
    std::string name = (fs::temp_directory_path() / "regroup-signals-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder = name;
  }
  ~signals() override { fs::remove_all(folder); }
  [[nodiscard]] std::string file(const char* name) const { return (folder / name).string(); }
  [[nodiscard]] std::ptrdiff_t left() const { return std::distance(fs::directory_iterator(folder), {}); }

  fs::path folder;
};

/// body(interrupt) in a process of its own, where interrupt() has SIGTERM handled by a thread that was there before.
template <class Body>
[[noreturn]] void with_handlers(const Body& body) {
  regroup::tool::install_signal_handlers();
  std::promise<void> go;
  std::thread other([&] {
    go.get_future().wait();
    ::raise(SIGTERM);
  });
  body([&] {
    go.set_value();
    other.join();
  });
  ::_exit(0);
}

TEST_F(signals, names_that_appear_together_do_so_while_another_thread_is_interrupted) {
  EXPECT_EXIT(with_handlers([&](const auto& interrupt) {
                regroup::tool::file_beside a(file("a")), b(file("b"));
                const regroup::tool::signals_wait until_both_have_their_names;
                a.become_target();
                interrupt();
                b.become_target();
              }),
              testing::KilledBySignal(SIGTERM), "");
  EXPECT_TRUE(fs::exists(file("a")) && fs::exists(file("b")));
  EXPECT_EQ(left(), 2);
}

TEST_F(signals, before_names_appear_nothing_stays) {
  EXPECT_EXIT(with_handlers([&](const auto& interrupt) {
                regroup::tool::made_directory d(file("d/e"));
                regroup::tool::file_beside a(file("d/e/a")), b(file("b"));
                interrupt();
              }),
              testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(left(), 0);
}

TEST_F(signals, a_file_that_shall_have_no_name_has_none_when_the_program_ends) {
  EXPECT_EXIT(with_handlers([&](const auto& /*interrupt*/) {
                ::setenv("TMPDIR", folder.c_str(), 1);
                interrupted_when_made = true;
                const regroup::tool::unnamed_file made;
              }),
              testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(left(), 0);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "regroup/error.hpp"

namespace regroup::tool {
namespace {

// The names of temporary files, in a form that a signal handler may read at any time: plain pointers to strings. Entries are
// never freed; there are as many as the program makes names.
struct temporary {
  std::atomic<const char*> path;
  temporary* const before;
};
std::atomic<temporary*> newest{nullptr};

void remember(const char* path) { newest = new temporary{path, newest}; }

void forget(const char* path) {
  for (temporary* entry = newest; entry != nullptr; entry = entry->before) {
    const char* expected = path;
    if (entry->path.compare_exchange_strong(expected, nullptr)) return;
  }
}

// Who is changing names: nobody, the main thread while signals wait, or a handler that ends the program.
enum : int { nobody, main_thread, handler };
std::atomic<int> at_work{nobody};
std::atomic<int> waiting_signal{0};
int waits = 0;  // nested signals_wait objects of the main thread

constexpr int ending_signals[] = {SIGINT,  SIGTERM, SIGHUP,    SIGQUIT, SIGXCPU, SIGUSR1,
                                  SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO,   SIGPWR};

extern "C" void ended_by_signal(int number) {
  waiting_signal = number;
  int expected = nobody;
  if (!at_work.compare_exchange_strong(expected, handler)) return;  // ~signals_wait raises it again
  remove_temporaries();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

// Mapped files and what a fault in one says, in a form that a signal handler may read at any time. Entries are never freed.
struct mapping {
  std::atomic<const std::byte*> first;
  const std::size_t bytes;
  const std::string sentence;
  mapping* const before;
};
std::atomic<mapping*> newest_mapping{nullptr};
std::atomic_flag is_told;

std::string sentence_of_fault(std::string who) {
  std::replace_if(who.begin(), who.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
  return "regroup: " + who + " was shortened, or its disk failed, while it was in use\n";
}
const std::string any_fault = sentence_of_fault("an array file");

extern "C" void map_fault(int, siginfo_t* fault, void*) {
  const auto* const at = static_cast<const std::byte*>(fault->si_addr);
  while (is_told.test_and_set()) ::pause();  // another thread's fault ends the program
  const auto holds = [at](const mapping& file) {
    const std::byte* const first = file.first;
    return first != nullptr && at >= first && at < first + file.bytes;
  };
  const mapping* file = newest_mapping;
  while (file != nullptr && !holds(*file)) file = file->before;
  const std::string& sentence = file == nullptr ? any_fault : file->sentence;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
  remove_temporaries();
  ::_exit(1);
}

mode_t default_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

void remember_mapping(const void* first, std::size_t bytes, const std::string& name) {
  newest_mapping = new mapping{static_cast<const std::byte*>(first), bytes, sentence_of_fault(name + ":"), newest_mapping};
}
void forget_mapping(const void* first) {
  for (mapping* file = newest_mapping; file != nullptr; file = file->before) {
    const auto* expected = static_cast<const std::byte*>(first);
    if (file->first.compare_exchange_strong(expected, nullptr)) return;
  }
}

std::string reason(int error_number) {
  std::string text = std::generic_category().message(error_number);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

file_descriptor::file_descriptor(file_descriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}
file_descriptor& file_descriptor::operator=(file_descriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}
file_descriptor::~file_descriptor() { close(); }
void file_descriptor::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

int descriptor_named(const std::string& name) {
  namespace fs = std::filesystem;
  constexpr int most_links = 40;  // the system's limit
  std::error_code none;
  fs::path path = name;
  for (int links = 0; links < most_links; ++links) {
    const fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : fs::path("."), none);
    if (none) return -1;
    for (const char* const own : {"/proc/self/fd", "/proc/thread-self/fd"}) {
      const std::string number = path.filename();
      int descriptor = -1;
      const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), descriptor);
      if (folder != fs::canonical(own, none) || problem != std::errc{} || *end != '\0') continue;
      return descriptor;  // not the file behind it, which has a write position and may have no name any more
    }
    const fs::path target = fs::read_symlink(path, none);
    if (none) return -1;
    path = folder / target;
  }
  return -1;
}

bool lead_to_one_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  const auto place = [](const fs::path& name) {
    std::error_code none;
    const fs::path file = fs::canonical(name, none);  // follows a link to an existing file, as file_beside does
    if (!none) return file;
    const fs::path whole = fs::absolute(name, none);
    const fs::path folder = fs::weakly_canonical(whole.parent_path(), none);
    return (none ? whole.parent_path().lexically_normal() : folder) / whole.filename();
  };
  if (descriptor_named(a) >= 0 && descriptor_named(b) >= 0) return false;
  std::error_code none;
  const fs::path one = place(a);
  return one == place(b) && !fs::is_other(one, none);
}

bool may_go_on(int descriptor, short events) {
  if (errno == EAGAIN) {
    pollfd one{descriptor, events, 0};
    if (::poll(&one, 1, -1) >= 0) return true;
  }
  return errno == EINTR;
}

void write_fully(int descriptor, const std::string& name, const void* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t put = ::write(descriptor, static_cast<const char*>(data) + done, bytes - done);
    if (put < 0 && !may_go_on(descriptor, POLLOUT)) throw_format(name + ": cannot be written: " + reason(errno));
    if (put > 0) done += static_cast<std::size_t>(put);
  }
}

unnamed_file::unnamed_file() {
  const char* const chosen = std::getenv("TMPDIR");
  directory_ = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
  std::string path = directory_ + "/regroup-XXXXXX";
  const signals_wait until_it_has_no_name;
  file_ = file_descriptor(::mkostemp(path.data(), O_CLOEXEC));
  if (file_.get() < 0) throw_format(directory_ + ": no temporary file can be made there: " + reason(errno));
  ::unlink(path.c_str());
}

void unnamed_file::write(const void* data, std::size_t bytes) const {
  write_fully(file_.get(), "a temporary file in " + directory_, data, bytes);
}

file_beside::file_beside(const std::string& target) : target_(target) {
  struct stat status {};
  const bool exists = ::stat(target_.c_str(), &status) == 0;
  if (exists) {  // a link stays a link: what it points to is replaced
    if (char* const resolved = ::realpath(target_.c_str(), nullptr)) {
      target_ = resolved;
      std::free(resolved);
    }
  }
  const std::size_t slash = target_.rfind('/');
  const std::size_t start = slash == std::string::npos ? 0 : slash + 1;
  path_ = target_.substr(0, start) + "." + target_.substr(start, 200) + ".XXXXXX";
  const signals_wait until_it_is_remembered;
  file_ = file_descriptor(::mkostemp(path_.data(), O_CLOEXEC));
  if (file_.get() < 0) throw_format(target + ": cannot be written: " + reason(errno));
  remember(path_.c_str());
  ::fchmod(file_.get(), exists ? status.st_mode & 0777 : default_mode());
}

file_beside::~file_beside() {
  if (path_.empty()) return;
  const signals_wait until_it_is_forgotten;
  ::unlink(path_.c_str());
  forget(path_.c_str());
}

void file_beside::become_target() {
  if (::rename(path_.c_str(), target_.c_str()) != 0) throw_format(target_ + ": cannot be written: " + reason(errno));
  forget(path_.c_str());
  path_.clear();
}

made_directory::made_directory(const std::string& path) {
  const auto is_directory = [](const std::string& name) {
    struct stat status {};
    return ::stat(name.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  };
  const signals_wait until_all_are_remembered;
  try {
    for (std::size_t end = 0; end != std::string::npos;) {
      end = path.find('/', end + 1);
      std::string part = path.substr(0, end);
      if (::mkdir(part.c_str(), 0777) == 0) {
        remember(made_.emplace_back(std::move(part)).c_str());
      } else if (const int problem = errno; !is_directory(part)) {
        throw_format(path + ": cannot be made a directory: " + reason(problem));
      }
    }
  } catch (...) {
    remove();
    throw;
  }
}

made_directory::~made_directory() { remove(); }

void made_directory::remove() {
  const signals_wait until_all_are_forgotten;
  for (auto path = made_.rbegin(); path != made_.rend(); ++path) ::rmdir(path->c_str());
  keep();
}

void made_directory::keep() {
  for (const std::string& path : made_) forget(path.c_str());
  made_.clear();
}

directory_in_use::directory_in_use(const std::string& path, purpose why)
    : directory_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  while (::flock(directory_.get(), why == reading ? LOCK_SH : LOCK_EX) != 0 && errno == EINTR) {
  }
}

signals_wait::signals_wait() {
  if (waits++ > 0) return;
  for (int expected = nobody; !at_work.compare_exchange_strong(expected, main_thread); expected = nobody) {
    ::pause();  // another thread is ending the program
  }
}
signals_wait::~signals_wait() {
  if (--waits > 0) return;
  at_work = nobody;
  if (const int number = waiting_signal.exchange(0); number != 0) ::raise(number);
}

void take_last_word() {
  static std::atomic<std::thread::id> speaker{std::thread::id()};
  std::thread::id nobody_yet;
  if (speaker.compare_exchange_strong(nobody_yet, std::this_thread::get_id())) return;
  while (speaker != std::this_thread::get_id()) ::pause();
}

void remove_temporaries() {
  for (const auto remove : {::unlink, ::rmdir}) {  // files first; then directories, which are empty by then, innermost first
    for (const temporary* entry = newest; entry != nullptr; entry = entry->before) {
      if (const char* const path = entry->path) remove(path);
    }
  }
}

void install_signal_handlers() {
  for (const int number : ending_signals) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler == SIG_DFL) ::signal(number, ended_by_signal);  // keeps a profiler's handler, for example
  }
  struct sigaction fault {};
  fault.sa_sigaction = map_fault;
  fault.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &fault, nullptr);
  for (const int number : {SIGXFSZ, SIGPIPE}) ::signal(number, SIG_IGN);
}

void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    [[maybe_unused]] const int lowest_free = ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace regroup::tool

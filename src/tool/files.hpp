// SPDX-License-Identifier: Apache-2.0
// File descriptors and temporary files that clean up after themselves.
#pragma once

#include <cstddef>
#include <deque>
#include <string>

namespace regroup::tool {

/// The system's words for an error number: "no such file or directory".
std::string reason(int error_number);

/// An open file; closed with the object.
class file_descriptor {
 public:
  explicit file_descriptor(int descriptor = -1) : descriptor_(descriptor) {}
  file_descriptor(file_descriptor&& other) noexcept;
  file_descriptor& operator=(file_descriptor&& other) noexcept;
  ~file_descriptor();
  int get() const { return descriptor_; }
  void close();

 private:
  int descriptor_;
};

/// Whether what is written to two names would be one file, there already or not: through links, other spellings and `..`
/// too. Never for devices, pipes and sockets nor for two open descriptors, which are written into and not replaced.
bool lead_to_one_file(const std::string& a, const std::string& b);

/// N where a name leads, through links too, to descriptor N of this program (/dev/stdout, /dev/fd/3); -1 for any other.
int descriptor_named(const std::string& name);

/// Of a read or write that has just failed: whether to go on, for a signal interrupted it, or the descriptor does not wait
/// itself and has been waited for here. `events` as poll takes them.
bool may_go_on(int descriptor, short events);

/// Writes all of it, or throws format_error with a sentence that begins with `name`.
void write_fully(int descriptor, const std::string& name, const void* data, std::size_t bytes);

/// A temporary file without a name in TMPDIR (or /tmp); its space is free again when the last use ends.
class unnamed_file {
 public:
  unnamed_file();
  int descriptor() const { return file_.get(); }
  void write(const void* data, std::size_t bytes) const;

 private:
  std::string directory_;
  file_descriptor file_;
};

/// A temporary file beside `target`, with the permissions that target has or would get; removed with the object, and
/// when a signal ends the program, unless `become_target` has renamed it.
class file_beside {
 public:
  explicit file_beside(const std::string& target);
  file_beside(const file_beside&) = delete;
  file_beside& operator=(const file_beside&) = delete;
  ~file_beside();
  int descriptor() const { return file_.get(); }
  void become_target();

 private:
  std::string target_;
  std::string path_;
  file_descriptor file_;
};

/// A directory that is there, made with those above it where it was not; what was made is removed with the object, and
/// when a signal ends the program, unless `keep` was called. Throws format_error.
class made_directory {
 public:
  explicit made_directory(const std::string& path);
  made_directory(const made_directory&) = delete;
  made_directory& operator=(const made_directory&) = delete;
  ~made_directory();
  void keep();

 private:
  void remove();
  std::deque<std::string> made_;  // outermost first
};

/// While one lives, the signals that end the program wait, whichever thread they reach: names that appear together do so
/// all or not at all, and a temporary file that is made is known to whoever removes it. For the main thread only.
class signals_wait {
 public:
  signals_wait();
  signals_wait(const signals_wait&) = delete;
  signals_wait& operator=(const signals_wait&) = delete;
  ~signals_wait();
};

/// For the thread that says how the program ends: by the sentence of an error, or outputs that take their names. A second
/// thread that comes here stops.
void take_last_word();

/// Removes the temporary files and directories that there are, for whoever ends the program at once.
void remove_temporaries();

/// Removes temporary files on the signals that end the program, turns a fault on a mapped file (shortened by somebody
/// while it was being read) into a sentence, and a closed pipe or a file past the size limit into an error of the call
/// that wrote to it.
void install_signal_handlers();

/// Opens /dev/null in place of standard input, output or error where they are closed, the other way round: no file of
/// ours then takes their number and what is meant for them, and using them is still an error.
void occupy_standard_descriptors();

}  // namespace regroup::tool

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

/// Whether two names lead to the same file, existing or not; links, other spellings and `..` are followed. Never true for
/// devices, pipes and sockets, nor for two open descriptors: these are written into and not replaced.
bool lead_to_one_file(const std::string& a, const std::string& b);

/// From `remember` until `forget`, a fault in a mapping of a file, which was shortened or whose disk failed, ends the program
/// with a sentence that names it.
void remember_mapping(const void* first, std::size_t bytes, const std::string& name);
void forget_mapping(const void* first);

/// N if a name leads, also through links, to descriptor N of this program (/dev/stdout, /dev/fd/3); -1 for any other name.
int descriptor_named(const std::string& name);

/// Whether to retry a read or write that has just failed: a signal interrupted it, or the descriptor is non-blocking, in which
/// case this waits until it is ready. `events` are poll's.
bool may_go_on(int descriptor, short events);

/// Writes all of it, or throws format_error with a sentence that begins with `name`.
void write_fully(int descriptor, const std::string& name, const void* data, std::size_t bytes);

/// A temporary file without a name in TMPDIR (or /tmp); its space is freed when its last user is gone.
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

/// A directory, which is made, with its parents, if it does not exist. What was made is removed with the object, and when a
/// signal ends the program, unless `keep` was called. Throws format_error.
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

/// While such an object exists, other commands that change, or read, a directory's files as one wait: those that change them
/// for all, those that read them for one that changes them. Where the file system has no locks nobody waits.
class directory_in_use {
 public:
  enum purpose { reading, changing };
  directory_in_use(const std::string& path, purpose why);

 private:
  file_descriptor directory_;
};

/// While such an object exists, the signals that end the program wait, whichever thread they reach. So names that appear
/// together appear all or none, and no temporary file exists that its remover does not know of. For the main thread only.
class signals_wait {
 public:
  signals_wait();
  signals_wait(const signals_wait&) = delete;
  signals_wait& operator=(const signals_wait&) = delete;
  ~signals_wait();
};

/// Called by the thread that decides how the program ends: with an error's sentence, or with outputs that take their names. A
/// second thread that calls it stops there.
void take_last_word();

/// Removes all temporary files and directories, before the program ends at once.
void remove_temporaries();

/// Installs handlers: the signals that end the program remove temporary files first; a fault on a mapped file (which somebody
/// shortened while it was read) becomes a sentence; a closed pipe, or a file past the size limit, becomes an error of the call
/// that wrote to it.
void install_signal_handlers();

/// Opens /dev/null in place of standard input, output or error if they are closed, for the opposite direction: no other file
/// then gets their number, and using them is still an error.
void occupy_standard_descriptors();

}  // namespace regroup::tool

// SPDX-License-Identifier: Apache-2.0
// A call on a stack of its own that can stop in the middle and be resumed: a thread of an emulated block. A POSIX context
// begins it; after that it jumps, since swapcontext asks the operating system for signal masks: four fifths of a kernel's time.
// AddressSanitizer is told of every switch, or it would take a fiber's frames for a broken stack. A stack begins as numbers
// that nothing computes: what nobody has set is then not by chance what an earlier block left there. (NaN is what attention
// computes once more.)
#pragma once

#include <dlfcn.h>
#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace emulated {

/// The C library's own _longjmp: AddressSanitizer would put one in its place that asks the operating system for a signal's
/// stack and forgets which bytes around the frames are no variable's; _FORTIFY_SOURCE one that refuses to leave for another
/// stack.
inline const auto jump_to =
    reinterpret_cast<void (*)(jmp_buf, int)>(dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "_longjmp"));

class fiber {
 public:
  /// `body(argument)` runs on this fiber's stack whenever it is resumed for the first time after `restart`.
  fiber(void (*body)(void*), void* argument) : body_(body), argument_(argument), stack_(new std::byte[stack_bytes]) {}
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  void restart() {
    forget_frames();
    std::memset(stack_.get() + (stack_bytes - frames_bytes), 0x41, frames_bytes);  // floats of 12.08
    getcontext(&beginning_);
    beginning_.uc_stack.ss_sp = stack_.get();
    beginning_.uc_stack.ss_size = stack_bytes;
    beginning_.uc_link = nullptr;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&beginning_, reinterpret_cast<void (*)()>(&fiber::enter), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self & 0xffffffffu));
    has_begun_ = is_done_ = false;
  }
  /// Runs until the body suspends or returns.
  void resume() {
    leave_for(stack_.get(), stack_bytes, &resumer_fake_);
    if (_setjmp(resumer_) == 0) {
      if (has_begun_) jump_to(own_, 1);
      has_begun_ = true;
      setcontext(&beginning_);
    }
    arrive(resumer_fake_, nullptr, nullptr);
  }
  /// From inside the body: back to the resumer, until the next resume.
  void suspend() {
    leave_for(resumer_stack_, resumer_bytes_, is_done_ ? nullptr : &own_fake_);
    if (_setjmp(own_) == 0) jump_to(resumer_, 1);
    arrive(own_fake_, &resumer_stack_, &resumer_bytes_);
  }

 private:
  static constexpr std::size_t stack_bytes = std::size_t{256} << 10;
  static constexpr std::size_t frames_bytes = std::size_t{16} << 10;  // the end of the stack, where frames begin

  static void enter(unsigned high, unsigned low) {
    auto& self = *reinterpret_cast<fiber*>(std::uintptr_t{high} << 32 | low);
    self.arrive(nullptr, &self.resumer_stack_, &self.resumer_bytes_);
    self.body_(self.argument_);
    self.is_done_ = true;
    self.suspend();
  }

#if defined(__SANITIZE_ADDRESS__)
  static void leave_for(const void* stack, std::size_t bytes, void** fake) {
    __sanitizer_start_switch_fiber(fake, stack, bytes);
  }
  static void arrive(void* fake, const void** stack, std::size_t* bytes) {
    __sanitizer_finish_switch_fiber(fake, stack, bytes);
  }
  void forget_frames() { __asan_unpoison_memory_region(stack_.get(), stack_bytes); }
#else
  static void leave_for(const void*, std::size_t, void**) {}
  static void arrive(void*, const void**, std::size_t*) {}
  void forget_frames() {}
#endif

  void (*body_)(void*);
  void* argument_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t beginning_{};
  jmp_buf own_{};
  jmp_buf resumer_{};
  const void* resumer_stack_ = nullptr;
  std::size_t resumer_bytes_ = 0;
  void* own_fake_ = nullptr;
  void* resumer_fake_ = nullptr;
  bool has_begun_ = false;
  bool is_done_ = true;
};

}  // namespace emulated

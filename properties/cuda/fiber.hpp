// SPDX-License-Identifier: Apache-2.0
// A call on a stack of its own that can stop in the middle and be resumed: a thread of an emulated block. POSIX contexts,
// about 0.3 us a switch; AddressSanitizer is told of every one, or it would take a fiber's frames for a broken stack.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulated {

class fiber {
 public:
  /// `body(argument)` runs on this fiber's stack whenever it is resumed for the first time after `restart`.
  fiber(void (*body)(void*), void* argument) : body_(body), argument_(argument), stack_(new std::byte[stack_bytes]) {}
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  void restart() {
    getcontext(&own_);
    own_.uc_stack.ss_sp = stack_.get();
    own_.uc_stack.ss_size = stack_bytes;
    own_.uc_link = nullptr;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&own_, reinterpret_cast<void (*)()>(&fiber::enter), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self & 0xffffffffu));
    is_done_ = false;
  }
  /// Runs until the body suspends or returns.
  void resume() {
    leave_for(stack_.get(), stack_bytes, &resumer_fake_);
    swapcontext(&resumer_, &own_);
    arrive(resumer_fake_, nullptr, nullptr);
  }
  /// From inside the body: back to the resumer, until the next resume.
  void suspend() {
    leave_for(resumer_stack_, resumer_bytes_, is_done_ ? nullptr : &own_fake_);
    swapcontext(&own_, &resumer_);
    arrive(own_fake_, &resumer_stack_, &resumer_bytes_);
  }
  [[nodiscard]] bool is_done() const { return is_done_; }

 private:
  static constexpr std::size_t stack_bytes = std::size_t{256} << 10;

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
#else
  static void leave_for(const void*, std::size_t, void**) {}
  static void arrive(void*, const void**, std::size_t*) {}
#endif

  void (*body_)(void*);
  void* argument_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t own_{};
  ucontext_t resumer_{};
  const void* resumer_stack_ = nullptr;
  std::size_t resumer_bytes_ = 0;
  void* own_fake_ = nullptr;
  void* resumer_fake_ = nullptr;
  bool is_done_ = true;
};

}  // namespace emulated

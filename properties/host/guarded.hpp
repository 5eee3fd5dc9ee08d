// SPDX-License-Identifier: Apache-2.0
// Elements between two pages without access rights. Sanitizers do not see the loads of every instruction; the processor does.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>

/// Which of the two pages the elements touch.
enum class edge { before, behind };

/// A copy of xs.
template <class T>
class guarded {
 public:
  guarded(std::span<const T> xs, edge where) : bytes_((xs.size_bytes() + page - 1) / page * page) {
    void* const memory = mmap(nullptr, bytes_ + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<std::byte*>(memory);
    for (std::byte* const at : {memory_, memory_ + page + bytes_}) {
      if (mprotect(at, page, PROT_NONE) != 0) throw std::bad_alloc();
    }
    std::byte* const first = memory_ + page + (where == edge::before ? 0 : bytes_ - xs.size_bytes());
    elements_ = {reinterpret_cast<T*>(first), xs.size()};
    std::copy(xs.begin(), xs.end(), elements_.begin());
  }
  guarded(const guarded&) = delete;
  guarded& operator=(const guarded&) = delete;
  ~guarded() { munmap(memory_, bytes_ + 2 * page); }
  [[nodiscard]] T* data() const { return elements_.data(); }

 private:
  static constexpr std::size_t page = 4096;
  std::size_t bytes_;
  std::byte* memory_;
  std::span<T> elements_;
};

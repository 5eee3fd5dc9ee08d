// SPDX-License-Identifier: Apache-2.0
// Every `new` and `delete` of the program, counted. (malloc_usable_size: what the allocator really gave.)
#include "allocations.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> live{0};
std::atomic<std::size_t> peak{0};

void* counted(void* p) {
  if (p == nullptr) throw std::bad_alloc();
  const std::size_t size = malloc_usable_size(p);
  const std::size_t now = live.fetch_add(size) + size;
  for (std::size_t most = peak.load(); most < now && !peak.compare_exchange_weak(most, now);) {
  }
  return p;
}
void discard(void* p) noexcept {
  live.fetch_sub(p == nullptr ? 0 : malloc_usable_size(p));
  std::free(p);
}

}  // namespace

void* operator new(std::size_t size) { return counted(std::malloc(size == 0 ? 1 : size)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto a = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(a, (size + a - 1) / a * a));
}
void operator delete(void* p) noexcept { discard(p); }
void operator delete(void* p, std::size_t) noexcept { discard(p); }
void operator delete(void* p, std::align_val_t) noexcept { discard(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { discard(p); }

namespace demo {

peak_allocation::peak_allocation() : before_(live.load()) { peak.store(before_); }
std::size_t peak_allocation::bytes() const { return peak.load() - before_; }

}  // namespace demo

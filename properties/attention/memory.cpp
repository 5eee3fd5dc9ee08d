// SPDX-License-Identifier: Apache-2.0
// Attention of 65536 queries over 65536 keys takes less than 4 MiB a thread beyond inputs and outputs: every allocation
// of this program is counted.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "cases.hpp"

namespace {

std::atomic<long> held = 0, most_held = 0;

void* counted(void* p) {
  if (p == nullptr) throw std::bad_alloc();
  const long now = held += static_cast<long>(malloc_usable_size(p));
  long most = most_held;
  while (now > most && !most_held.compare_exchange_weak(most, now)) {
  }
  return p;
}
void give_back(void* p) {
  held -= static_cast<long>(malloc_usable_size(p));
  std::free(p);
}

}  // namespace

void* operator new(std::size_t size) { return counted(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto a = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(a, (size + a - 1) / a * a));
}
void operator delete(void* p) noexcept { give_back(p); }
void operator delete(void* p, std::size_t) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give_back(p); }

namespace {

/// Once in full: sanitizers, and tests on each instruction set, do less.
bool is_small() { return std::getenv("REGROUP_SMALL") != nullptr || std::getenv("REGROUP_TARGET") != nullptr; }

template <class T>
void expect_little_at_65536_tokens(const regroup::attention_options& options) {
  const cases::index n = is_small() ? 4096 : 65536, d = 64;
  const auto q = cases::normal<T>({n, d}, 1), k = cases::normal<T>({n, d}, 2);
  const auto v = cases::normal<T>({n, d}, 3);
  cases::tensor<T> out({n, d});
  const auto few = cases::slice(q.view(), 0, n - 80, n);
  cases::tensor<T> few_out({80, d});
  const auto two = regroup::par.with_threads(2);
  regroup::attention(two, few, regroup::dense(k.view(), v.view()), few_out.view());  // the scheduler's own memory
  const long before = held;
  most_held = before;
  regroup::attention(two, q.view(), regroup::dense(k.view(), v.view()), out.view(), options);
  regroup::attention(two, few, regroup::dense(k.view(), v.view()), few_out.view());
  EXPECT_GT(most_held - before, 1000);  // the counter counts
  EXPECT_LT(most_held - before, 2 * 4 * 1024 * 1024);
}

TEST(attention_memory, stays_small_at_65536_tokens) { expect_little_at_65536_tokens<float>({}); }
TEST(attention_memory, stays_small_at_65536_tokens_of_16_bits) {
  expect_little_at_65536_tokens<regroup::bfloat16>({.mask = regroup::causal{}});
}

/// Blocks of a head share copies of keys and values, and wait for each other with their states.
template <class T>
void expect_little(cases::index d, bool turned) {
  constexpr cases::index n = 1024;
  const auto q = cases::normal<T>({n, d}, 1), k = cases::normal<T>({n, d}, 2), v = cases::normal<T>({d, n}, 3);
  cases::tensor<T> out({n, d});
  const regroup::view<const T> values = turned ? v.view().permuted({1, 0}) : regroup::view<const T>(v.view().data(), {n, d});
  const long before = held;
  most_held = before;
  regroup::attention(regroup::seq, q.view(), regroup::dense(k.view(), values), out.view());
  EXPECT_LT(most_held - before, 4 * 1024 * 1024) << d << ", turned " << turned;
}
TEST(attention_memory, stays_small_where_rows_are_copied) {
  for (const cases::index d : {64, 256, 512}) expect_little<regroup::float16>(d, false);
  for (const cases::index d : {64, 128}) expect_little<double>(d, true);
}

}  // namespace

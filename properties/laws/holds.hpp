// SPDX-License-Identifier: Apache-2.0
// What every file here checks: that a monoid keeps all its laws and promises, or that it fails, and how small the
// counterexample is. Reports are printed where they disagree with the expectation, counterexamples always.
#pragma once

#include <gtest/gtest.h>

#include <iostream>

#include "regroup/check_laws.hpp"

namespace regroup::laws {

inline constexpr int few = 200;

/// The library's own promise: bitwise identity and commutativity, NaN, infinities and -0 among the elements.
inline law_options strictly(std::uint64_t seed = 1) { return {.cases = few, .seed = seed, .strict = true}; }

inline ::testing::AssertionResult holds(const report& r) {
  if (r.passed()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << r;
}

/// Some law falls, with a counterexample of at most four elements.
inline ::testing::AssertionResult is_rejected(const report& r) {
  const finding* smallest = nullptr;
  for (const finding& f : r.findings) {
    if (f.result == finding::outcome::falls && (smallest == nullptr || f.elements < smallest->elements)) smallest = &f;
  }
  if (smallest == nullptr) return ::testing::AssertionFailure() << "accepted:\n" << r;
  std::cout << r.monoid << " over " << r.element << '\n' << *smallest;
  if (smallest->elements > 4) return ::testing::AssertionFailure() << "a large counterexample:\n" << r;
  return ::testing::AssertionSuccess();
}

/// This law falls, with a counterexample of at most four elements.
inline ::testing::AssertionResult falls(const report& r, std::string_view law) {
  const finding* f = r.find(law);
  if (f == nullptr || f->result != finding::outcome::falls)
    return ::testing::AssertionFailure() << law << " held:\n" << r;
  std::cout << r.monoid << " over " << r.element << '\n' << *f;
  if (f->elements > 4) return ::testing::AssertionFailure() << "a large counterexample:\n" << *f;
  return ::testing::AssertionSuccess();
}

}  // namespace regroup::laws

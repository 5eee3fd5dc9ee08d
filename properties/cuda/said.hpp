// SPDX-License-Identifier: Apache-2.0
// The sentence of an exception.
#pragma once

#include <string>

template <class Error, class F>
std::string said(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

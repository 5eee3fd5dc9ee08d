// SPDX-License-Identifier: Apache-2.0
// What the sections of the demo share: where data is read and pictures are written, and the claims that are counted.
#pragma once

#include <filesystem>
#include <string>

#include "npy.hpp"

namespace demo {

void section_split();    // (a) keys in blocks, merged in any order: within the bound
void section_bits();     // (b) threads, chunks, pages: the same bits
void section_softmax();  // (c) where the naive softmax breaks
void section_logits();   // (d) logsumexp and cross-entropy of real logits
void section_laws();     // (e) the average, the median and a beginner's operator
void section_memory();   // (f) time and memory beside the attention that materialises its matrix

/// "(a) TITLE", and a rule under it.
void heading(const std::string& title);

/// Prints what is claimed and whether it held; one that did not makes the demo fail.
void claim(bool holds, const std::string& what);
int claims_made();
int claims_failed();

/// The larger of two ratios of error to bound. NaN is the worst of all, and stays.
inline double worse(double a, double b) { return a >= b || a != a ? a : b; }

/// A number as text: `text_of("%.3f", x)`.
std::string text_of(const char* format, double value);

/// An array of examples/data.
template <class T>
array<T> data(const std::string& name) {
  return load<T>(std::filesystem::path(REGROUP_EXAMPLE_DATA) / name);
}

/// Where pictures go. `picture("x.svg")` is a path in it.
void set_picture_folder(const std::filesystem::path& folder);
std::filesystem::path picture(const std::string& name);

}  // namespace demo

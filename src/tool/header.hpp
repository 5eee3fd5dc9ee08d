// SPDX-License-Identifier: Apache-2.0
// The header of a .npy file, versions 1.0 to 3.0: magic, version, length, then a Python dictionary that names the
// element type, the memory order and the shape. Everything malformed is a format_error with a sentence.
// Format: numpy.lib.format, "Format Version 1.0/2.0/3.0".
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "array.hpp"

namespace regroup::tool {

/// Reads up to `n` bytes into `p` and returns how many there were; fewer than `n` only at the end of the input.
using byte_source = std::function<std::size_t(void* p, std::size_t n)>;

/// Reads magic, version and dictionary from `source`, which is left at the first byte of the data; `offset` becomes the
/// number of bytes consumed. `name` is what sentences call the input. Throws format_error.
description read_header(const byte_source& source, const std::string& name, std::size_t& offset);

/// The dictionary alone: keys 'descr', 'fortran_order' and 'shape' in any order, Python's quotes, spaces and trailing
/// commas. Throws format_error.
description parse_dictionary(std::string_view text, const std::string& name);

/// Magic, version 1.0 and dictionary for a C-ordered little-endian array, padded to a multiple of 64 bytes as NumPy
/// does. bfloat16 is written as '<V2', as ml_dtypes does.
std::string write_header(element type, const extents& shape);

}  // namespace regroup::tool

// SPDX-License-Identifier: Apache-2.0
// The repository's own arrays: .npy 1.0, C order, little-endian.
#pragma once

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace properties {

/// All elements of REGROUP_EXAMPLE_DATA/name; the caller knows the type and the shape.
template <class T>
std::vector<T> example_data(const std::string& name) {
  std::ifstream file(std::string(REGROUP_EXAMPLE_DATA) + "/" + name, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.size() < 10) throw std::runtime_error("no array in " + name);
  const std::size_t first = 10 + static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  std::vector<T> values((bytes.size() - first) / sizeof(T));
  std::memcpy(values.data(), bytes.data() + first, values.size() * sizeof(T));
  return values;
}

}  // namespace properties

// SPDX-License-Identifier: Apache-2.0
// Reads NumPy's .npy files as far as the demo needs it: float32, float64 and int64, little-endian, C order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "regroup/view.hpp"

namespace demo {

/// A C-order array that owns its elements.
template <class T>
struct array {
  regroup::shape extents;
  std::vector<T> values;

  [[nodiscard]] regroup::view<const T> view() const { return {values.data(), extents}; }
};

/// Throws std::runtime_error where the file is not such an array of T.
template <class T>
array<T> load(const std::filesystem::path& path) {
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) throw std::runtime_error(path.string() + ": " + what);
  };
  std::ifstream file(path, std::ios::binary);
  require(file.is_open(), "cannot be opened");
  std::string start(10, '\0');  // magic, version 1.0, and the length of the header in two bytes
  file.read(start.data(), 10);
  require(file.good() && start.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8), "is not .npy version 1.0");
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(start[i])); };
  std::string header(byte(8) + 256 * byte(9), '\0');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));

  const std::string type = std::is_same_v<T, float> ? "'<f4'" : std::is_same_v<T, double> ? "'<f8'" : "'<i8'";
  require(header.find("'descr': " + type) != std::string::npos, "does not hold " + type);
  require(header.find("'fortran_order': False") != std::string::npos, "is not in C order");
  const auto open = header.find('(');
  require(open != std::string::npos, "has no shape");
  std::istringstream list(header.substr(open + 1, header.find(')') - open - 1));

  array<T> result;
  std::size_t size = 1;
  for (std::string extent; std::getline(list, extent, ',');) {
    if (extent.find_first_of("0123456789") == std::string::npos) continue;  // "(16,)" ends in nothing
    result.extents.push_back(std::stoll(extent));
    size *= std::stoull(extent);
  }
  result.values.resize(size);
  const auto bytes = static_cast<std::streamsize>(size * sizeof(T));
  file.read(reinterpret_cast<char*>(result.values.data()), bytes);
  require(file.gcount() == bytes, "ends too early");
  return result;
}

}  // namespace demo

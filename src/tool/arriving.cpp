// SPDX-License-Identifier: Apache-2.0
#include "arriving.hpp"

#include <unistd.h>

#include <vector>

#include "typed.hpp"

namespace regroup::tool {
namespace {

/// Writes consecutive elements of type T into y, from place `first` on.
template <class T>
void convert(const T* from, const result& y, index first, index count) {
  const auto fill = [&](auto* to) {
    for (index i = 0; i < count; ++i) {
      to[i] = static_cast<std::remove_pointer_t<decltype(to)>>(regroup::widen(from[i]));
    }
  };
  if (y.type() == element::boolean) {
    for (index i = 0; i < count; ++i) y.as<std::uint8_t>()[first + i] = static_cast<bool>(from[i]) ? 1 : 0;
  }
  if (y.type() == element::float32) fill(y.as<float>() + first);
  if (y.type() == element::float64) fill(y.as<double>() + first);
}

}  // namespace

arriving::arriving(const std::string& path) {
  if (path != "-") {
    whole_ = open_array(path);
    return;
  }
  stream_.emplace(STDIN_FILENO);
  if (!stream_->about().fortran_order) return;
  whole_ = stream_->spool();
  stream_.reset();
}

input arriving::whole(const result& y) {
  if (!stream_) return *whole_;
  if (y.type() == type()) {
    stream_->read(y.data(), size());
  } else {
    constexpr index block = index{1} << 17;
    std::vector<std::uint64_t> elements(static_cast<std::size_t>(std::min(block, std::max<index>(size(), 1))));
    for (index first = 0; first < size(); first += block) {
      const index count = std::min(block, size() - first);
      stream_->read(elements.data(), count);
      with_any(type(), [&]<class T>(std::type_identity<T>) {
        convert(reinterpret_cast<const T*>(elements.data()), y, first, count);
      });
    }
  }
  description about = stream_->about();
  about.type = y.type();
  about.swapped = false;
  return input(name(), about, {y.data(), [](const void*) {}});
}

}  // namespace regroup::tool

// SPDX-License-Identifier: Apache-2.0
// Arrays for the attention target: memory of exactly the size that a view's extents and strides reach, so that a
// sanitizer sees any step beyond it, with strides in any order, padded, negative, or 0 where an axis repeats.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>

#include "choices.hpp"
#include "regroup/float16.hpp"
#include "regroup/view.hpp"

namespace fuzz {

/// Numbers in [-2, 2], a few of them very near 0; the same ones for the same seed everywhere.
class numbers {
 public:
  explicit numbers(unsigned seed) : random_(seed) {}
  float operator()() {
    const auto x = static_cast<float>(static_cast<double>(random_() % 4001) / 1000 - 2);
    return random_() % 50 == 0 ? x * 1e-20F : x;
  }

 private:
  std::mt19937 random_;
};

template <class T>
class array {
 public:
  /// Axes of extent `e` in an order, and with steps and signs, that the choices make; `repeats` allows strides of 0.
  array(choices& c, const regroup::shape& e, bool repeats) {
    regroup::shape strides = e;
    regroup::shape order;
    for (int a = 0; a < e.size(); ++a) order.push_back(a);
    const auto layout = c.byte();
    const auto turns = layout < 128 ? 0 : c.byte();  // half of all arrays are in C order
    for (int a = 0; a < turns % 4 && e.size() > 1; ++a)
      std::swap(order[a % e.size()], order[(turns / 4 + a) % e.size()]);
    index step = turns % 3 == 1 ? 2 : 1, first = 0, reach = 0;
    for (int i = e.size() - 1; i >= 0; --i) {
      const auto axis = static_cast<int>(order[i]);
      const auto form = turns == 0 ? 0 : c.byte() % 8;
      const bool still = repeats && form == 7;
      strides[axis] = still ? 0 : form == 5 ? -step : step;
      if (still) continue;
      if (form == 5) first += (e[axis] - 1) * step;
      reach += (e[axis] - 1) * step;
      step = step * e[axis] + (form == 3);
    }
    const bool is_empty = regroup::view<T>(nullptr, e).size() == 0;
    size_ = is_empty ? 0 : static_cast<std::size_t>(reach) + 1;
    memory_.reset(static_cast<T*>(std::malloc(std::max<std::size_t>(size_ * sizeof(T), 1))));
    view = regroup::view<T>(memory_.get() + (is_empty ? 0 : first), e, strides);
  }
  template <class Numbers>
  array& fill(Numbers&& next) {
    for (T& x : all()) x = static_cast<T>(next());
    return *this;
  }
  /// Everything that the view may reach, gaps included.
  std::span<T> all() { return {memory_.get(), size_}; }
  [[nodiscard]] regroup::view<const T> in() const { return view; }

  regroup::view<T> view;

 private:
  struct release {
    void operator()(T* p) const { std::free(p); }
  };
  std::size_t size_ = 0;
  std::unique_ptr<T[], release> memory_;
};

}  // namespace fuzz

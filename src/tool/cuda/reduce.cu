// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <memory>
#include <type_traits>

#include "../members_of.hpp"
#include "gpu.cuh"

namespace regroup::tool {
namespace {

/// Whether a GPU is asked for this monoid over X (`reduced_in`): not for what owns memory, and integers not as reals.
template <class X, class M>
inline constexpr bool is_asked_for =
    std::is_trivially_copyable_v<state_of<M>> && !std::is_same_v<M, any> && !std::is_same_v<M, all> &&
    !std::is_same_v<M, count> &&
    (!std::is_integral_v<X> || !(std::is_same_v<M, mean<double>> || std::is_same_v<M, moments<double>> ||
                                 std::is_same_v<M, log_sum_exp<double>>));

class reducer {
 public:
  reducer(const cuda::device& on, const plain_rows& x, index first) : on_(on), x_(x), first_(first) {}

  /// write(row, answer) for every row.
  template <class X, bool Positioned, class M, class Write>
  void run(const device_array<X>& elements, const M& m, const Write& write) const {
    using answer = answer_of<M>;
    const device_array<answer> there(on_, x_.count);
    const auto all = cuda::device_view<const X>(elements.data(), {x_.count, x_.length});
    reduce_rows(on_, all, there.view({x_.count}), m, std::conditional_t<Positioned, with_position, std::identity>{});
    const auto here = std::make_unique<answer[]>(static_cast<std::size_t>(x_.count));
    there.copy_to(here.get());
    for (index row = 0; row < x_.count; ++row) write(first_ + row, here[static_cast<std::size_t>(row)]);
  }

  template <class X>
  void numbers(std::span<const reduction> all) const {
    const device_array<X> elements(on_, x_.data, x_.count * x_.length);
    for (const reduction& r : all) {
      with_monoid<X>(r.monoid, r.to, [&]<class M, bool Positioned>(const M& m, const auto& write,
                                                                   std::bool_constant<Positioned>) {
        if constexpr (is_asked_for<X, M>) run<X, Positioned>(elements, m, write);
      });
    }
  }

  void truth(std::span<const reduction> them) const {
    const device_array<std::uint8_t> elements(on_, x_.data, x_.count * x_.length);
    for (const reduction& r : them) {
      const auto write = [&r](index row, const auto& answer) { put(*r.to.values, row, answer); };
      if (r.monoid.name == "any") run<std::uint8_t, false>(elements, any{}, write);
      if (r.monoid.name == "all") run<std::uint8_t, false>(elements, all{}, write);
      if (r.monoid.name == "count") run<std::uint8_t, false>(elements, count{}, write);
    }
  }

 private:
  const cuda::device& on_;
  const plain_rows& x_;
  index first_;
};

}  // namespace

void cuda_gpu::reduce(const plain_rows& x, index first, std::span<const reduction> all) const {
  const reducer r(on_, x, first);
  if (x.type == element::float32) r.numbers<float>(all);
  if (x.type == element::float64) r.numbers<double>(all);
  if (x.type == element::int64) r.numbers<std::int64_t>(all);
  if (x.type == element::boolean) r.truth(all);
}

}  // namespace regroup::tool

// SPDX-License-Identifier: Apache-2.0
#include "regroup/algorithms/attention_state.hpp"

#include "regroup/saving.hpp"

namespace regroup {

namespace {
constexpr std::uint64_t magic = 0x6e74746170706772;  // "rgppattn"
}

template <std::floating_point Real>
attention_state<Real>::attention_state(const view<const Real>& m, const view<const Real>& l, const view<const Real>& o)
    : attention_state(m.extents(), o.rank() == 0 ? 0 : o.extent(o.rank() - 1)) {
  attention_fold::require_state_shapes(m.extents(), l.extents(), o.extents());
  const auto copy = [](const view<const Real>& from, std::vector<Real>& to) {
    for (index i = 0; i < from.size(); ++i) {
      to[static_cast<std::size_t>(i)] = from.data()[offset_of(i, from.extents(), from.strides())];
    }
  };
  copy(m, states_.m);
  copy(l, states_.l);
  copy(o, states_.o);
  for (std::size_t i = 0; i < states_.m.size(); ++i) {
    if (states_.m[i] != Real{hidden}) continue;
    states_.l[i] = 0;
    std::fill_n(states_.o.data() + i * static_cast<std::size_t>(dv_), dv_, -Real{});
  }
}

template <std::floating_point Real>
attention_state<Real> attention_state<Real>::from_normalised(const view<const Real>& o,
                                                             const view<const Real>& logsumexp, Real to_natural) {
  const Real one = 1;
  shape still = logsumexp.extents();
  for (index& stride : still) stride = 0;
  attention_state result(logsumexp, view<const Real>(&one, logsumexp.extents(), still), o);
  for (std::size_t i = 0; i < result.states_.m.size(); ++i) {
    Real& m = result.states_.m[i];
    m = m * to_natural + 0;
    if (m != m) result.states_.l[i] = m;
  }
  return result;
}

template <std::floating_point Real>
void attention_state<Real>::merge(const attention_state& other) {
  if (other.is_of_nothing()) return;
  if (is_of_nothing()) {
    *this = other;
    return;
  }
  attention_fold::require_same_queries(o().extents(), other.o().extents());
  const auto& from = other.states_;  // may be these states: each number is read before it is written
  attention_fold::merge(static_cast<index>(states_.m.size()), dv_, states_.m.data(), states_.l.data(), states_.o.data(),
                        from.m.data(), from.l.data(), from.o.data());
}

template <std::floating_point Real>
std::vector<std::byte> attention_state<Real>::save() const {
  streams::writer to;
  to.put(magic);
  to.put(order_version);
  to.put(static_cast<std::uint32_t>(sizeof(Real)));
  to.put_all(std::vector<index>(outer_.begin(), outer_.end()));
  to.put(dv_);
  to.put_all(states_.m);
  to.put_all(states_.l);
  to.put_all(states_.o);
  return std::move(to).finish();
}

template <std::floating_point Real>
attention_state<Real> attention_state<Real>::load(std::span<const std::byte> bytes) {
  using streams::reader;
  reader from(bytes);
  reader::require(from.take<std::uint64_t>() == magic, "these bytes are not a saved attention state");
  reader::require(from.take<std::uint32_t>() == order_version,
                  "this attention state was saved under another order version");
  reader::require(from.take<std::uint32_t>() == sizeof(Real), "this attention state was saved with another real type");
  const auto extents = from.take_all<index>();
  const auto dv = from.take<index>();
  reader::require(extents.size() <= 3, "a saved attention state has more than 3 axes (batch, heads, queries)");
  index numbers = std::max<index>(dv, 1);
  bool fits = dv >= 0;
  for (const index n : extents) fits = fits && n >= 0 && !__builtin_mul_overflow(numbers, std::max<index>(n, 1), &numbers);
  reader::require(fits, "a saved attention state has a negative extent, or more numbers than 64 bits count");
  const shape outer(extents);
  attention_state result;
  result.outer_ = outer;
  result.dv_ = dv;
  result.states_.m = from.take_all<Real>();
  result.states_.l = from.take_all<Real>();
  result.states_.o = from.take_all<Real>();
  reader::require(from.left() == 0 &&
                      static_cast<index>(result.states_.m.size()) == view<Real>(nullptr, outer).size() &&
                      result.states_.l.size() == result.states_.m.size() &&
                      result.states_.o.size() == result.states_.m.size() * static_cast<std::size_t>(dv),
                  "a saved attention state's arrays do not fit its extents");
  return result;
}

template class attention_state<float>;
template class attention_state<double>;

}  // namespace regroup

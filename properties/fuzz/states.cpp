// SPDX-License-Identifier: Apache-2.0
// Any bytes, with a right checksum or not, as a saved accumulator or attention state: a format_error, or a state that
// saves itself as it was loaded and goes on as its copy does, whatever positions and numbers it holds.
#include <bit>
#include <utility>

#include "choices.hpp"
#include "regroup/algorithms/attention_state.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/stream.hpp"

namespace {

using fuzz::index;
using fuzz::require;

/// The bytes behind the choices; by another choice with a checksum, magic and version that are right.
std::vector<std::byte> saved_bytes(fuzz::choices& c, std::uint64_t magic) {
  const bool honest = c.one_in(4);
  regroup::streams::writer forged;
  if (!honest) {
    forged.put(magic);
    forged.put(regroup::order_version);
  }
  std::vector<std::byte> raw;
  for (const std::uint8_t b : c.rest()) {
    raw.push_back(static_cast<std::byte>(b));
    if (!honest) forged.put(b);
  }
  return honest ? raw : std::move(forged).finish();
}

template <class M>
void accumulator(fuzz::choices& c) {
  using accumulated = regroup::accumulator<M>;
  const M m{};
  const index count = 1 + 61 * c.below(100);
  const std::vector<std::byte> bytes = saved_bytes(c, regroup::streams::magic);
  try {
    accumulated first = accumulated::load(m, bytes);
    const std::vector<std::byte> again = first.save();
    require(again.size() <= bytes.size(), "a state does not grow by being loaded");
    accumulated second = accumulated::load(m, again);
    require(second.save() == again, "a state that was saved is loaded as it was");
    (void)first.value();
    const std::vector<regroup::lifted_element<M>> elements(static_cast<std::size_t>(count));
    for (accumulated* const one : {&first, &second}) {
      const index before = one->size();
      try {
        one->push(elements);
        require(one->size() == before + count, "what is pushed is counted");
      } catch (const regroup::argument_error&) {  // no positions are left
        require(one->size() == before, "what is refused is not counted");
      }
      (void)one->value();
    }
    require(first.save() == second.save(), "a loaded copy goes on as the state does");
    first.merge(second);
    (void)first.value();
    (void)accumulated::load(m, first.save());
  } catch (const regroup::format_error& e) {
    require(std::string(e.what()).size() > 20, "a refusal is a sentence");
  } catch (const regroup::argument_error& e) {
    require(std::string(e.what()).size() > 20, "a refusal is a sentence");
  }
}

template <class Real>
void attention_state(fuzz::choices& c) {
  using state = regroup::attention_state<Real>;
  const std::vector<std::byte> bytes = saved_bytes(c, 0x6e74746170706772);
  try {
    state loaded = state::load(bytes);
    require(loaded.save() == bytes, "an attention state saves itself as it was loaded");
    const state copy(loaded.m(), loaded.l(), loaded.o());
    std::vector<Real> out(static_cast<std::size_t>(loaded.o().size()));
    std::vector<Real> lse(static_cast<std::size_t>(loaded.m().size()));
    const auto normalise = [&](const state& s) {
      s.normalise(regroup::view<Real>(out.data(), s.o().extents()), regroup::view<Real>(lse.data(), s.m().extents()));
    };
    normalise(copy);
    loaded.merge(state(loaded.m().extents(), loaded.o().extent(loaded.o().rank() - 1)));
    normalise(loaded);
    loaded.merge(copy);
    normalise(loaded);
  } catch (const regroup::format_error& e) {
    require(std::string(e.what()).size() > 20, "a refusal is a sentence");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::choices c(data, size);
  switch (c.below(7)) {
    case 0:
      accumulator<regroup::plus<float>>(c);
      break;
    case 1:
      accumulator<regroup::plus<std::int64_t>>(c);
      break;
    case 2:
      accumulator<regroup::log_sum_exp<float>>(c);
      break;
    case 3:
      accumulator<regroup::argmin<double>>(c);
      break;
    case 4:
      accumulator<regroup::affine<float>>(c);
      break;
    case 5:
      attention_state<float>(c);
      break;
    default:
      attention_state<double>(c);
      break;
  }
  return 0;
}

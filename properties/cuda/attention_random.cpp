// SPDX-License-Identifier: Apache-2.0
// Calls of attention drawn at random (attention_calls.hpp), by emulated kernels: on plain arithmetic the bits of the host's,
// on tensor cores within the bound of the definition. A GPU makes the same calls (attention.cu).
#include "attention_calls.hpp"

#include "attentions.hpp"
#include "folds.hpp"

namespace {

namespace cuda = regroup::cuda;
using regroup::index;

template <class Arithmetic, class T, class Out>
calls::results<Out> emulated_call(const calls::call<T>& c, unsigned seed) {
  return c.on_a_device([](const auto& x) { return x.data(); }, [&](const auto& q, const auto& keys, const auto& options) {
    using mask = std::remove_cvref_t<decltype(options.mask)>;
    emulated::machine on(emulated::schedule::random, seed);
    auto got = emulated::attend<T, Out, mask, Arithmetic>(on, q, keys, options, static_cast<int>(seed % 3) * 50 + 1);
    calls::results<Out> r;
    r.out.values = got.out.values;
    r.lse.values = got.lse.values;
    return r;
  });
}

TEST(random_device_attention, plain_arithmetic_has_the_bits_of_the_host) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const calls::call<float> c(seed, 20, seed % 5 == 0 ? 1200 : 150);
    const auto got = emulated_call<cuda::plain_arithmetic, float, float>(c, seed), host = c.on_the_host<float>();
    ASSERT_EQ(order::digest_of(got.out.values), order::digest_of(host.out.values)) << seed;
    ASSERT_EQ(order::digest_of(got.lse.values), order::digest_of(host.lse.values)) << seed;
  }
}

template <class T>
struct random_tensor_cores : testing::Test {};
using types = testing::Types<float, regroup::float16, regroup::bfloat16>;
TYPED_TEST_SUITE(random_tensor_cores, types);

TYPED_TEST(random_tensor_cores, within_the_bound) {
  double worst = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const calls::call<TypeParam> c(100 + seed, 20, seed % 5 == 0 ? 1200 : 150);
    const double ratio = c.ratio(emulated_call<cuda::tensor_arithmetic, TypeParam, float>(c, seed), true);
    ASSERT_LE(ratio, 1) << seed;
    worst = std::max(worst, ratio);
  }
  EXPECT_GT(worst, 0.001);
  this->RecordProperty("worst_part_of_the_bound", std::to_string(worst));
}

}  // namespace

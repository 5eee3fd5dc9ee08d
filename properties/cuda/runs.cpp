// SPDX-License-Identifier: Apache-2.0
// reduce_by_key on a device, emulated: the runs that one scan finds, their first keys and their answers are the host's, for
// runs of any mix of lengths, strided keys, and keys that are equal to no key.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "../order/recorder.hpp"
#include "folds.hpp"
#include "regroup/cuda/runs.hpp"
#include "regroup/host/seq.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/reduce.hpp"

namespace {

using order::word;
using regroup::strided;
namespace cuda = regroup::cuda;

template <class Key>
struct grouped {
  std::vector<Key> keys;
  std::vector<word> answers;
};

/// As cuda::reduce_by_key does it, on a machine of the host's.
template <class Key, class M>
grouped<Key> by_key(emulated::machine& on, const strided<const Key>& keys, const std::vector<word>& xs, const M& m) {
  const std::int64_t n = keys.size();
  const emulated::device_memory<std::int64_t> offsets(n + 1, -1), runs(1, -1);
  const cuda::heads_of_runs<Key> heads{keys};
  const cuda::starts_of_runs<Key> starts{heads, offsets.data(), runs.data()};
  emulated::scan<regroup::scan_kind::inclusive>(on, regroup::plus<std::int64_t>{}, cuda::one_source{regroup::single{heads}},
                                                cuda::one_source{regroup::single{starts}});
  const std::int64_t count = runs[0];
  grouped<Key> found{std::vector<Key>(static_cast<std::size_t>(count)), {}};
  on.run(cuda::put_first_keys<Key, Key>{keys, offsets.data(), {found.keys.data(), count, 1}}, (count + 127) / 128);
  const cuda::segment_batch<const word, std::int64_t> rows{xs.data(), offsets.data(), count, n};
  for (const word s : emulated::fold(on, m, rows)) found.answers.push_back(m.lower(s));
  return found;
}

template <class Key>
void expect_the_hosts(const std::vector<Key>& memory, std::int64_t stride, const std::string& where) {
  const auto n = static_cast<std::int64_t>(memory.size()) / stride;
  const auto xs = order::elements(n);
  const order::hashed<order::rule::pieces> m;
  grouped<Key> expected{std::vector<Key>(xs.size()), std::vector<word>(xs.size())};
  const regroup::view<const Key> keys(memory.data(), {n}, {stride});
  const auto runs = regroup::reduce_by_key(regroup::seq, keys, xs, expected.keys, expected.answers, m);
  expected.keys.resize(static_cast<std::size_t>(runs));
  expected.answers.resize(static_cast<std::size_t>(runs));
  emulated::machine on(emulated::schedule::random, static_cast<std::uint64_t>(n));
  const auto got = by_key(on, strided<const Key>{memory.data(), n, stride}, xs, m);
  ASSERT_EQ(got.answers, expected.answers) << where;
  ASSERT_EQ(got.keys.size(), expected.keys.size()) << where;
  for (std::size_t r = 0; r < got.keys.size(); ++r) {
    ASSERT_TRUE(got.keys[r] == expected.keys[r] || got.keys[r] != got.keys[r]) << where << ", run " << r;
  }
}

}  // namespace

TEST(runs, of_any_mix_of_lengths) {
  order::dice random(11);
  for (const std::int64_t n : {1, 2, 128, 129, 1025, 4096, 4097, 3 * 4096 + 5}) {
    if (order::small() && n > 1025) return;
    for (const std::int64_t typical : {1, 9, 2000, 100'000}) {
      std::vector<int> keys;
      for (int key = 0; static_cast<std::int64_t>(keys.size()) < n; key = 1 - key) {
        keys.insert(keys.end(), static_cast<std::size_t>(random(1, typical)), key);
      }
      keys.resize(static_cast<std::size_t>(n));
      expect_the_hosts(keys, 1, std::to_string(n) + " keys, runs up to " + std::to_string(typical));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(runs, of_strided_keys_and_nan) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  expect_the_hosts<float>({1, 9, 1, 9, none, 9, none, 9, 0.0f, 9, -0.0f, 9, 2, 9}, 2, "every second key");
}

// SPDX-License-Identifier: Apache-2.0
// Tests of the emulator itself: what it computes, and that it refuses each kind of broken kernel with its own sentence.
#include "emulator.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace {

/// A barrier of the cluster.
template <class B>
void meet(B& b) {
  b.cluster_arrive(true);
  b.cluster_wait();
}

using emulated::broken_kernel;
using emulated::machine;
using emulated::schedule;
using regroup::cuda::block;

/// A kernel from a function of the block.
template <class F>
struct kernel {
  F f;
  template <block Block>
  void operator()(Block& b) const {
    f(b);
  }
};
template <class F>
kernel(F) -> kernel<F>;

/// What a machine says of a kernel of one cluster of blocks of 64 threads under every schedule; "" where it runs.
template <class F>
std::string verdict(const F& f, int blocks = 1) {
  std::string said;
  for (const auto order : {schedule::forward, schedule::backward, schedule::random}) {
    machine on(order, 5);
    try {
      on.run(kernel{f}, blocks, 64, blocks);
    } catch (const broken_kernel& e) {
      if (!said.empty() && said != e.what()) return said + " | " + e.what();
      said = e.what();
    }
  }
  return said;
}

}  // namespace

TEST(emulator, every_thread_of_every_block_runs_once) {
  std::vector<int> runs(3 * 128, 0);
  machine on;
  on.run(kernel{[&](auto& b) {
           ASSERT_EQ(b.blocks(), 3);
           ++runs[static_cast<std::size_t>(b.block() * 128 + b.thread())];
         }},
         3);
  EXPECT_EQ(runs, std::vector<int>(3 * 128, 1));
}

TEST(emulator, shuffles_and_broadcasts_stay_in_their_group) {
  std::vector<int> down(64, -1);
  std::vector<int> up(64, -1);
  std::vector<int> across(64, -1);
  std::vector<int> first(64, -1);
  EXPECT_EQ(verdict([&](auto& b) {
              const auto t = static_cast<std::size_t>(b.thread());
              down[t] = b.template shuffle_down<8>(b.thread(), 3);
              up[t] = b.template shuffle_up<8>(b.thread(), 3);
              across[t] = b.template shuffle_xor<8>(b.thread(), 5);
              first[t] = b.template broadcast<4>(b.thread());
            }),
            "");
  for (int t = 0; t < 64; ++t) {
    EXPECT_EQ(down[static_cast<std::size_t>(t)], t % 8 < 5 ? t + 3 : t) << t;
    EXPECT_EQ(up[static_cast<std::size_t>(t)], t % 8 >= 3 ? t - 3 : t) << t;
    EXPECT_EQ(across[static_cast<std::size_t>(t)], t ^ 5) << t;
    EXPECT_EQ(first[static_cast<std::size_t>(t)], t / 4 * 4) << t;
  }
}

TEST(emulator, groups_may_part) {  // as teams with rows of different lengths do
  EXPECT_EQ(verdict([](auto& b) {
              for (int i = 0; i < b.thread() / 8; ++i) b.template shuffle_down<8>(i, 1);
            }),
            "");
}

TEST(emulator, a_barrier_orders_shared_memory) {
  EXPECT_EQ(verdict([](auto& b) {
              auto x = b.template shared<int, 64>();
              x.set(b.thread(), b.thread());
              b.barrier();
              EXPECT_EQ(x.get(63 - b.thread()), 63 - b.thread());
            }),
            "");
}

TEST(emulator, a_group_barrier_orders_its_group_alone) {
  const auto neighbour_at = [](int distance) {
    return [distance](auto& b) {
      auto x = b.template shared<int, 64>();
      x.set(b.thread(), 1);
      b.template group_barrier<32>();
      x.get(b.thread() ^ distance);
    };
  };
  EXPECT_EQ(verdict(neighbour_at(16)), "");
  EXPECT_NE(verdict(neighbour_at(32)), "");
}

TEST(emulator, refuses_a_read_of_what_nobody_wrote) {
  EXPECT_EQ(verdict([](auto& b) { b.template shared<int, 4>().get(b.thread() % 4); }),
            "shared memory is read that nobody wrote");
  const auto memory_of_the_block_before = [](auto& b) {
    auto x = b.template shared<int, 64>();
    if (b.block() == 0) x.set(b.thread(), 1);
    if (b.block() == 1) x.get(b.thread());
  };
  machine on;
  EXPECT_THROW(on.run(kernel{memory_of_the_block_before}, 2), broken_kernel);
}

TEST(emulator, refuses_races_whoever_runs_first) {
  EXPECT_EQ(verdict([](auto& b) { b.template shared<int, 1>().set(0, b.thread()); }), "two writes race");
  const auto reads_its_neighbour = verdict([](auto& b) {
    auto x = b.template shared<int, 64>();
    x.set(b.thread(), 1);
    b.barrier();
    x.get((b.thread() + 1) % 64);
    x.set(b.thread(), 2);
  });
  EXPECT_NE(reads_its_neighbour.find("a read races with a write"), std::string::npos) << reads_its_neighbour;
  EXPECT_NE(reads_its_neighbour.find("a write races with a read"), std::string::npos) << reads_its_neighbour;
}

TEST(emulator, a_copy_is_there_after_its_wait_and_for_others_a_barrier_later) {
  struct alignas(16) piece {
    int x[4];
  };
  std::vector<piece> memory(64);
  for (int i = 0; i < 64; ++i) memory[static_cast<std::size_t>(i)] = {{i, 0, 0, -i}};
  const auto copies = [&](bool waits, bool meets, int distance, bool aligned = true) {
    return verdict([&, waits, meets, distance, aligned](auto& b) {
      const auto x = b.template shared<piece, 64>();
      const int t = b.thread();
      const char* const from = reinterpret_cast<const char*>(&memory[static_cast<std::size_t>(t)]) + (aligned ? 0 : 4);
      b.copy(x, t, from, t % 2 == 0);
      if (waits) b.wait_for_copies();
      if (meets) b.barrier();
      const int of = t ^ distance;
      EXPECT_EQ(x.get(of).x[0], of % 2 == 0 ? of : 0);
      EXPECT_EQ(x.get(of).x[3], of % 2 == 0 ? -of : 0);
    });
  };
  EXPECT_EQ(copies(true, false, 0), "");
  EXPECT_EQ(copies(true, true, 2), "");
  EXPECT_NE(copies(true, false, 2), "");
  EXPECT_EQ(copies(false, true, 0), "a read does not wait for a copy");
  EXPECT_EQ(copies(false, true, 2), "a read does not wait for a copy");
  EXPECT_EQ(copies(true, true, 0, false), "a copy from an address that is not aligned");
  EXPECT_EQ(verdict([&](auto& b) {
              const auto x = b.template shared<piece, 64>();
              b.copy(x, b.thread(), memory.data(), true);
              x.set(b.thread(), {});
            }),
            "a write does not wait for a copy");
}

TEST(emulator, refuses_a_barrier_that_some_threads_miss) {
  EXPECT_EQ(verdict([](auto& b) {
              if (b.thread() != 7) b.barrier();
            }),
            "a thread has returned that others wait for");
  EXPECT_EQ(verdict([](auto& b) {
              if (b.thread() < 32) {
                b.barrier();
              } else {
                b.template shuffle_down<32>(1, 1);
                b.template group_barrier<16>();
                b.template shuffle_down<32>(1, 1);
                if (b.thread() < 48) b.barrier();
                if (b.thread() >= 48) b.template group_barrier<32>();
              }
            }),
            "threads wait for each other in different operations");
}

TEST(emulator, blocks_of_a_cluster_reach_each_others_memory) {
  std::vector<int> seen(6 * 64, -1);
  machine on(schedule::random, 3);
  on.run(kernel{[&](auto& b) {
           auto x = b.template shared<int, 64>();
           x.set(b.thread(), static_cast<int>(b.block()) * 64 + b.thread());
           meet(b);
           const int next = (b.cluster_rank() + 1) % b.cluster_blocks();
           const auto theirs = b.template shared_of<int, 64>(next);
           seen[static_cast<std::size_t>(b.block() * 64 + b.thread())] = theirs.get(63 - b.thread());
           meet(b);
         }},
         6, 64, 3);
  for (int block = 0; block < 6; ++block) {
    for (int t = 0; t < 64; ++t) {
      const int of = block / 3 * 3 + (block + 1) % 3;
      EXPECT_EQ(seen[static_cast<std::size_t>(block * 64 + t)], of * 64 + 63 - t);
    }
  }
}

TEST(emulator, refuses_what_only_a_barrier_of_the_cluster_makes_safe) {
  const auto reads = [](bool before, bool after) {
    return verdict([=](auto& b) {
      auto x = b.template shared<int, 64>();
      x.set(b.thread(), 1);
      before ? meet(b) : b.barrier();
      b.template shared_of<int, 64>(1 - b.cluster_rank()).get(b.thread());
      after ? meet(b) : b.barrier();
    }, 2);
  };
  EXPECT_EQ(reads(true, true), "");
  EXPECT_EQ(reads(false, true), "shared memory of a block that may not have begun");
  EXPECT_EQ(reads(true, false), "a block leaves while another may use its shared memory");
  const auto races = verdict([](auto& b) {
    auto x = b.template shared<int, 64>();
    meet(b);
    x.set(b.thread(), 1);
    b.barrier();
    b.template shared_of<int, 64>(1 - b.cluster_rank()).get(b.thread());
    meet(b);
  }, 2);
  EXPECT_NE(races.find("a read races with a write"), std::string::npos) << races;
  const auto late = verdict([](auto& b) {
    b.template shared<int, 1>();
    meet(b);
    if (b.cluster_rank() == 0 && b.thread() == 0) b.template shared_of<int, 1>(1).set(0, 1);
  }, 2);
  EXPECT_NE(late.find("block"), std::string::npos) << late;
  EXPECT_EQ(verdict([](auto& b) {
              if (b.cluster_rank() == 0) meet(b);
            }, 2),
            "a thread has returned that others wait for");
}

TEST(emulator, refuses_what_comes_between_arriving_and_waiting) {
  EXPECT_EQ(verdict([](auto& b) { b.cluster_wait(); }, 2), "a thread waits for its cluster before it has arrived");
  const auto says = [](bool has_written) {
    return verdict([=](auto& b) {
      meet(b);
      b.template shared_of<int, 64>(1 - b.cluster_rank()).set(b.thread(), 1);
      b.cluster_arrive(has_written);
      b.cluster_wait();
    }, 2);
  };
  EXPECT_EQ(says(true), "");
  EXPECT_EQ(says(false), "a thread arrives that does not say what it has written");
  EXPECT_EQ(verdict([](auto& b) {
              meet(b);
              b.cluster_arrive(true);
              b.template shared_of<int, 64>(1 - b.cluster_rank()).set(b.thread(), 1);
              b.cluster_wait();
            }, 2),
            "shared memory of another block after arriving at a barrier");
  const auto writes = [](bool before) {
    return verdict([=](auto& b) {
      auto x = b.template shared<int, 64>();
      if (before) x.set(b.thread(), 1);
      b.cluster_arrive(true);
      if (!before) x.set(b.thread(), 1);
      b.cluster_wait();
      b.template shared_of<int, 64>(1 - b.cluster_rank()).get(b.thread());
      meet(b);
    }, 2);
  };
  EXPECT_EQ(writes(true), "");
  EXPECT_EQ(writes(false), "a read races with a write");
}

TEST(emulator, refuses_an_index_outside_an_array) {
  EXPECT_EQ(verdict([](auto& b) {
              if (b.thread() == 0) b.template shared<int, 4>().set(-1, 0);
            }),
            "index -1 of 4");
}

TEST(emulator, hands_on_what_a_kernel_throws) {
  machine on;
  const auto throws = [](auto& b) {
    b.barrier();
    if (b.thread() == 5) throw std::string("five");
    b.barrier();
  };
  EXPECT_THROW(on.run(kernel{throws}, 2), std::string);
}

#if defined(__SANITIZE_ADDRESS__)
/// A thread's own frames are watched, and still after others have run.
TEST(emulator, a_threads_own_array_has_an_end) {
  const auto writes_at = [](int place) {
    return verdict([=](auto& b) {
      int own[4] = {};
      int* const first = own;
      b.barrier();
      *const_cast<volatile int*>(first + place) = b.thread();
      b.barrier();
    });
  };
  EXPECT_EQ(writes_at(3), "");
  EXPECT_DEATH(writes_at(4), "stack-buffer-overflow");
}
#endif

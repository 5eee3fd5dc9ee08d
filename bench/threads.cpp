// SPDX-License-Identifier: Apache-2.0
// threads/plus|log_sum_exp/fp32/1K ... 1M: what forking and joining costs a small reduction: ours as it is called,
// beside the same on the calling thread only, OpenMP, TBB and a pool that spins before it sleeps. No limit of the
// machine's: these arrays are in the caches.
#include <atomic>
#include <functional>
#include <thread>

#include "generic.hpp"
#include "regroup/regroup.hpp"

namespace bench {
namespace {

/// Workers that look for work for some 50 microseconds before they sleep: the least that handing out work can cost.
class spinning {
 public:
  explicit spinning(int threads) {
    for (int i = 1; i < threads; ++i) {
      workers_.emplace_back([this, i](const std::stop_token& stop) {
        for (unsigned seen = 0;; ++seen) {
          for (int tries = 0; tries < 50'000 && turn_.load(std::memory_order_acquire) == seen; ++tries) {
          }
          turn_.wait(seen, std::memory_order_acquire);
          if (stop.stop_requested()) return;
          work_(i);
          left_.fetch_sub(1, std::memory_order_release);
        }
      });
    }
  }
  ~spinning() {
    for (auto& worker : workers_) worker.request_stop();
    turn_.fetch_add(1);
    turn_.notify_all();
  }
  /// f(0) here, f(1), ... on the workers.
  template <class F>
  void operator()(const F& f) {
    work_ = std::ref(f);
    left_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
    turn_.fetch_add(1, std::memory_order_release);
    turn_.notify_all();
    f(0);
    while (left_.load(std::memory_order_acquire) != 0) {
    }
  }

 private:
  std::function<void(int)> work_;
  std::atomic<unsigned> turn_ = 0;
  std::atomic<int> left_ = 0;
  std::vector<std::jthread> workers_;
};

template <class M>
void contend(program& p, const M& m) {
  const auto x = p.input<float>("x");
  const auto all = std::span<const float>(x.data(), static_cast<std::size_t>(x.size()));
  const auto add = [&](const std::string& who, auto body) {
    auto result = std::make_shared<std::vector<double>>();
    p.add(
        who, [=, keep = x] { *result = {static_cast<double>(body())}; }, [=] { return *result; });
  };
  p.with_executor([&](const auto& ex) { add("ours", [=] { return regroup::reduce(ex, all, m); }); });
  if (p.threads == 1) return;
  add("ours, calling thread", [=] { return regroup::reduce(regroup::seq, all, m); });
  const auto see = [](const float& e) { return e; };
  // Our loop on somebody else's threads: what differs is the fork and the join.
  const auto pieces = [=, threads = p.threads](auto&& on_threads) {
    std::vector<regroup::state_of<M>> parts(static_cast<std::size_t>(threads), m.identity());
    on_threads([&](int i) {
      const index n = x.size(), of = static_cast<index>(parts.size());
      const index first = n * i / of, last = n * (i + 1) / of;
      const auto part = all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
      auto& mine = parts[static_cast<std::size_t>(i)];
      regroup::seq.fold(regroup::single{regroup::as_source(part)}, m, [&](index, const auto& s) { mine = s; });
    });
    auto s = m.identity();
    for (const auto& part : parts) s = m(s, part);
    return regroup::lower(m, s);
  };
  add("OpenMP, our loop", [=, threads = p.threads] {
    return pieces([=](const auto& f) {
#pragma omp parallel num_threads(threads)
      f(omp_get_thread_num());
    });
  });
  const auto pool = std::make_shared<std::unique_ptr<spinning>>();
  add("spinning threads, our loop", [=, threads = p.threads] {
    if (*pool == nullptr) *pool = std::make_unique<spinning>(threads);
    return pieces(**pool);
  });
  generic::each<true>(p.threads, [&](const std::string& name, const auto& loop) {
    add(name, [=] { return regroup::lower(m, loop(x, m, see)); });
  });
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::main_of(argc, argv, [](bench::program& p) {
    if (p.work.what == "plus") return bench::contend(p, regroup::plus<float>{});
    if (p.work.what == "log_sum_exp") return bench::contend(p, regroup::log_sum_exp<float>{});
    throw std::invalid_argument("no such work: threads/" + p.work.what);
  });
}

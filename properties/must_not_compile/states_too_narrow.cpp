// expect: regroup: of these elements the combine returns more than `identity()`'s type holds, the state's: return one of theirs
// expect: regroup: this `lower` returns a view of a state, which is gone by then: let it return what it shows
// expect: regroup: what a monoid declares of itself is a bool, `static constexpr bool is_commutative = true`
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"

struct sum {
  auto identity() const { return 0; }
  auto operator()(auto a, auto b) const { return a + b; }
};
struct largest {
  int identity() const { return 0; }
  auto operator()(auto a, auto b) const { return a < b ? b : a; }
};
struct all_words {
  std::string identity() const { return {}; }
  std::string operator()(std::string a, const std::string& b) const { return a + b; }
  std::string_view lower(const std::string& all) const { return all; }
};
struct commutes {
  static constexpr bool is_commutative() { return false; }
  int identity() const { return 0; }
  int operator()(int a, int) const { return a; }
};

int main() {
  (void)regroup::reduce(regroup::seq, std::vector<double>(9), sum{});
  (void)regroup::reduce(regroup::seq, std::vector<std::int64_t>(9), largest{});
  (void)regroup::reduce(regroup::seq, std::vector<std::string>(9), all_words{});
  (void)regroup::reduce(regroup::seq, std::vector<int>(9), commutes{});
}

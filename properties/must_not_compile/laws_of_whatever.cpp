// expect: regroup: this lift takes many types; say which elements: check_laws<float>(m)
// expect: regroup: `error_bound` is const and takes (std::span<const element>, index depth); nothing would call this
// expect: regroup: give check_laws a generator of these elements: a callable from `laws::choices&` to one
// expect: regroup: to compare states, make the state an aggregate of at most 12 members or give it operator==
#include <span>
#include <vector>

#include "regroup/check_laws.hpp"

struct total {
  int identity() const { return 0; }
  int lift(const auto& x) const
    requires requires { x.weight; }
  {
    return x.weight;
  }
  int operator()(int a, int b) const { return a + b; }
};
struct of_floats {
  float identity() const { return 0; }
  float operator()(float a, float b) const { return a + b; }
  std::vector<double> error_bound(std::span<const float> x) const { return {static_cast<double>(x.size())}; }
};
class ticket {
 public:
  explicit ticket(int number) : number_(number) {}
  int number() const { return number_; }

 private:
  int number_;
};
struct of_tickets {
  int identity() const { return 0; }
  int lift(const ticket& t) const { return t.number(); }
  int operator()(int a, int b) const { return a + b; }
};
struct to_tickets {
  ticket identity() const { return ticket(0); }
  ticket lift(int n) const { return ticket(n); }
  ticket operator()(const ticket& a, const ticket& b) const { return ticket(a.number() + b.number()); }
};

int main() {
  (void)regroup::check_laws(total{});
  (void)regroup::check_laws<float>(of_floats{});
  (void)regroup::check_laws<ticket>(of_tickets{});
  (void)regroup::check_laws<int>(to_tickets{});
}

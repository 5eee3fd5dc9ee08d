// expect: regroup: this monoid's `lift` is not const, so nothing would call it
// expect: regroup: this monoid's `lift` does not take these elements, nor are they states
// expect: regroup: this monoid's `lower` is not const, or does not take a state, so nothing would call it
// expect: regroup: `lift_tile` takes tiles of many types: make it a template
#include <span>
#include <string>
#include <vector>

#include "regroup/host/seq.hpp"
#include "regroup/reduce.hpp"

struct sum {
  float identity() const { return 0; }
  float operator()(float a, float b) const { return a + b; }
};
struct of_squares : sum {
  float lift(float x) { return x * x; }
};
struct of_words : sum {
  float lift(const std::string& word) const { return static_cast<float>(word.size()); }
};
struct negated : sum {
  float lower(float s) { return -s; }
};
struct of_spans : sum {
  float lift_tile(std::span<const float> tile) const { return tile[0]; }
};

int main() {
  const std::vector<float> x(9);
  (void)regroup::reduce(regroup::seq, x, of_squares{});
  (void)regroup::reduce(regroup::seq, std::vector<int>(9), of_words{});
  (void)regroup::reduce(regroup::seq, x, negated{});
  (void)regroup::reduce(regroup::seq, x, of_spans{});
}

// expect: elements come as a random-access range, a view, or anything with `size()` (64-bit) and
#include <list>

#include "regroup/regroup.hpp"

int main() { return regroup::reduce(regroup::seq, std::list<int>{1, 2}, regroup::plus<int>{}); }

// expect: elements come as a random-access range that knows its size
#include <list>

#include "regroup/regroup.hpp"

int main() { return regroup::reduce(regroup::seq, std::list<int>{1, 2}, regroup::plus<int>{}); }

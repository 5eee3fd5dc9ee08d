// expect: regroup: the vector of a softmax_mean needs axpy(low, factor, high), scale(v, factor), divide(v, l)
#include <array>

#include "regroup/monoids/softmax_mean.hpp"

regroup::softmax_mean<float, std::array<float, 4>> mean;

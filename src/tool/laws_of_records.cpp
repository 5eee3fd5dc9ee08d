// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "laws_checks.hpp"
#include "regroup/check_laws.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/monoids/histogram.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/mean.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/monoids/softmax_mean.hpp"
#include "regroup/monoids/top_k.hpp"

namespace regroup::tool {
namespace {

/// Elements of argmin, argmax and top_k.
struct somewhere {
  indexed<float> operator()(laws::choices& from) const {
    return {laws::arbitrary<float>{}(from), from.integer<index>(0, 20)};
  }
};

/// softmax_mean over scores with two values each.
using pair = fixed_vector<float, 2>;
using scored_pair = scored<float, std::array<float, 2>>;

constexpr named_check checks[] = {
    {"argmin", [](const law_options& o) { return check_laws(argmin<float>{}, somewhere{}, o); }},
    {"argmax", [](const law_options& o) { return check_laws(argmax<float>{}, somewhere{}, o); }},
    {"mean", [](const law_options& o) { return check_laws<float>(mean<float>{}, o); }},
    {"moments", [](const law_options& o) { return check_laws<float>(moments<float>{}, o); }},
    {"log_sum_exp", [](const law_options& o) { return check_laws<float>(log_sum_exp<float>{}, o); }},
    {"softmax_mean", [](const law_options& o) { return check_laws<scored_pair>(softmax_mean<float, pair>{}, o); }},
    {"top_k", [](const law_options& o) { return check_laws(top_k<float>{3}, somewhere{}, o); }},
    {"histogram",
     [](const law_options& o) {
       return check_laws<float>(histogram<float>{-1, 3, 7}, o);
     }},
    {"affine", [](const law_options& o) { return check_laws<affine_map<float>>(affine<float>{}, o); }},
};

}  // namespace

std::span<const named_check> checks_of_records() { return checks; }

}  // namespace regroup::tool

// SPDX-License-Identifier: Apache-2.0
#include "laws_checks.hpp"
#include "regroup/check_laws.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/scaled_product.hpp"

namespace regroup::tool {
namespace {

constexpr named_check checks[] = {
    {"sum", [](const law_options& o) { return check_laws<float>(plus<float>{}, o); }},
    {"product", [](const law_options& o) { return check_laws<float>(scaled_product<float>{}, o); }},
    {"min", [](const law_options& o) { return check_laws<float>(minimum<float>{}, o); }},
    {"max", [](const law_options& o) { return check_laws<float>(maximum<float>{}, o); }},
    {"count", [](const law_options& o) { return check_laws<float>(count{}, o); }},
    {"any", [](const law_options& o) { return check_laws<float>(any{}, o); }},
    {"all", [](const law_options& o) { return check_laws<float>(all{}, o); }},
};

}  // namespace

std::span<const named_check> checks_of_numbers() { return checks; }

}  // namespace regroup::tool

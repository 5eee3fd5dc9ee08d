// SPDX-License-Identifier: Apache-2.0
// regroup laws: what check_laws says of the monoids that the tool computes with, over float and strictly: NaN, infinities
// and the sign of zero included.
#include <algorithm>
#include <iostream>
#include <iterator>
#include <string_view>

#include "commands.hpp"
#include "progress.hpp"
#include "regroup/check_laws.hpp"
#include "regroup/monoids/affine.hpp"
#include "regroup/monoids/arithmetic.hpp"
#include "regroup/monoids/extremum.hpp"
#include "regroup/monoids/histogram.hpp"
#include "regroup/monoids/log_sum_exp.hpp"
#include "regroup/monoids/mean.hpp"
#include "regroup/monoids/moments.hpp"
#include "regroup/monoids/softmax_mean.hpp"
#include "regroup/monoids/top_k.hpp"
#include "text.hpp"

namespace regroup::tool {
namespace {

using check = laws::report (*)(const law_options&);

template <class X, class M>
laws::report over(const M& m, const law_options& options) {
  return check_laws<X>(m, options);
}

/// Elements of argmin, argmax and top_k.
struct somewhere {
  indexed<float> operator()(laws::choices& from) const {
    return {laws::arbitrary<float>{}(from), from.integer<index>(0, 20)};
  }
};

using pair = fixed_vector<float, 2>;

struct named_check {
  std::string_view name;
  check run;
};
constexpr named_check checks[] = {
    {"sum", [](const law_options& o) { return over<float>(plus<float>{}, o); }},
    {"product", [](const law_options& o) { return over<float>(multiplies<float>{}, o); }},
    {"min", [](const law_options& o) { return over<float>(minimum<float>{}, o); }},
    {"max", [](const law_options& o) { return over<float>(maximum<float>{}, o); }},
    {"argmin", [](const law_options& o) { return check_laws(argmin<float>{}, somewhere{}, o); }},
    {"argmax", [](const law_options& o) { return check_laws(argmax<float>{}, somewhere{}, o); }},
    {"count", [](const law_options& o) { return over<float>(count{}, o); }},
    {"mean", [](const law_options& o) { return over<float>(mean<float>{}, o); }},
    {"moments", [](const law_options& o) { return over<float>(moments<float>{}, o); }},
    {"log_sum_exp", [](const law_options& o) { return over<float>(log_sum_exp<float>{}, o); }},
    {"softmax_mean", [](const law_options& o) { return over<scored<float, pair>>(softmax_mean<float, pair>{}, o); }},
    {"any", [](const law_options& o) { return over<float>(any{}, o); }},
    {"all", [](const law_options& o) { return over<float>(all{}, o); }},
    {"top_k", [](const law_options& o) { return check_laws(top_k<float>{3}, somewhere{}, o); }},
    {"histogram", [](const law_options& o) { return over<float>(histogram<float>{-1, 3, 7}, o); }},
    {"affine", [](const law_options& o) { return over<affine_map<float>>(affine<float>{}, o); }},
};

check find(const std::string& name) {
  const auto at = std::find_if(std::begin(checks), std::end(checks), [&](const named_check& c) { return c.name == name; });
  if (at != std::end(checks)) return at->run;
  std::string known;
  for (const named_check& c : checks) known += (known.empty() ? "" : ", ") + std::string(c.name);
  throw usage_error("laws does not know the monoid '" + name + "'; it takes " + known, "laws");
}

std::string json_of(const std::string& name, const laws::report& r) {
  std::string fallen;
  for (const laws::finding& f : r.findings) {
    if (f.result == laws::finding::outcome::falls) fallen += (fallen.empty() ? "" : ", ") + json_string(f.law);
  }
  return json_string(name) + ": {\"passed\": " + (r.passed() ? "true" : "false") + ", \"laws\": " +
         std::to_string(r.findings.size()) + ", \"fallen\": [" + fallen + "]}";
}

}  // namespace

int run(const laws_command& c, const settings& s) {
  std::vector<std::string> names = c.monoids;
  if (names.empty()) {
    for (const named_check& known : checks) names.emplace_back(known.name);
  }
  for (const std::string& name : names) find(name);  // every name is known before anything runs
  const law_options options{.cases = c.cases, .seed = c.seed, .strict = true};
  const progress shown(s, "regroup laws");
  bool passed = true;
  std::string json;
  for (const std::string& name : names) {
    const laws::report r = find(name)(options);
    passed = passed && r.passed();
    if (s.json) {
      json += (json.empty() ? "" : ", ") + json_of(name, r);
    } else if (r.passed()) {
      std::cout << name << ' ' << r.findings.size() << " laws hold (" << r.monoid << " over " << r.element << ", seed "
                << r.seed << ", " << r.cases << " cases a law)\n";
    } else {
      std::cout << name << ' ' << r;
    }
  }
  if (s.json) {
    std::cout << "{\"passed\": " << (passed ? "true" : "false") << ", \"seed\": " << options.seed << ", \"monoids\": {"
              << json << "}}\n";
  }
  return passed ? 0 : 1;
}

}  // namespace regroup::tool

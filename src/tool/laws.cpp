// SPDX-License-Identifier: Apache-2.0
// regroup laws: what check_laws says of the monoids that the tool computes with, over float and strictly: NaN, infinities
// and the sign of zero included.
#include <iostream>
#include <string>
#include <vector>

#include "commands.hpp"
#include "laws_checks.hpp"
#include "progress.hpp"
#include "regroup/check_laws.hpp"
#include "text.hpp"

namespace regroup::tool {
namespace {

std::vector<named_check> all_checks() {
  std::vector<named_check> all;
  for (const auto part : {checks_of_numbers(), checks_of_records()}) all.insert(all.end(), part.begin(), part.end());
  return all;
}

named_check find(const std::string& name) {
  std::string known;
  for (const named_check& c : all_checks()) {
    if (c.name == name) return c;
    known += (known.empty() ? "" : ", ") + std::string(c.name);
  }
  throw usage_error("laws does not know the monoid '" + name + "'; it takes " + known, "laws");
}

std::string json_of(const std::string& name, const laws::report& r) {
  std::string fallen;
  for (const laws::finding& f : r.findings) {
    if (f.result == laws::finding::outcome::falls) fallen += (fallen.empty() ? "" : ", ") + json_string(f.law);
  }
  return json_string(name) + ": {\"passed\": " + (r.passed() ? "true" : "false") +
         ", \"laws\": " + std::to_string(r.findings.size()) + ", \"fallen\": [" + fallen + "]}";
}

}  // namespace

int run(const laws_command& c, const settings& s) {
  std::vector<named_check> chosen;
  for (const std::string& name : c.monoids) chosen.push_back(find(name));
  if (chosen.empty()) chosen = all_checks();
  const law_options options{.cases = c.cases, .seed = c.seed, .strict = true};
  const progress shown(s, "regroup laws");
  bool passed = true;
  std::string json;
  for (const named_check& check : chosen) {
    const std::string name(check.name);
    const laws::report r = check.run(options);
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

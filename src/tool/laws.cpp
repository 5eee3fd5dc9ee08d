// SPDX-License-Identifier: Apache-2.0
// regroup laws: runs check_laws on the tool's monoids, over float and strictly (NaN, infinities and the sign of zero included),
// and prints a table with a row for each law and a column for each monoid.
#include <algorithm>
#include <cstdio>
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

using outcome = laws::finding::outcome;

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

/// A monoid's name in the tool, and what was found.
struct checked {
  std::string name;
  laws::report report;
};

std::string two_digits(double x) {
  char text[32];
  std::snprintf(text, sizeof text, x < 0.01 ? "%.0e" : "%.2f", x);
  return text;
}

std::string cell(const laws::finding* f) {
  if (f == nullptr) return "";
  if (f->result == outcome::falls) return "FALLS";
  if (f->result == outcome::note) return "-";
  return f->worst > 0 ? two_digits(f->worst) : "=";
}

/// The names of all laws, merged in the order in which the monoids' reports have them.
std::vector<std::string> laws_of(const std::vector<checked>& all) {
  std::vector<std::string> names;
  for (const checked& c : all) {
    std::size_t at = 0;  // the place after the previous law
    for (const laws::finding& f : c.report.findings) {
      const auto place = std::find(names.begin(), names.end(), f.law);
      if (place == names.end()) {
        names.insert(names.begin() + static_cast<std::ptrdiff_t>(at++), f.law);
      } else {
        at = static_cast<std::size_t>(place - names.begin()) + 1;
      }
    }
  }
  return names;
}

std::string left(const std::string& text, std::size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 0, ' ');
}
std::string right(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

/// Prints columns `first` to `last` of the table.
void print_columns(const std::vector<std::string>& names, const std::vector<checked>& all, std::size_t first,
                   std::size_t last) {
  constexpr std::size_t law_width = 37, cases_width = 7;
  std::string line = left("law", law_width) + right("cases", cases_width);
  for (std::size_t i = first; i < last; ++i) line += "  " + right(all[i].name, 6);
  std::cout << line << '\n' << std::string(line.size(), '-') << '\n';
  for (const std::string& law : names) {
    int cases = 0;
    std::string cells;
    for (std::size_t i = first; i < last; ++i) {
      const laws::finding* const f = all[i].report.find(law);
      if (f != nullptr) cases = std::max(cases, f->cases);
      cells += "  " + right(cell(f), std::max<std::size_t>(all[i].name.size(), 6));
    }
    if (cases == 0) continue;  // only other columns have this law
    cells.erase(cells.find_last_not_of(' ') + 1);
    std::cout << left(law, law_width) << right(std::to_string(cases), cases_width) << cells << '\n';
  }
  std::cout << '\n';
}

std::size_t fallen(const laws::report& r) {
  return static_cast<std::size_t>(std::ranges::count(r.findings, outcome::falls, &laws::finding::result));
}

void print(const std::vector<checked>& all, const law_options& options) {
  std::cout << "The worst difference found, in units of the bound computed from the input; '=' is the same bits,\n"
            << "'-' a law that no case could ask. Over float, seed " << options.seed << ".\n\n";
  const std::vector<std::string> names = laws_of(all);
  constexpr std::size_t columns = 7;
  for (std::size_t first = 0; first < all.size(); first += columns) {
    print_columns(names, all, first, std::min(first + columns, all.size()));
  }
  std::size_t count = 0, fell = 0;
  for (const checked& c : all) {
    count += c.report.findings.size();
    fell += fallen(c.report);
    if (fallen(c.report) > 0) std::cout << c.name << ": " << c.report << '\n';
  }
  std::cout << count << " laws of " << all.size() << (all.size() == 1 ? " monoid, " : " monoids, ")
            << (fell == 0 ? "all hold" : std::to_string(fell) + " fall") << '\n';
}

std::string truth(bool x) { return x ? "true" : "false"; }

std::string json_of(const laws::report& r) {
  std::vector<std::string> fell;
  json_object each;
  for (const laws::finding& f : r.findings) {
    if (f.result == outcome::falls) fell.push_back(json_string(f.law));
    each.add(f.law, json_object()
                        .add("passed", truth(f.result != outcome::falls))
                        .add("cases", std::to_string(f.cases))
                        .add("excused", std::to_string(f.excused))
                        .add("worst", json_number(f.worst))
                        .text());
  }
  return json_object()
      .add("passed", truth(r.passed()))
      .add("laws", std::to_string(r.findings.size()))
      .add("fallen", json_list(fell))
      .add("checks", each.text())
      .text();
}

}  // namespace

int run(const laws_command& c, const settings& s) {
  std::vector<named_check> chosen;
  for (const std::string& name : c.monoids) chosen.push_back(find(name));
  if (chosen.empty()) chosen = all_checks();
  const law_options options{.cases = c.cases, .seed = c.seed, .strict = true};
  std::vector<checked> all;
  {
    const progress shown(s, "regroup laws");
    for (const named_check& check : chosen) all.push_back({std::string(check.name), check.run(options)});
  }
  const bool passed = std::ranges::all_of(all, [](const checked& one) { return one.report.passed(); });
  if (s.json) {
    json_object monoids;
    for (const checked& one : all) monoids.add(one.name, json_of(one.report));
    std::cout << json_object()
                     .add("passed", truth(passed))
                     .add("seed", std::to_string(options.seed))
                     .add("monoids", monoids.text())
                     .text()
              << '\n';
  } else {
    print(all, options);
  }
  return passed ? 0 : 1;
}

}  // namespace regroup::tool

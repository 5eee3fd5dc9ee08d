// SPDX-License-Identifier: Apache-2.0
#include "monoid_names.hpp"

#include <cmath>

#include "words.hpp"

namespace regroup::tool {

constexpr index most_bins = index{1} << 30;

std::vector<monoid_name> parse_monoids(const std::string& text) {
  const words w{"reduce"};
  std::vector<monoid_name> result;
  const std::vector<std::string> fields = fields_of(text);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t colon = fields[i].find(':');
    monoid_name m;
    m.name = fields[i].substr(0, colon);
    const bool has_value = colon != std::string::npos;
    const std::string value = has_value ? fields[i].substr(colon + 1) : "";
    if (fields[i].empty()) w.wrong("--with has a comma too many; got '" + text + "'");
    if (!among(reduce_names, m.name)) {
      w.wrong("reduce does not know the monoid '" + m.name + "'; it takes " + listed(reduce_names));
    }
    if (m.name == "top_k") {
      m.k = w.integer<index>("top_k", value, 1, "a length as in top_k:5, " + range_from(index{1}));
    } else if (m.name == "histogram") {
      const std::string wanted = "a range and a number of bins as in histogram:0,1,10";
      if (!has_value || i + 2 >= fields.size()) w.wrong_value("histogram", wanted, text);
      m.low = w.finite("histogram's lower end", value);
      m.high = w.finite("histogram's upper end", fields[i + 1]);
      const std::string range = "a whole number from 1 to " + std::to_string(most_bins);
      m.bins = w.integer<index>("histogram's number of bins", fields[i + 2], 1, range);
      if (!(m.low <= m.high))
        w.wrong_value("histogram", "a lower end not above its upper end", value + "," + fields[i + 1]);
      if (!std::isfinite(m.high - m.low)) {
        w.wrong_value("histogram", "ends whose distance is finite", value + "," + fields[i + 1]);
      }
      if (m.bins > most_bins) w.wrong_value("histogram's number of bins", range, fields[i + 2]);
      i += 2;
    } else if (has_value) {
      w.wrong(m.name + " takes no parameter; got '" + value + "'");
    }
    for (const monoid_name& other : result) {
      if (other.name == m.name) w.wrong("--with names " + m.name + " twice; their results would have the same name");
    }
    result.push_back(std::move(m));
  }
  return result;
}

}  // namespace regroup::tool

// SPDX-License-Identifier: Apache-2.0
// What check_laws found, for a program (`passed()`, `findings`) and for a reader (operator<<): each law, whether it holds,
// how near the worst difference came to its bound, and for a law that falls the smallest counterexample with both sides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iomanip>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace regroup::laws {

/// One law: held, fallen, or fallen only where nothing was promised, or never asked (a note).
struct finding {
  enum class outcome { holds, note, falls };
  std::string law;
  outcome result = outcome::holds;
  int cases = 0;                ///< tried
  int excused = 0;              ///< of them, cases in which numbers overflowed or had no bound, so nothing can be asked
  bool estimated = false;       ///< nobody gave the bound
  double worst = 0;             ///< the largest difference, in units of its bound
  std::size_t elements = 0;     ///< of the counterexample
  std::string counterexample;   ///< its elements, cut where the law cuts them
  std::string left_name, left;  ///< the two sides
  std::string right_name, right;
  std::string difference, bound;
  std::string remark;
};

/// The laws of one monoid.
struct report {
  std::string monoid;
  std::string element;
  std::uint64_t seed = 0;
  int cases = 0;
  std::vector<finding> findings;

  /// Whether no law fell.
  [[nodiscard]] bool passed() const {
    return std::ranges::none_of(findings, [](const finding& f) { return f.result == finding::outcome::falls; });
  }
  /// The finding of a law by name; nullptr where it was not checked.
  [[nodiscard]] const finding* find(std::string_view law) const {
    const auto at = std::ranges::find(findings, law, &finding::law);
    return at == findings.end() ? nullptr : &*at;
  }
};

inline std::ostream& operator<<(std::ostream& out, const finding& f) {
  const auto width = static_cast<int>(std::max(f.left_name.size(), f.right_name.size()));
  switch (f.result) {
    case finding::outcome::holds:
      out << "  holds  " << std::left << std::setw(37) << f.law << f.cases << (f.cases == 1 ? " case" : " cases");
      if (f.worst > 0) {
        out << ", worst difference " << std::setprecision(2) << f.worst << " of the " << (f.estimated ? "estimated " : "")
            << "bound";
      }
      if (f.excused > 0) out << ", " << f.excused << " of them overflowed or had no bound";
      return out << '\n';
    case finding::outcome::note:
      out << "  note   " << f.law << ", " << f.remark;
      if (!f.left.empty()) out << ": " << f.left << " and " << f.right;
      return out << (f.counterexample.empty() ? "" : ", ") << f.counterexample << '\n';
    case finding::outcome::falls:
      out << "  FALLS  " << f.law << (f.remark.empty() ? "" : "; ") << f.remark << '\n';
      break;
  }
  if (!f.counterexample.empty()) out << "           " << f.counterexample << '\n';
  if (!f.left.empty() || !f.right.empty()) {
    out << "           " << std::right << std::setw(width) << f.left_name << " = " << f.left << '\n';
    out << "           " << std::right << std::setw(width) << f.right_name << " = " << f.right << '\n';
    out << "           difference " << f.difference << ", bound " << f.bound << '\n';
  }
  return out;
}

/// Fallen laws first, then notes, then what holds.
inline std::ostream& operator<<(std::ostream& out, const report& r) {
  const auto fallen = std::ranges::count(r.findings, finding::outcome::falls, &finding::result);
  out << "the laws of " << r.monoid << " over " << r.element << " (seed " << r.seed << ", " << r.cases
      << " cases a law): ";
  if (fallen == 0) {
    out << "all hold\n";
  } else {
    out << fallen << (fallen == 1 ? " law falls\n" : " laws fall\n");
  }
  for (const auto which : {finding::outcome::falls, finding::outcome::note, finding::outcome::holds}) {
    for (const finding& f : r.findings) {
      if (f.result == which) out << f;
    }
  }
  return out;
}

}  // namespace regroup::laws

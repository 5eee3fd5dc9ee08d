// SPDX-License-Identifier: Apache-2.0
// The pictures of (a), errors beside their bounds, and of (f), bars.
#include "pictures.hpp"

#include <algorithm>
#include <cmath>

#include "demo.hpp"
#include "svg.hpp"

namespace demo {

void draw_accuracy(const std::vector<accuracy_group>& groups) {
  const double left = 70, step = 42, gap = 26, top = 84, decade = 90, bottom = top + 3 * decade;
  double right = left;
  for (const auto& g : groups) right += gap + step * static_cast<double>(g.columns.size());
  svg page(right + 40, bottom + 104);
  page.text(24, 30, "Attention folded in pieces and merged: error against its computed bound", colour::ink, 16, "start",
            true);
  page.text(24, 52,
            "Of all 196,608 outputs of a trained layer, each column shows the one that came nearest to its bound",
            colour::grey);
  const auto y = [&](double error) { return top + decade * (-4 - std::log10(std::max(error, 1e-7))); };
  for (int exponent = -7; exponent <= -4; ++exponent) {
    const double at = y(std::pow(10, exponent));
    page.line(left, at, right, at, colour::faint);
    page.text(left - 8, at + 4, "1e" + std::to_string(exponent), colour::grey, 12, "end");
  }
  double x = left;
  for (const auto& g : groups) {
    x += gap / 2;
    page.text(x + step * static_cast<double>(g.columns.size()) / 2, bottom + 42, g.title, colour::grey, 13, "middle");
    for (const accuracy& a : g.columns) {
      const double at = x + step / 2;
      page.line(at, y(a.bound), at, y(a.nearest), colour::faint, 2);
      page.line(at - 12, y(a.bound), at + 12, y(a.bound), colour::alarm, 3);
      page.dot(at, y(a.nearest), 5, colour::ours);
      page.text(at, bottom + 22, a.label, colour::ink, 13, "middle");
      x += step;
    }
    x += gap / 2;
  }
  page.line(left, bottom + 78, left + 24, bottom + 78, colour::alarm, 3);
  page.text(left + 32, bottom + 82, "its computed bound");
  page.dot(left + 200, bottom + 78, 5, colour::ours);
  page.text(left + 212, bottom + 82, "its difference from float64");
  page.save(picture("error_and_bound.svg"));
}

void draw_cost(const cost& online, const cost& materialised) {
  svg page(720, 250);
  page.text(24, 30, "Attention of 8192 tokens, one head of 64 channels", colour::ink, 16, "start", true);
  const auto bars = [&](double y, std::string_view what, double ours, double theirs, const char* format) {
    const auto bar = [&](double at, std::string_view who, double value, std::string_view fill) {
      const double width = std::max(380 * value / std::max(ours, theirs), 1.0);
      page.text(200, at + 17, who, colour::ink, 13, "end");
      page.rectangle(210, at, width, 24, fill);
      page.text(218 + width, at + 17, text_of(format, value));
    };
    page.text(24, y + 32, what, colour::ink, 14, "start", true);
    bar(y, "online", ours, colour::ours);
    bar(y + 30, "N x N matrix", theirs, colour::theirs);
  };
  bars(60, "time", online.seconds, materialised.seconds, "%.2f s");
  bars(150, "memory", online.mebibytes, materialised.mebibytes, "%.1f MiB");
  page.text(24, 234,
            "Time: the best of two on this machine. Memory: the most allocated at once, beyond inputs and output.",
            colour::grey, 12);
  page.save(picture("time_and_memory.svg"));
}

}  // namespace demo

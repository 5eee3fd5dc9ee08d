// SPDX-License-Identifier: Apache-2.0
// The picture of (b): every float a cell, coloured by how many representable floats it lies from the first run's.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "demo.hpp"
#include "pictures.hpp"
#include "svg.hpp"

namespace demo {

using regroup::index;

namespace {

constexpr index shown_queries = 128;
constexpr std::array<std::string_view, 3> shades{"#f7d08a", "#e8833a", "#a3262a"};  // 1, 2 or 3, and more floats away

/// How many representable floats lie between two numbers of one sign.
std::uint32_t steps_apart(float a, float b) {
  const auto x = std::bit_cast<std::uint32_t>(a), y = std::bit_cast<std::uint32_t>(b);
  return x > y ? x - y : y - x;
}

void draw_run(svg& page, double x, double y, double cell, const run& r, const run& first, index channels) {
  const double width = cell * static_cast<double>(shown_queries);
  page.rectangle(x, y, width, cell * static_cast<double>(channels), colour::flat);
  std::array<std::string, shades.size()> strokes;
  for (index c = 0; c < channels; ++c) {
    std::array<index, shades.size()> pen{-1, -1, -1};  // where each shade's stroke stands in this row
    for (index i = 0; i < shown_queries; ++i) {
      const auto at = static_cast<std::size_t>(i * channels + c);
      const std::uint32_t steps = steps_apart(r.out[at], first.out[at]);
      if (steps == 0) continue;
      const std::size_t shade = steps == 1 ? 0 : steps <= 3 ? 1 : 2;
      std::string& path = strokes[shade];
      if (pen[shade] < 0) path += "M" + std::to_string(i) + " " + std::to_string(c) + ".5";
      if (pen[shade] >= 0 && pen[shade] < i) path += "m" + std::to_string(i - pen[shade]) + " 0";
      path += "h1";
      pen[shade] = i + 1;
    }
  }
  for (std::size_t s = 0; s < shades.size(); ++s) page.cells(x, y, cell, strokes[s], shades[s]);
  const std::size_t count = different(r.out, first.out);
  const bool is_first = &r == &first;
  page.text(x, y - 7, r.label);
  page.text(x + width, y - 7,
            is_first     ? "the first run"
            : count == 0 ? "same bits"
                         : std::to_string(100 * count / r.out.size()) + "% differ",
            is_first     ? colour::grey
            : count == 0 ? colour::flat
                         : colour::alarm,
            13, "end", !is_first);
}

}  // namespace

std::size_t different(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += steps_apart(a[i], b[i]) != 0;
  return count;
}

void draw_bits(const std::vector<run>& ours, const std::vector<run>& plain, index channels) {
  const double cell = 3, left = 24, top = 112;
  const double right = left + cell * static_cast<double>(shown_queries) + 40;
  const double step = cell * static_cast<double>(channels) + 32;
  svg page(2 * right - 40, top + step * static_cast<double>(std::max(ours.size(), plain.size())));
  page.text(left, 30, "The same attention, again and again: which bits changed?", colour::ink, 18, "start", true);
  page.text(left, 51,
            "Each cell is one output of a trained transformer layer (128 queries x 32 channels), beside the first run",
            colour::grey);
  page.text(left, 82, "regroup", colour::ink, 15, "start", true);
  page.text(right, 82, "a plain loop: keys split over threads", colour::ink, 15, "start", true);
  double y = top;
  for (const run& r : ours) draw_run(page, left, y, cell, r, ours[0], channels), y += step;
  y = top;
  for (const run& r : plain) draw_run(page, right, y, cell, r, plain[0], channels), y += step;
  const auto legend = [&](std::string_view fill, std::string_view words) {
    page.rectangle(right, y + 10, 16, 16, fill);
    page.text(right + 26, y + 23, words);
    y += 26;
  };
  legend(colour::flat, "the same bits as the first run");
  legend(shades[0], "the neighbouring float");
  legend(shades[1], "2 or 3 floats away");
  legend(shades[2], "further");
  page.save(picture("same_bits.svg"));
}

}  // namespace demo

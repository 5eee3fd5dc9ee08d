// SPDX-License-Identifier: Apache-2.0
// A page to draw on: just enough SVG for the demo's pictures.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace demo {

namespace colour {
inline constexpr std::string_view paper = "#ffffff", ink = "#1f2933", grey = "#7b8794", faint = "#e4e7eb",
                                  flat = "#2f6f9f", ours = "#2f6f9f", theirs = "#d9822b", alarm = "#c23030";
}  // namespace colour

class svg {
 public:
  svg(double width, double height) {
    body_ << R"(<svg xmlns="http://www.w3.org/2000/svg" width=")" << width << R"(" height=")" << height
          << R"(" viewBox="0 0 )" << width << ' ' << height
          << R"(" font-family="Helvetica, Arial, sans-serif" font-size="13">)" << '\n';
    rectangle(0, 0, width, height, colour::paper);
  }

  void rectangle(double x, double y, double width, double height, std::string_view fill) {
    body_ << R"(<rect x=")" << x << R"(" y=")" << y << R"(" width=")" << width << R"(" height=")" << height
          << R"(" fill=")" << fill << "\"/>\n";
  }
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, double width = 1,
            std::string_view dashes = "none") {
    body_ << R"(<line x1=")" << x1 << R"(" y1=")" << y1 << R"(" x2=")" << x2 << R"(" y2=")" << y2 << R"(" stroke=")"
          << stroke << R"(" stroke-width=")" << width << R"(" stroke-dasharray=")" << dashes << "\"/>\n";
  }
  void dot(double x, double y, double radius, std::string_view fill) {
    body_ << R"(<circle cx=")" << x << R"(" cy=")" << y << R"(" r=")" << radius << R"(" fill=")" << fill << "\"/>\n";
  }
  /// `anchor`: start, middle or end of the text stands at x. No `<` or `&` in it.
  void text(double x, double y, std::string_view words, std::string_view fill = colour::ink, int size = 13,
            std::string_view anchor = "start", bool bold = false) {
    body_ << R"(<text x=")" << x << R"(" y=")" << y << R"(" fill=")" << fill << R"(" font-size=")" << size
          << R"(" text-anchor=")" << anchor << (bold ? R"(" font-weight="bold">)" : R"(">)") << words << "</text>\n";
  }
  /// Many cells of one colour: `runs` is path data of horizontal strokes, one cell high, in cells from (x, y).
  void cells(double x, double y, double size, std::string_view runs, std::string_view stroke) {
    if (runs.empty()) return;
    body_ << "<path transform=\"translate(" << x << ' ' << y << ") scale(" << size << ")\" stroke=\"" << stroke
          << "\" fill=\"none\" d=\"" << runs << "\"/>\n";
  }

  void save(const std::filesystem::path& path) const { std::ofstream(path) << body_.str() << "</svg>\n"; }

 private:
  std::ostringstream body_;
};

}  // namespace demo

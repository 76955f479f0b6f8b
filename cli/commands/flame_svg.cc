// SPDX-License-Identifier: MIT
#include "cli/commands/flame_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cli/text/html.h"
#include "cli/text/names.h"
#include "cli/text/text.h"
#include "columns/flame.h"

namespace karst::cli {
namespace {

constexpr double kWidth = 1200, kRow = 17, kMargin = 10, kHead = 30, kGap = 0.5;
constexpr double kCharacter = 6.7;  // of the font, in px
constexpr std::size_t kMostRows = 256;
// What is narrower than half a pixel is not drawn one by one.
constexpr double kLeastShare = 0.5 / kWidth;
// Where one can zoom, it may be wider later.
constexpr double kLeastShareInPage = kLeastShare / 5;

std::uint32_t hash_of(std::string_view name) {
  std::uint32_t hash = 2166136261;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  return hash;
}

/// A warm colour that is the same for the same name each time.
std::string colour_of(std::string_view name) {
  const std::uint32_t hash = hash_of(name);
  return fmt::format("rgb({},{},{})", 205 + hash % 50, 90 + (hash >> 8U) % 120, 40 + (hash >> 16U) % 50);
}

/// The same, cold: of frames that samples saw.
std::string colour_of_sampled(std::string_view name) {
  const std::uint32_t hash = hash_of(name);
  return fmt::format("rgb({},{},{})", 120 + hash % 50, 160 + (hash >> 8U) % 40, 200 + (hash >> 16U) % 40);
}

/// From blue (-1: gone) by grey (0) to red (1: new).
std::string colour_of_change(double change) {
  const auto fade = static_cast<int>(std::lround(225 - 125 * std::min(1.0, std::abs(change))));
  return change > 0 ? fmt::format("rgb(235,{0},{0})", fade) : fmt::format("rgb({0},{0},235)", fade);
}

/// One side of a tree, as frames above or below each other.
class Flame {
 public:
  struct Frame {
    std::string_view name;
    std::string title, colour;
  };

  /// `pixels`: of one unit of weight.
  Flame(const columns::FlameView& view, int side, double pixels) : places_(view.nodes.size()) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      Place& place = places_[i];
      place.width = static_cast<double>(view.nodes[i].side[side].total) * pixels;
      if (i == 0) continue;
      Place& above = places_[static_cast<std::size_t>(view.nodes[i].parent)];
      place.x = place.next = above.next;
      place.row = above.row + 1;
      above.next += place.width;
      if (place.row >= kMostRows) {
        hidden_ = true;
      } else if (place.width > 0) {
        rows_ = std::max(rows_, place.row + 1);
      }
    }
  }

  double height() const { return static_cast<double>(rows_) * kRow; }
  /// Calls are deeper than is drawn.
  bool is_cut() const { return hidden_; }

  /// The root's frame is at `base`, the others above it, or with `down` below it. `gap`: between frames; without one
  /// widths are exact, for who zooms.
  void print(double base, bool down, double gap, const std::function<Frame(std::size_t)>& frame_of,
             Output& output) const {
    const int digits = gap == 0 ? 4 : 1;
    for (std::size_t i = 0; i < places_.size() && !output.failed(); ++i) {
      const Place& place = places_[i];
      if (place.row >= kMostRows || place.width <= 0) continue;
      const Frame frame = frame_of(i);
      const double x = kMargin + place.x;
      const double y = base + (down ? 1 : -1) * static_cast<double>(place.row) * kRow;
      output.append(
          fmt::format("<g><title>{0}</title><rect x=\"{1:.{6}f}\" y=\"{2:.0f}\" width=\"{3:.{6}f}\" height=\"{4:.0f}\" "
                      "fill=\"{5}\" rx=\"1\"/>",
                      frame.title, x, y, gap == 0 ? place.width : std::max(place.width - gap, 0.2), kRow - 1,
                      frame.colour, digits));
      const auto room = static_cast<std::size_t>(std::max(0.0, place.width - 6) / kCharacter);
      if (room >= 3 && !frame.name.empty())
        output.append(fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\">{}</text>", x + 3, y + 12,
                                  markup(fit_name(printable(frame.name), room))));
      output.append("</g>\n");
    }
  }

 private:
  struct Place {
    double x = 0, next = 0, width = 0;  // own left edge, that of the next child
    std::size_t row = 0;
  };

  std::vector<Place> places_;
  std::size_t rows_ = 1;
  bool hidden_ = false;
};

/// `in_page`: the page has a background, and the head's text its colour.
void begin_svg(double height, const std::vector<std::string>& head, bool in_page, Output& output) {
  output.append(fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"ui-monospace, monospace\" font-size=\"11\">\n{2}",
      kWidth + 2 * kMargin, height, in_page ? "" : "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"));
  for (std::size_t i = 0; i < head.size(); ++i)
    output.append(fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"13\"{}>{}</text>\n", kMargin, 19 + 18 * i,
                              in_page ? " fill=\"currentColor\"" : "", markup(head[i])));
}

std::string depth_words(bool is_cut) {
  return is_cut ? fmt::format("; calls deeper than {} levels are not drawn", kMostRows - 1) : std::string();
}

constexpr const char* kWeightNames[] = {"time", "calls", "bytes"};  // by Weight
constexpr const char* kQuiet = "#ddd";                              // of all, and of what is added up

}  // namespace

void print_flame_svg(const Paths& paths, Output& output, bool in_page) {
  const columns::FlameView view = columns::prune(paths.tree, 0, in_page ? kLeastShareInPage : kLeastShare);
  const std::uint64_t whole = std::max<std::uint64_t>(1, view.nodes.front().side[0].total);
  const Flame flame(view, 0, kWidth / static_cast<double>(whole));
  const double height = kHead + flame.height() + kMargin;
  begin_svg(height,
            {fmt::format("{}: {}{}", paths.input.trace.name(), paths.weight(view.nodes.front().side[0].total),
                         depth_words(flame.is_cut()))},
            in_page, output);
  flame.print(
      height - kMargin - kRow, false, in_page ? 0 : kGap,
      [&](std::size_t i) {
        const columns::FlameView::Node& node = view.nodes[i];
        const bool merged = node.function == columns::kFlameMerged;
        const bool sampled = !merged && i != 0 && Paths::is_sampled(static_cast<std::uint32_t>(node.function));
        const std::string_view name =
            merged ? "" : paths.name(i == 0 ? columns::FlameTree::kRoot : static_cast<std::uint32_t>(node.function));
        const std::string title =
            fmt::format("{}: {} ({} of all {}){}", merged ? plural(node.merged, "smaller path") : markup(name),
                        paths.weight(node.side[0].total), percent_text(node.side[0].total, whole),
                        kWeightNames[static_cast<std::size_t>(paths.by)],
                        sampled                      ? ", sampled"
                        : paths.by == Weight::kCalls ? ""
                                                     : ", " + plural(node.side[0].calls, paths.counted()));
        return Flame::Frame{name, title,
                            i == 0 || merged ? kQuiet
                            : sampled        ? colour_of_sampled(name)
                                             : colour_of(name)};
      },
      output);
  output.append("</svg>\n");
}

void print_two_flames_svg(const Paths& a, const std::string& name_a, const Paths& b, const std::string& name_b,
                          Output& output) {
  // One tree of both, by name: the numbers are A's, and behind those what B has alone.
  std::vector<std::string_view> names;
  std::unordered_map<std::string_view, std::uint32_t> number_of;
  const auto numbers_of = [&](const Paths& paths) {
    std::vector<std::uint32_t> numbers;
    for (const analysis::FunctionInfo& function : paths.parts.functions().functions()) {
      const auto [at, fresh] = number_of.try_emplace(function.name, static_cast<std::uint32_t>(names.size()));
      if (fresh) names.push_back(function.name);
      numbers.push_back(at->second);
    }
    return numbers;
  };
  columns::FlameTree both;
  const std::vector<std::uint32_t> of_a = numbers_of(a), of_b = numbers_of(b);
  both.merge(a.tree, &of_a);
  both.merge(b.tree, &of_b, true);
  const columns::FlameView view = columns::prune(both, 0, kLeastShare);

  // The two clocks may tick differently.
  const auto ns = [&](const columns::FlameView::Node& node, int side) {
    return (side == 0 ? a : b).number(node.side[side].total);
  };
  const columns::FlameView::Node& all = view.nodes.front();
  const double whole = static_cast<double>(std::max<std::uint64_t>({1, ns(all, 0), ns(all, 1)}));
  const auto pixels = [&](int side) {
    const std::uint64_t ticks = std::max<std::uint64_t>(1, all.side[side].total);
    return kWidth * static_cast<double>(ns(all, side)) / whole / static_cast<double>(ticks);
  };
  const Flame before(view, 0, pixels(0)), after(view, 1, pixels(1));
  const double head = kHead + 36;
  const double height = head + after.height() + kRow + before.height() + kMargin;
  begin_svg(height,
            {fmt::format("above: B, {}, {}", name_b, duration_text(ns(all, 1))),
             fmt::format("below: A, {}, {}", name_a, duration_text(ns(all, 0))),
             fmt::format("red: longer in B than in A; blue: shorter; grey: the same{}",
                         depth_words(before.is_cut() || after.is_cut()))},
            false, output);
  const auto frame_of = [&](std::size_t i) {
    const columns::FlameView::Node& node = view.nodes[i];
    const bool merged = node.function == columns::kFlameMerged;
    const std::string_view name = merged   ? ""
                                  : i == 0 ? "all"
                                  : node.function == columns::FlameTree::kOther
                                      ? a.name(columns::FlameTree::kOther)
                                      : names[static_cast<std::size_t>(node.function)];
    const std::uint64_t was = ns(node, 0), is = ns(node, 1);
    const double change = (static_cast<double>(is) - static_cast<double>(was)) /
                          static_cast<double>(std::max<std::uint64_t>({1, is, was}));
    const std::string title = fmt::format(
        "{}: A {}, {}; B {}, {}", merged ? plural(node.merged, "smaller path") : markup(name), duration_text(was),
        plural(node.side[0].calls, "call"), duration_text(is), plural(node.side[1].calls, "call"));
    return Flame::Frame{name, title, merged ? kQuiet : colour_of_change(change)};
  };
  const double middle = head + after.height() - kRow;
  after.print(middle, false, kGap, frame_of, output);
  before.print(middle + 2 * kRow, true, kGap, frame_of, output);
  output.append("</svg>\n");
}

}  // namespace karst::cli

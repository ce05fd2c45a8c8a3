// SPDX-License-Identifier: Apache-2.0
// A picture for people: hosts below, each with its sockets at the bottom and its GPUs and HCAs on top, switches above
// (switch_layout.hpp). Line width follows the rate. Of a group at most two hosts are drawn; every switch that they are
// cabled to is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "exchange/host_tree.hpp"
#include "exchange/svg_parts.hpp"
#include "exchange/svg_vms.hpp"
#include "exchange/switch_layout.hpp"
#include "fabricast/exchange.hpp"

namespace fabricast {

namespace {

using exchange::colour_of;
using exchange::escaped;
using exchange::k_heat_limits;
using exchange::shortened;
using exchange::TreeNode;
using exchange::width_of;

constexpr double k_leaf = 92, k_box_w = 84, k_box_h = 34, k_row = 74, k_margin = 24, k_gap = 28;
constexpr double k_switch_row = 58, k_nvswitch_row = 44, k_title = 40;
constexpr int k_drawn_hosts = 2;

struct Point {
  double x = 0, y = 0;
};

class Drawing {
 public:
  Drawing(const Topology& topology, const LinkShares& use) : topology_(topology), use_(use) {}

  std::string draw() {
    plan_switches();
    double x = k_margin;
    for (const auto& group : exchange::groups(topology_)) {
      const int drawn = std::min(group.count, k_drawn_hosts);
      for (int i = 0; i < drawn; ++i) x = draw_host(group.host_of(i), x) + k_gap;
      if (group.count > drawn) {
        text({x + k_more / 2, top_of_hosts() + 110}, fmt::format("+ {} more", group.count - drawn), "note", "middle");
        x += k_more + k_gap;
      }
    }
    width_ = std::max({width_, x, 520.0});
    draw_switches();
    draw_cables();
    legend();
    return finish();
  }

 private:
  static constexpr double k_more = 80;

  [[nodiscard]] double top_of_hosts() const { return k_margin + k_title + layout_.rows * k_switch_row; }

  /// Width of the hosts that are drawn, before anything is.
  [[nodiscard]] double width_of_hosts() const {
    double width = 0;
    for (const auto& group : exchange::groups(topology_)) {
      const int drawn = std::min(group.count, k_drawn_hosts);
      width += drawn * (width_of_host(group.first_host) + k_gap) + (group.count > drawn ? k_more + k_gap : 0);
    }
    return width;
  }

  [[nodiscard]] double width_of_host(int host) const {
    int columns = 0;
    for (const auto& tree : exchange::host_trees(topology_, host)) columns += leaves(tree);
    return columns * k_leaf + 16;
  }

  void plan_switches() {
    std::set<int> drawn;
    for (const auto& group : exchange::groups(topology_)) {
      for (int i = 0; i < std::min(group.count, k_drawn_hosts); ++i) drawn.insert(group.host_of(i));
    }
    std::set<DeviceId> needed;
    for (const auto& cable : exchange::network_cables(topology_)) {
      for (const auto& [end, other] : {std::pair(cable.from, cable.to), std::pair(cable.to, cable.from)}) {
        if (topology_.kind(end) == DeviceKind::hca && drawn.count(topology_.host_of(end)) > 0) needed.insert(other);
      }
    }
    const double width = width_of_hosts();
    layout_ = exchange::lay_out_switches(topology_, needed, std::max(1, static_cast<int>(width / k_leaf)));
    width_ = layout_.columns * k_leaf + 2 * k_margin;
  }

  static int leaves(const TreeNode& node) {
    int count = 0;
    for (const auto& child : node.children) count += leaves(child);
    return std::max(1, count);
  }

  static int depth(const TreeNode& node) {
    int deepest = 0;
    for (const auto& child : node.children) deepest = std::max(deepest, depth(child));
    return 1 + deepest;
  }

  void box(DeviceId id, Point at) {
    const auto device = topology_.device(id);
    places_[id] = at;
    boxes_ += fmt::format(
        "<g><title>{}{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"{}\" "
        "class=\"box\"/>",
        escaped(device.name), device.type.empty() ? "" : ": " + escaped(device.type), at.x - k_box_w / 2,
        at.y - k_box_h / 2, k_box_w, k_box_h, colour_of(device.kind));
    const auto kind =
        device.type.empty() && device.kind != DeviceKind::socket ? std::string(to_string(device.kind)) : device.type;
    boxes_ += label({at.x, at.y - 3}, exchange::short_name(topology_, id), "name", 12, 18) +
              label({at.x, at.y + 11}, kind, "type", 15, 20) + "</g>\n";
  }

  /// A line in a box: squeezed above `wide` characters, cut above `most`.
  static std::string label(Point at, const std::string& words, const char* css, std::size_t wide, std::size_t most) {
    return fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\"{}>{}</text>", at.x, at.y, css,
        words.size() > wide ? fmt::format(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", k_box_w - 6) : "",
        escaped(shortened(words, most)));
  }

  /// What is in use between two devices, in words and as the class of a colour; nothing without figures.
  struct Heat {
    std::string words, css;
  };
  [[nodiscard]] double share(DeviceId from, DeviceId to) const {
    const auto it = use_.find({from, to});
    return it == use_.end() ? 0.0 : it->second;
  }
  [[nodiscard]] double busier(DeviceId a, DeviceId b) const { return std::max(share(a, b), share(b, a)); }

  [[nodiscard]] Heat heat_of(DeviceId a, DeviceId b) const {
    if (use_.empty()) return {};
    const double ahead = share(a, b);
    const double back = share(b, a);
    return {fmt::format("; in use: {:.1f} % of {} to {}, {:.1f} % back", 100 * ahead,
                        exchange::short_name(topology_, a), exchange::short_name(topology_, b), 100 * back),
            fmt::format(" heat{}", exchange::heat_of_share(busier(a, b)))};
  }

  void line(Point a, Point b, Bandwidth rate, const std::string& css, const std::string& title, const Heat& heat) {
    lines_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke-width=\"{:.1f}\" "
        "class=\"{}{}\"><title>{}{}</title></line>\n",
        a.x, a.y, b.x, b.y, width_of(rate), css, heat.css, escaped(title), escaped(heat.words));
  }

  void text(Point at, const std::string& words, const char* css, const char* anchor) {
    boxes_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", at.x, at.y,
                          css, anchor, escaped(words));
  }

  /// Draws the tree upwards from `bottom`; leaves on one row at `top`. Returns the node's place.
  Point draw_tree(const TreeNode& node, double left, double top, double bottom, int level) {
    double x = left;
    std::vector<Point> children;
    for (const auto& child : node.children) {
      children.push_back(draw_tree(child, x, top, bottom, level + 1));
      x += leaves(child) * k_leaf;
    }
    const auto kind = topology_.kind(node.device);
    const bool is_leaf = node.children.empty() && kind != DeviceKind::socket;
    const Point at{left + leaves(node) * k_leaf / 2, is_leaf ? top : bottom - level * k_row};
    for (std::size_t i = 0; i < children.size(); ++i) {
      const auto link = topology_.link(node.children[i].up);
      const auto what = link.kind == LinkKind::pcie ? fmt::format("PCIe {} x{}", link.generation, link.lanes)
                                                    : std::string(to_string(link.kind));
      line(at, children[i], link.bandwidth, "pcie", fmt::format("{}, {}", what, to_string(link.bandwidth)),
           heat_of(link.from, link.to));
    }
    box(node.device, at);
    return at;
  }

  double draw_host(int host, double left) {
    const auto trees = exchange::host_trees(topology_, host);
    const auto nvswitches = topology_.devices(DeviceKind::nvswitch, host);
    int columns = 0;
    int levels = 1;
    for (const auto& tree : trees) {
      columns += leaves(tree);
      levels = std::max(levels, depth(tree));
    }
    const double width = columns * k_leaf + 16;
    const double nv_rows = std::ceil(static_cast<double>(nvswitches.size()) / in_a_row(width));
    const double above = has_mesh(host) || nv_rows > 0 ? 12 + k_nvswitch_row * std::max(1.0, nv_rows) : 0;
    const double top = top_of_hosts() + 62 + above;
    const double bottom = top + (levels - 1) * k_row;
    const auto vms = exchange::vms_of(topology_, host);
    const double below = exchange::height_of_vms(vms.size());
    lines_ +=
        fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"8\" class=\"host\"/>\n",
                    left, top_of_hosts() + 10, width, bottom - top_of_hosts() + 20 + below);
    const auto& type = topology_.host_spec(host).type;
    text({left + 10, top_of_hosts() + 28},
         shortened(fmt::format("{}{}", topology_.machine_name(host), type.empty() ? "" : " (" + type + ")"),
                   static_cast<std::size_t>((width - 20) / 7.2)),
         "host-name", "start");
    double x = left + 8;
    std::vector<Point> sockets;
    for (const auto& tree : trees) {
      sockets.push_back(draw_tree(tree, x, top, bottom, 0));
      x += leaves(tree) * k_leaf;
    }
    for (std::size_t s = 1; s < sockets.size(); ++s) {
      const auto path = topology_.path_in_host(trees[s - 1].device, trees[s].device);
      if (path)
        line(sockets[s - 1], sockets[s], path->bottleneck, "socket",
             fmt::format("socket interconnect, {}", to_string(path->bottleneck)),
             heat_of(trees[s - 1].device, trees[s].device));
    }
    draw_nvlinks(host, left, width, top - 20 - k_nvswitch_row * std::max(0.0, nv_rows - 1));
    std::vector<exchange::VmMark> marks;
    boxes_ += exchange::draw_vms(vms, left + 8, bottom + 24, width - 16, marks);
    for (const auto& mark : marks) mark_held(mark);
    bottom_ = std::max(bottom_, bottom + 40 + below);
    return left + width;
  }

  /// A square of the VM's colour at the lower edge of a device it holds.
  void mark_held(const exchange::VmMark& mark) {
    const auto at = places_.find(mark.device);
    if (at == places_.end()) return;
    const double x = at->second.x - k_box_w / 2 + 3 + 8 * marks_[mark.device]++;
    if (x > at->second.x + k_box_w / 2 - 8) return;  // a box holds ten
    boxes_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"6\" height=\"6\" fill=\"{}\" class=\"held\"><title>held by VM "
        "{}</title></rect>\n",
        x, at->second.y + k_box_h / 2 - 3, mark.colour, escaped(mark.vm));
  }

  /// NVSwitches of one row in a host of this width.
  static double in_a_row(double width) { return std::max(1.0, std::floor(width / k_leaf)); }

  bool has_mesh(int host) { return !exchange::nvlinks(topology_, host).empty(); }

  /// `top`: between the GPUs and the uppermost row of NVSwitches.
  void draw_nvlinks(int host, double left, double width, double top) {
    const auto nvswitches = topology_.devices(DeviceKind::nvswitch, host);
    const auto beside = static_cast<std::size_t>(in_a_row(width));
    for (std::size_t s = 0; s < nvswitches.size(); ++s) {
      const auto in_row = std::min(beside, nvswitches.size() - s / beside * beside);
      box(nvswitches[s], {left + width * (static_cast<double>(s % beside) + 0.5) / static_cast<double>(in_row),
                          top - k_nvswitch_row + k_nvswitch_row * static_cast<double>(s / beside)});
    }
    for (const auto& pair : exchange::nvlinks(topology_, host)) {
      const auto a = places_.find(pair.a), b = places_.find(pair.b);
      if (a == places_.end() || b == places_.end()) continue;
      const auto word = topology_.gpu_link_word(pair.a);
      const auto title = fmt::format("{} {}s, {}", pair.links, word, to_string(pair.bandwidth));
      const auto heat = heat_of(pair.a, pair.b);
      if (topology_.kind(pair.b) == DeviceKind::nvswitch) {
        line(a->second, b->second, pair.bandwidth, "nvlink", title, heat);
      } else {
        // An arc above the row of GPUs.
        const double height = 26 + 0.055 * std::abs(b->second.x - a->second.x);
        lines_ += fmt::format(
            "<path d=\"M {:.1f} {:.1f} Q {:.1f} {:.1f} {:.1f} {:.1f}\" stroke-width=\"{:.1f}\" "
            "class=\"nvlink{}\"><title>{}{}</title></path>\n",
            a->second.x, a->second.y - k_box_h / 2, (a->second.x + b->second.x) / 2, a->second.y - k_box_h / 2 - height,
            b->second.x, b->second.y - k_box_h / 2, width_of(pair.bandwidth), heat.css, title, escaped(heat.words));
      }
    }
  }

  [[nodiscard]] Point place_of(exchange::Cell cell) const {
    // The cells are spread over the width of the picture.
    const double step = (width_ - 2 * k_margin) / layout_.columns;
    return {k_margin + (cell.column + 0.5) * step, k_margin + k_title + (cell.row + 0.5) * k_switch_row};
  }

  void draw_switches() {
    for (const auto& [id, cell] : layout_.cells) box(id, place_of(cell));
    for (const auto& note : layout_.notes) {
      const auto at = place_of(note.cell);
      text({at.x, at.y + 4}, note.words, "note", "middle");
    }
  }

  /// Between neighbours and tiers a straight line; past other boxes of a row or column an arc.
  void cable(DeviceId from, DeviceId to, Bandwidth rate, const std::string& title) {
    const auto a = places_[from];
    const auto b = places_[to];
    const bool are_switches = layout_.cells.count(from) > 0 && layout_.cells.count(to) > 0;
    const double across = std::abs(b.x - a.x);
    const double along = std::abs(b.y - a.y);
    const bool in_row = are_switches && along < 1 && across > 1.3 * (width_ - 2 * k_margin) / layout_.columns;
    const bool in_column = are_switches && across < 1 && along > 1.3 * k_switch_row;
    const auto* css = are_switches && is_dense_ ? "cable dense" : "cable";
    const auto heat = heat_of(from, to);
    label_use(from, to, heat);
    label_use(to, from, heat);
    if (!in_row && !in_column) return line(a, b, rate, css, title, heat);
    const Point over{(a.x + b.x) / 2 + (in_column ? k_box_w * 0.9 : 0), (a.y + b.y) / 2 - (in_row ? k_box_h * 1.4 : 0)};
    lines_ += fmt::format(
        "<path d=\"M {:.1f} {:.1f} Q {:.1f} {:.1f} {:.1f} {:.1f}\" stroke-width=\"{:.1f}\" "
        "class=\"{}{}\"><title>{}{}</title></path>\n",
        a.x, a.y, over.x, over.y, b.x, b.y, width_of(rate), css, heat.css, escaped(title), escaped(heat.words));
  }

  /// What an adapter's cable has in use, above the adapter: paper has no titles.
  void label_use(DeviceId end, DeviceId other, const Heat& heat) {
    if (heat.css.empty() || topology_.kind(end) != DeviceKind::hca) return;
    const auto at = places_[end];
    text({at.x + k_box_w / 2 - 4, at.y - k_box_h / 2 - 4}, fmt::format("{:.0f} %", 100 * busier(end, other)), "use",
         "end");
  }

  void draw_cables() {
    std::map<std::pair<DeviceId, DeviceId>, std::pair<int, Bandwidth>> merged;
    for (const auto& one : exchange::network_cables(topology_)) {
      if (places_.count(one.from) == 0 || places_.count(one.to) == 0) continue;
      auto& known = merged[{one.from, one.to}];
      ++known.first;
      known.second = one.bandwidth;
    }
    constexpr std::size_t k_many = 150;  // lines that would melt into one area
    is_dense_ = merged.size() > k_many;
    for (const auto& [ends, bundle] : merged) {
      cable(ends.first, ends.second, bundle.second * bundle.first,
            fmt::format("{} cable{}, {:.0f} Gb/s each", bundle.first, bundle.first == 1 ? "" : "s",
                        bundle.second.bytes_per_s * 8e-9));
    }
  }

  void legend() {
    double x = k_margin;
    const double y = bottom_ + 14;
    for (const auto kind : {DeviceKind::gpu, DeviceKind::hca, DeviceKind::socket, DeviceKind::pcie_switch,
                            DeviceKind::nvswitch, DeviceKind::network_switch}) {
      boxes_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\" class=\"box\"/>", x,
                            y - 10, colour_of(kind));
      text({x + 17, y}, std::string(to_string(kind)), "note", "start");
      x += 38 + 6.4 * static_cast<double>(to_string(kind).size());
    }
    width_ = std::max(width_, x);
    if (!use_.empty()) heat_legend(y + 22);
  }

  void heat_legend(double y) {
    double x = k_margin;
    for (int heat = 0; heat <= static_cast<int>(std::size(k_heat_limits)); ++heat) {
      const auto words = heat == 0 ? fmt::format("below {:g} % in use", 100 * k_heat_limits[0])
                                   : fmt::format("{:g} %", 100 * k_heat_limits[heat - 1]);
      boxes_ += fmt::format(
          "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke-width=\"4\" class=\"heat{}\"/>", x,
          y - 4, x + 18, y - 4, heat);
      text({x + 23, y}, words, "note", "start");
      x += 42 + 6.4 * static_cast<double>(words.size());
    }
    text({x, y}, "and more, the busier direction", "note", "start");
    bottom_ = y;
    width_ = std::max(width_, x + 190);
  }

  std::string finish() const {
    const double height = std::max(bottom_, top_of_hosts()) + 34;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" "
        "font-family=\"Helvetica,Arial,sans-serif\">\n",
        width_, height, width_, height);
    out +=
        "<style>.box{stroke:#4a5568;stroke-width:1}.name{font-size:11px;font-weight:bold;text-anchor:middle;fill:#"
        "1a202c}.type{font-size:9px;text-anchor:middle;fill:#4a5568}"
        ".note{font-size:12px;fill:#4a5568}.title{font-size:16px;font-weight:bold;fill:#1a202c}.host{fill:#f7fafc;"
        "stroke:#a0aec0}.host-name{font-size:12px;font-weight:bold;fill:#2d3748}"
        "line,path{fill:none}.pcie{stroke:#718096}.socket{stroke:#b83280;stroke-dasharray:6 "
        "3}.nvlink{stroke:#38a169}.cable{stroke:#dd6b20;opacity:.75}.dense{opacity:.25}";
    if (!use_.empty()) out += exchange::k_heat_style;
    out += "</style>\n";
    out += fmt::format(
        "<rect width=\"{:.0f}\" height=\"{:.0f}\" fill=\"#ffffff\"/>\n<text x=\"{}\" y=\"20\" "
        "class=\"title\">{}</text>\n",
        width_, height, k_margin, escaped(topology_.name()));
    return out + lines_ + boxes_ + "</svg>\n";
  }

  const Topology& topology_;
  const LinkShares& use_;
  exchange::SwitchLayout layout_;
  bool is_dense_ = false;
  std::map<DeviceId, Point> places_;
  std::map<DeviceId, int> marks_;  ///< squares of VMs drawn in the box
  std::string lines_, boxes_;
  double width_ = 0, bottom_ = 0;
};

}  // namespace

std::string topology_svg(const Topology& topology, const LinkShares& use) { return Drawing(topology, use).draw(); }

}  // namespace fabricast

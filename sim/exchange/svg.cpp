// SPDX-License-Identifier: Apache-2.0
// A picture for people: hosts below, each with its sockets at the bottom and its GPUs and HCAs on top, switches above
// by tier. Line width follows the rate. Of a group at most two hosts are drawn, of a tier at most eight switches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "exchange/host_tree.hpp"
#include "fabricast/exchange.hpp"

namespace fabricast {

namespace {

using exchange::TreeNode;

constexpr double k_leaf = 92, k_box_w = 84, k_box_h = 34, k_row = 74, k_margin = 24, k_gap = 28;
constexpr int k_drawn_hosts = 2, k_drawn_switches = 8;

struct Point {
  double x = 0, y = 0;
};

const char* colour_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::gpu:
      return "#c6f6d5";
    case DeviceKind::hca:
      return "#bee3f8";
    case DeviceKind::network_switch:
      return "#fed7aa";
    case DeviceKind::nvswitch:
      return "#9ae6b4";
    case DeviceKind::pcie_switch:
      return "#e9d8fd";
    case DeviceKind::root_complex:
      return "#edf2f7";
    default:
      return "#e2e8f0";
  }
}

double width_of(Bandwidth rate) {
  return std::clamp(1.0 + 1.6 * std::log10(std::max(1e9, rate.bytes_per_s) * 1e-9), 1.0, 6.0);
}

class Drawing {
 public:
  explicit Drawing(const Topology& topology) : topology_(topology) {}

  std::string draw() {
    plan_switches();
    double x = k_margin;
    for (const auto& group : exchange::groups(topology_)) {
      const int drawn = std::min(group.count, k_drawn_hosts);
      for (int i = 0; i < drawn; ++i) x = draw_host(group.first_host + i, x) + k_gap;
      if (group.count > drawn) {
        text({x + 40, top_of_hosts() + 110}, fmt::format("+ {} more", group.count - drawn), "note", "middle");
        x += 80 + k_gap;
      }
    }
    width_ = std::max(x, 520.0);
    draw_switches();
    draw_cables();
    legend();
    return finish();
  }

 private:
  struct SwitchRow {
    std::vector<DeviceId> drawn;
    int count = 0;
    std::string type;
  };

  [[nodiscard]] double top_of_hosts() const { return k_margin + 30 + static_cast<double>(rows_.size()) * 92; }

  void plan_switches() {
    const auto switches = topology_.devices(DeviceKind::network_switch);
    const auto tiers = exchange::switch_tiers(topology_);
    int highest = -1;
    for (const int t : tiers) highest = std::max(highest, t);
    rows_.resize(static_cast<std::size_t>(highest + 1));
    for (std::size_t s = 0; s < switches.size(); ++s) {
      auto& row = rows_[static_cast<std::size_t>(highest - tiers[s])];
      ++row.count;
      row.type = topology_.device(switches[s]).type;
      if (static_cast<int>(row.drawn.size()) < k_drawn_switches) row.drawn.push_back(switches[s]);
    }
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
        device.name, device.type.empty() ? "" : ": " + device.type, at.x - k_box_w / 2, at.y - k_box_h / 2, k_box_w,
        k_box_h, colour_of(device.kind));
    auto kind = device.type.empty() ? std::string(to_string(device.kind)) : device.type;
    if (device.kind == DeviceKind::socket) kind = device.type;
    if (kind.size() > 15) kind = kind.substr(0, 14) + "…";
    boxes_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"name\">{}</text><text x=\"{:.1f}\" y=\"{:.1f}\" "
        "class=\"type\">{}</text></g>\n",
        at.x, at.y - 3, exchange::short_name(topology_, id), at.x, at.y + 11, kind);
  }

  void line(Point a, Point b, Bandwidth rate, const std::string& css, const std::string& title) {
    lines_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke-width=\"{:.1f}\" "
        "class=\"{}\"><title>{}</title></line>\n",
        a.x, a.y, b.x, b.y, width_of(rate), css, title);
  }

  void text(Point at, const std::string& words, const char* css, const char* anchor) {
    boxes_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", at.x, at.y,
                          css, anchor, words);
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
      line(at, children[i], link.bandwidth, "pcie", fmt::format("{}, {}", what, to_string(link.bandwidth)));
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
    const double nv_rows = nvswitches.empty() && !has_mesh(host) ? 0 : 1;
    const double top = top_of_hosts() + 62 + (nv_rows > 0 ? 56 : 0);
    const double bottom = top + (levels - 1) * k_row;
    const double width = columns * k_leaf + 16;
    lines_ +=
        fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"8\" class=\"host\"/>\n",
                    left, top_of_hosts() + 10, width, bottom - top_of_hosts() + 20);
    text({left + 10, top_of_hosts() + 28},
         fmt::format("{} ({})", topology_.host_name(host), topology_.host_spec(host).type), "host-name", "start");
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
             fmt::format("socket interconnect, {}", to_string(path->bottleneck)));
    }
    draw_nvlinks(host, left, width, top);
    bottom_ = std::max(bottom_, bottom + 40);
    return left + width;
  }

  bool has_mesh(int host) { return !exchange::nvlinks(topology_, host).empty(); }

  void draw_nvlinks(int host, double left, double width, double top) {
    const auto nvswitches = topology_.devices(DeviceKind::nvswitch, host);
    for (std::size_t s = 0; s < nvswitches.size(); ++s)
      box(nvswitches[s],
          {left + width * (static_cast<double>(s) + 0.5) / static_cast<double>(nvswitches.size()), top - 64});
    for (const auto& pair : exchange::nvlinks(topology_, host)) {
      const auto a = places_.find(pair.a);
      const auto b = places_.find(pair.b);
      if (a == places_.end() || b == places_.end()) continue;
      const auto title = fmt::format("{} NVLinks, {}", pair.links, to_string(pair.bandwidth));
      if (topology_.kind(pair.b) == DeviceKind::nvswitch) {
        line(a->second, b->second, pair.bandwidth, "nvlink", title);
      } else {
        // An arc above the row of GPUs.
        const double height = 26 + 0.055 * std::abs(b->second.x - a->second.x);
        lines_ += fmt::format(
            "<path d=\"M {:.1f} {:.1f} Q {:.1f} {:.1f} {:.1f} {:.1f}\" stroke-width=\"{:.1f}\" "
            "class=\"nvlink\"><title>{}</title></path>\n",
            a->second.x, a->second.y - k_box_h / 2, (a->second.x + b->second.x) / 2, a->second.y - k_box_h / 2 - height,
            b->second.x, b->second.y - k_box_h / 2, width_of(pair.bandwidth), title);
      }
    }
  }

  void draw_switches() {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const auto& row = rows_[r];
      const auto shown = row.drawn.size() + (row.count > static_cast<int>(row.drawn.size()) ? 1 : 0);
      const double y = k_margin + 34 + static_cast<double>(r) * 92;
      for (std::size_t s = 0; s < row.drawn.size(); ++s)
        box(row.drawn[s], {width_ * (static_cast<double>(s) + 0.5) / static_cast<double>(shown), y});
      if (shown > row.drawn.size())
        text({width_ * (static_cast<double>(shown) - 0.5) / static_cast<double>(shown), y + 4},
             fmt::format("+ {} more", row.count - static_cast<int>(row.drawn.size())), "note", "middle");
    }
  }

  void draw_cables() {
    std::map<std::pair<DeviceId, DeviceId>, std::pair<int, Bandwidth>> merged;
    for (const auto& cable : exchange::network_cables(topology_)) {
      if (places_.count(cable.from) == 0 || places_.count(cable.to) == 0) continue;
      auto& known = merged[{cable.from, cable.to}];
      ++known.first;
      known.second = cable.bandwidth;
    }
    for (const auto& [ends, cable] : merged) {
      line(places_[ends.first], places_[ends.second], cable.second * cable.first, "cable",
           fmt::format("{} cable{}, {:.0f} Gb/s each", cable.first, cable.first == 1 ? "" : "s",
                       cable.second.bytes_per_s * 8e-9));
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
  }

  std::string finish() const {
    const double height = bottom_ + 34;
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
        "3}.nvlink{stroke:#38a169}.cable{stroke:#dd6b20;opacity:.75}</style>\n";
    out += fmt::format(
        "<rect width=\"{:.0f}\" height=\"{:.0f}\" fill=\"#ffffff\"/>\n<text x=\"{}\" y=\"20\" "
        "class=\"title\">{}</text>\n",
        width_, height, k_margin, topology_.name());
    return out + lines_ + boxes_ + "</svg>\n";
  }

  const Topology& topology_;
  std::vector<SwitchRow> rows_;  ///< top tier first
  std::map<DeviceId, Point> places_;
  std::string lines_, boxes_;
  double width_ = 0, bottom_ = 0;
};

}  // namespace

std::string topology_svg(const Topology& topology) { return Drawing(topology).draw(); }

}  // namespace fabricast

// SPDX-License-Identifier: Apache-2.0
// Cables of a fabric from the records of both of their ends.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "import/merge.hpp"
#include "import/write_topology.hpp"

namespace fabricast::import {

namespace {

class CableWriter {
 public:
  CableWriter(const FabricSeen& fabric, const std::map<std::string, std::string>& ends, Inventory& inventory)
      : fabric_(fabric), ends_(ends), inventory_(inventory) {
    for (const auto& node : fabric.nodes) {
      if (node.is_switch) switches_.insert(node.id);
      for (const auto& [number, port] : node.ports) ports_[{node.id, number}] = &port;
    }
  }

  std::string write() {
    for (const auto& node : fabric_.nodes) {
      if (!ends_.contains(node.id)) continue;
      for (const auto& [number, port] : node.ports) add_port(node, number, port);
    }
    std::string out;
    for (const auto& one : cables_) {
      out += fmt::format("      - {{from: {}, to: {}", yaml_quoted(one.ends.first), yaml_quoted(one.ends.second));
      if (one.count > 1) out += fmt::format(", count: {}", one.count);
      if (one.gbit_per_s > 0) out += fmt::format(", rate: {:g} Gb/s", one.gbit_per_s);
      out += "}\n";
    }
    return out;
  }

 private:
  struct Cables {
    std::pair<std::string, std::string> ends;
    double gbit_per_s = 0;
    int count = 1;
    SourceLocation place;
  };

  void add_port(const FabricNode& node, int number, const FabricPort& port) {
    if (port.peer == node.id) {
      if (number < port.peer_port)
        inventory_.findings.push_back(make_warning_at(
            port.place, fmt::format("ports {} and {} of '{}' are joined by a cable: it carries nothing, left out",
                                    number, port.peer_port, node.description)));
      return;
    }
    const auto there = ends_.find(port.peer);
    const auto back = ports_.find({port.peer, port.peer_port});
    if (there == ends_.end()) {
      if (back == ports_.end())
        inventory_.findings.push_back(one_sided(node, number, port, "the output does not list the other end"));
      return;
    }
    if (back == ports_.end() || back->second->peer != node.id) {
      auto found = one_sided(node, number, port, "the other end does not name this one: left out");
      if (back != ports_.end()) found.notes.push_back({"its port is here", back->second->place});
      inventory_.findings.push_back(std::move(found));
      return;
    }
    const double there_rate = back->second->gbit_per_s;
    if (there_rate > 0 && port.gbit_per_s > 0 && there_rate != port.gbit_per_s && node.id < port.peer)
      inventory_.findings.push_back(
          contradiction(port.place, fmt::format("this end runs at {:g} Gb/s", port.gbit_per_s), back->second->place,
                        fmt::format("the other at {:g} Gb/s", there_rate)));
    // Once per cable: from the adapter, or from the smaller end of two switches.
    const bool is_peer_switch = switches_.contains(port.peer);
    if (node.is_switch && !is_peer_switch) return;
    if (node.is_switch == is_peer_switch && std::pair(node.id, number) > std::pair(port.peer, port.peer_port)) return;
    const bool is_said_twice = there_rate > 0 && port.gbit_per_s > 0;
    add_cable({ends_.at(node.id), there->second},
              is_said_twice ? std::min(port.gbit_per_s, there_rate) : std::max(port.gbit_per_s, there_rate),
              port.place);
  }

  /// One more cable between two ends. Cables between the same ends have one rate: the slowest.
  void add_cable(const std::pair<std::string, std::string>& ends, double rate, const SourceLocation& place) {
    const auto known = numbers_.try_emplace(ends, cables_.size());
    if (known.second) {
      cables_.push_back({ends, rate, 1, place});
      return;
    }
    auto& one = cables_[known.first->second];
    ++one.count;
    if (one.gbit_per_s == rate) return;
    inventory_.findings.push_back(contradiction(
        one.place, fmt::format("a cable from '{}' to '{}' runs at {:g} Gb/s", ends.first, ends.second, one.gbit_per_s),
        place, fmt::format("another one at {:g} Gb/s: all are written with the slowest rate", rate)));
    one.gbit_per_s = std::min(one.gbit_per_s, rate);
  }

  static Diagnostic one_sided(const FabricNode& node, int number, const FabricPort& port, const char* why) {
    return make_warning_at(port.place,
                           fmt::format("port {} of '{}' leads to '{}': {}", number, node.description, port.peer, why));
  }

  const FabricSeen& fabric_;
  const std::map<std::string, std::string>& ends_;
  Inventory& inventory_;
  std::set<std::string> switches_;
  std::map<std::pair<std::string, int>, const FabricPort*> ports_;
  std::vector<Cables> cables_;
  std::map<std::pair<std::string, std::string>, std::size_t> numbers_;  ///< of cables, by their ends
};

}  // namespace

std::string cables_of(const FabricSeen& fabric, const std::map<std::string, std::string>& ends, Inventory& inventory) {
  return CableWriter(fabric, ends, inventory).write();
}

}  // namespace fabricast::import

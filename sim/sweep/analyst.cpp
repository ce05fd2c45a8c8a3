// SPDX-License-Identifier: Apache-2.0
#include "sweep/analyst.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <set>

#include "base/parameter_change.hpp"
#include "fabricast/simulate.hpp"
#include "sweep/figures.hpp"

namespace fabricast::sweep {

namespace {

/// Values that count or name something, or say yes or no: known, or another device. Nobody measures them.
bool is_fact(const std::string& name) {
  static const std::set<std::string, std::less<>> fields = {"compute_capability",
                                                            "sms",
                                                            "pcie_generation",
                                                            "pcie_width",
                                                            "nvlink_links",
                                                            "copy_engines",
                                                            "ports",
                                                            "mtu",
                                                            "packet_header",
                                                            "rdma",
                                                            "plugin_simple_only",
                                                            "plugin_tuner",
                                                            "rails",
                                                            "port_split",
                                                            "cores",
                                                            "max_payload",
                                                            "multicast",
                                                            "max_rails",
                                                            "instances",
                                                            "memory",
                                                            "bar1",
                                                            "functions",
                                                            "slices",
                                                            "memory_slices",
                                                            "cpu_pool_cores",
                                                            "buffer",
                                                            "vl_buffer"};
  for (const char* owner : {"architecture.", "support.", "mig.", "mig_placement.", "vgpu.", "esxi."}) {
    if (name.starts_with(owner)) return true;
  }
  const auto dot = name.rfind('.');
  return dot != std::string::npos && fields.contains(name.substr(dot + 1));
}

}  // namespace

Analyst::Analyst(LoadedScenario loaded, std::vector<Metric> metrics)
    : loaded_(std::move(loaded)), metrics_(std::move(metrics)) {
  keep_rows(loaded_.scenario, metrics_);
  collect();
}

std::string Analyst::figures_at(std::size_t end) const {
  const auto& range = ranges_[end / 2];
  auto parameters = loaded_.parameters;
  auto changed = parameters.at(range.name);
  changed.value = end % 2 == 0 ? range.low : range.high;
  changed.low = changed.high = changed.value;
  parameters.set(std::move(changed));
  std::string out;
  const auto topology = build_topology(loaded_.topology.spec(), parameters, loaded_.device_types);
  const auto prediction = topology ? simulate(*topology, loaded_.scenario, parameters)
                                   : Result<Prediction>(tl::unexpected(topology.error()));
  for (const auto& metric : metrics_) {
    std::string why;
    const auto found = prediction ? figure_of(metric, loaded_.scenario, *prediction, why) : std::nullopt;
    out += fmt::format("{:.17g} ", found ? found->value : std::nan(""));
  }
  return out;
}

void Analyst::collect() {
  std::set<std::string, std::less<>> names;
  auto parameters = loaded_.parameters;
  parameters.collect_reads(&names);
  const auto topology = build_topology(loaded_.topology.spec(), parameters, loaded_.device_types);
  if (topology) static_cast<void>(simulate(*topology, loaded_.scenario, parameters));
  parameters.collect_reads(nullptr);
  for (const auto& name : names) {
    if (name.starts_with("model.") || is_fact(name)) continue;  // "model.": of the band, not of the value
    const auto& one = loaded_.parameters.at(name);
    if (one.value == 0) continue;
    const double half = one.has_interval() ? 0 : relative_half_width(one.confidence) * std::abs(one.value);
    ranges_.push_back({name, one.value, one.has_interval() ? one.low : one.value - half,
                       one.has_interval() ? one.high : one.value + half, one.source});
  }
}

std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> out;
  double value = 0;
  int length = 0;
  for (const char* at = text.c_str(); std::sscanf(at, "%lf%n", &value, &length) == 1; at += length)
    out.push_back(value);
  return out;
}

}  // namespace fabricast::sweep

// SPDX-License-Identifier: Apache-2.0
// What planners without flows have in common: one or two devices, and parameters that nobody has published.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fabricast/models/planner.hpp"

namespace fabricast::models {

/// The line of a result's assumptions that names a value nobody has published, with what is possible.
std::string assumed_line(const ParameterSet& parameters, const std::string& name);

class DevicePlanner : public Planner {
 public:
  DevicePlanner(const PlanContext& context, const Workload& workload, std::vector<DeviceId> devices)
      : context_(context), workload_(workload), devices_(std::move(devices)) {}
  [[nodiscard]] int num_ranks() const override { return 1; }
  [[nodiscard]] int num_hosts() const override { return 1; }
  [[nodiscard]] std::vector<std::string> devices() const override {
    std::vector<std::string> names;
    for (const auto device : devices_) { names.push_back(context_.topology.device(device).name); }
    return names;
  }

 protected:
  PlanContext context_;
  Workload workload_;
  std::vector<DeviceId> devices_;
};

}  // namespace fabricast::models

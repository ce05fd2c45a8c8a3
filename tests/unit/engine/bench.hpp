// SPDX-License-Identifier: Apache-2.0
// A host whose own links nobody uses, and resources of any rate on it: what tests of the engine plan on.
#pragma once

#include "engine/fluid.hpp"
#include "fabricast/models/plan.hpp"
#include "tests/support/clusters.hpp"

namespace fabricast::test {

struct Bench {
  Topology topology =
      test::topology("schema: fabricast/topology/1\nname: t\nhosts:\n  - {name: n, type: dgx-1-v100}\n").topology;
  models::Resources resources{topology};
  int num_resources = 0;

  /// A resource that nothing else uses.
  int resource(double gb_per_s) {
    return resources.extra(models::Limit::copies, DeviceId{0}, gb_per_s * 1e9, "test", num_resources++);
  }
  /// The one of a number.
  int resource(int number, double gb_per_s) {
    return resources.extra(models::Limit::copies, DeviceId{number}, gb_per_s * 1e9, "test");
  }
  [[nodiscard]] engine::OperationTiming timing(const models::OperationPlan& plan, bool full_expansion = false) const {
    return engine::run(resources, {{&plan, {}}}, {.full_expansion = full_expansion})[0];
  }
};

}  // namespace fabricast::test

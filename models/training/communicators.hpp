// SPDX-License-Identifier: Apache-2.0
// The groups of GPUs of one kind (tensor, data ...) that exchange at the same time: replicas do the same at the same
// time, so what all of them put on adapters, links, buses and memories is there together. Each group is planned by
// NCCL's rules for its own GPUs. Groups whose plans are equal are seen as one whose flow crosses what they cross,
//
//   rate = min over resources(capacity / sum over groups of times),
//
// which is when the last of equal flows that start together ends. Of neighbourhoods of groups that are alike one is
// planned; the others put on the links between switches what their own routes cross. Groups whose plans differ run
// beside each other, and the exchange has ended when the last has.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "training/communicator.hpp"
#include "training/group_places.hpp"

namespace fabricast::models::training {

/// An operation of groups with equal plans. Its flows have no crossings; they are apart, in order of nodes and flows.
struct Lockstep {
  OperationPlan plan;
  std::vector<std::vector<Crossing>> crossings;
};

/// Which nodes of a program cross what. Filled in at the end, when it is known what can bind beside all else.
class Wire {
 public:
  /// `resources` must outlive it. `is_alone`: nothing but the program uses them.
  Wire(const Resources& resources, bool is_alone) : resources_(&resources), is_alone_(is_alone) {}

  /// The nodes of `part` begin with number `first` of the program. `part` must outlive it.
  void place(std::size_t first, const Lockstep& part);
  void fill(Program& program) const;

 private:
  const Resources* resources_;
  bool is_alone_;
  std::vector<const Lockstep*> parts_;
  std::vector<std::pair<std::size_t, std::size_t>> placed_;  ///< first node, number in parts_
};

class Communicators {
 public:
  /// `groups` of equal size, each in rank order; the first is the one that steps tell of. `is_beside`: exchanges of
  /// other kinds, or of other stages, may be on the wire at the same time.
  static Result<Communicators> make(const PlanContext& context, const Workload& workload,
                                    const std::vector<std::vector<DeviceId>>& groups, bool is_beside);

  /// Appends `operation` of `size` bytes in every group, the first group on `stream`; returns the index of the last
  /// node. What waits for it is called `name`; it slows compute on device `slowed`, -1 = none. `times` of them, one
  /// after another, are seen as one.
  int append(Program& program, Wire& wire, Benchmark operation, Bytes size, const std::vector<int>& after, int stream,
             const std::string& name, int slowed, double times = 1) const;
  /// Of all groups at once, when nothing else is exchanged.
  [[nodiscard]] Duration time_alone(Benchmark operation, Bytes size) const;
  /// How much longer compute takes beside it, as a share.
  [[nodiscard]] double slowdown(Benchmark operation, Bytes size) const;
  /// GPUs of each group.
  [[nodiscard]] int size() const { return first().size(); }
  [[nodiscard]] const Communicator& first() const { return members_.front().group; }
  /// Several groups share hosts.
  [[nodiscard]] bool has_neighbours() const { return neighbourhoods_.front().groups.size() > 1; }
  /// Of the hosts of the first group, adapters by which groups that share them send or receive.
  [[nodiscard]] std::set<DeviceId> hcas_in_use() const;

 private:
  struct Member {
    Communicator group;
    std::size_t neighbourhood = 0;
  };
  struct Exchange {
    std::vector<Lockstep> parts;
    Duration time;
  };

  Communicators(const PlanContext& context, std::vector<Neighbourhood> neighbourhoods, bool is_beside);
  [[nodiscard]] const Exchange& exchange(Benchmark operation, Bytes size) const;
  void add_likes(const Neighbourhood& neighbourhood, Flow& flow) const;

  std::shared_ptr<const PlanContext> context_;  ///< that members are planned in; a pointer, so that it can be assigned
  bool with_legs_ = false;                      ///< flows shall list their network transfers
  std::vector<Neighbourhood> neighbourhoods_;   ///< no two alike
  std::vector<Member> members_;
  mutable std::map<std::pair<Benchmark, std::int64_t>, Exchange> exchanges_;
};

}  // namespace fabricast::models::training

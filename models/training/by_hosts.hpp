// SPDX-License-Identifier: Apache-2.0
// All-reduce of a buffer of gradients in Horovod's two forms by hosts, each part planned by NCCL's or MPI's own rules:
//
//   in each host   reduce-scatter; what does not divide by the local ranks is reduced to the last of them (NCCL)
//   between hosts  local rank i all-reduces its share with local ranks i of the other hosts, all i at the same time:
//                  hierarchical  by MPI, out of and back into the GPU through pageable host memory
//                  torus         by NCCL
//   in each host   all-gather; what does not divide is broadcast (NCCL)
//
// Shares: n / L of n elements, L local ranks; a fused buffer is padded to a multiple of 64 L elements, a tensor that
// goes alone leaves n mod L. Where hosts have unequal numbers of ranks nothing is scattered: all n elements are reduced
// to the first rank of each host. MPI keeps Horovod's thread: the next cycle begins when it has ended.
// [horovod, common/ops/nccl_operations.cc, NCCLHierarchicalAllreduce, NCCLTorusAllreduce]
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "training/buckets.hpp"
#include "training/communicator.hpp"

namespace fabricast::models::training {

class ByHosts {
 public:
  /// `gpus` in rank order, on two systems or more.
  static Result<ByHosts> make(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& gpus);

  /// Nodes of one buffer: its end, and what frees Horovod's thread for the next (-1: nothing keeps it).
  struct Ends {
    int done = -1;
    int freed = -1;
  };
  /// Appends the all-reduce of `buffer`; `which` says which one it is, device `slowed` computes beside NCCL's parts.
  Ends append(Program& program, const Bucket& buffer, const std::vector<int>& after, const std::string& which,
              int slowed) const;
  /// How long the buffer keeps Horovod's thread when nothing else is exchanged; none with NCCL between hosts.
  [[nodiscard]] Duration busy(const Bucket& buffer) const;
  /// Ranks of every host; 0 = hosts differ.
  [[nodiscard]] int local_size() const { return local_size_; }
  [[nodiscard]] bool is_by_mpi() const { return !processes_.empty(); }
  /// Profile of the MPI library; empty with NCCL between hosts.
  [[nodiscard]] std::string mpi_profile() const;
  /// What the parts between hosts assume.
  [[nodiscard]] std::vector<std::string> assumptions() const;

 private:
  /// Bytes of a buffer in each part.
  struct Shares {
    Bytes scattered;  ///< of all local ranks together
    Bytes rest;       ///< that one local rank gets alone
    [[nodiscard]] Bytes of(int local_rank, int local_size) const;
  };
  enum class Local : std::uint8_t { before, behind };

  ByHosts() = default;
  std::optional<Diagnostics> connect(const PlanContext& context, const Workload& workload,
                                     const std::vector<std::vector<DeviceId>>& hosts);
  std::optional<Diagnostics> connect_by_mpi(const PlanContext& context, const Workload& workload,
                                            const std::vector<DeviceId>& gpus, int alike);
  [[nodiscard]] Shares shares(const Bucket& buffer) const;
  [[nodiscard]] const OperationPlan& by_mpi(std::size_t index, Bytes size) const;
  /// Bytes that the `index`-th group between hosts exchanges.
  [[nodiscard]] Bytes between(std::size_t index, const Shares& shares) const;
  [[nodiscard]] int local(Program& program, const Shares& shares, Local part, std::vector<int> after,
                          const std::string& which, int slowed) const;
  [[nodiscard]] int between_by_nccl(Program& program, const Shares& shares, int after, const std::string& which,
                                    int slowed) const;
  [[nodiscard]] int between_by_mpi(Program& program, const Shares& shares, int after, const std::string& which) const;

  const Resources* resources_ = nullptr;
  int element_bytes_ = 4;
  int local_size_ = 0;
  bool has_peers_ = false;                           ///< GPU 0 has others in its host
  std::vector<Communicator> local_;                  ///< one per kind of host: equal hosts do the same at the same time
  std::vector<Communicator> cross_;                  ///< torus: [local rank]; with unequal hosts only the first
  std::vector<std::shared_ptr<Planner>> processes_;  ///< hierarchical: the same by MPI
  mutable std::map<std::pair<std::size_t, std::int64_t>, OperationPlan> plans_;
};

}  // namespace fabricast::models::training

// SPDX-License-Identifier: Apache-2.0
// NCCL's kernels for buffers in windows of symmetric memory (ncclCommWindowRegister with NCCL_WIN_COLL_SYMMETRIC,
// nccl-tests -R 2, from 2.27 on): a thread block loads from and stores to the buffers of all GPUs that NVLink joins,
// without channels between them. Which kernel NCCL takes with how many thread blocks, and what it costs. Equations:
// docs/models/nccl-symmetric.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "fabricast/training.hpp"
#include "fabricast/virtualization.hpp"
#include "nccl/architecture.hpp"
#include "nccl/channels.hpp"
#include "nccl/launch.hpp"
#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

/// lines: of LL, to each GPU or multicast. direct: loads, sums and stores of whole blocks (LD, ST). multicast: the
/// NVSwitches sum what is loaded and copy what is stored (LDMC, STMC).
enum class SymmetricKernel { lines, multicast_lines, direct, multicast };

/// LL, to each GPU or multicast.
bool is_of_lines(SymmetricKernel kernel);
/// What needs NVSwitches that multicast.
bool is_multicast(SymmetricKernel kernel);

/// As NCCL's debug output names it, without the collective: AGxLL_R, RSxLD_AGxST.
std::string name_of(SymmetricKernel kernel, Collective collective);

/// What the choice of a kernel rests on.
struct SymmetricFacts {
  Collective collective = Collective::all_reduce;
  int version = 228;  ///< release_number
  int compute_capability = 90;
  int num_ranks = 2;
  bool has_multicast = false;  ///< NVSwitches reduce and multicast for them (NVLink SHARP)
  int channels = 24;           ///< of the communicator
  std::optional<int> forced;   ///< NCCL_MIN_CTAS and NCCL_MAX_CTAS
};

SymmetricFacts symmetric_facts(const CommunicatorFacts& facts, int channels, std::optional<int> forced);

struct SymmetricChoice {
  SymmetricKernel kernel = SymmetricKernel::lines;
  int blocks = 1;

  bool operator==(const SymmetricChoice&) const = default;
};

/// Microseconds of a kernel that NCCL would have measured.
using SymmetricTime = std::function<double(const SymmetricChoice&)>;

/// The kernel of least estimated time, where each thread block counts as 2.5 % more. `size` is nccl-tests': of an
/// all-gather or reduce-scatter the parts of all ranks. From 2.28 on by NCCL's own estimate; 2.27 has tables of
/// measured times, for which `measured` stands (NVIDIA/nccl src/symmetric.cc of 2.27, src/sym_kernels.cc since).
SymmetricChoice choose_symmetric(const SymmetricFacts& facts, Bytes size, const SymmetricTime& measured);

/// Whether NCCL takes such kernels for buffers that are registered so: release, collective, one host whose GPUs NVLink
/// joins each with each. Whether they are is `symmetric_memory`'s.
Gate symmetric_gate(const PlanContext& context, const std::vector<HostGroup>& hosts, Collective collective);

/// Why no communicator of a training step takes such kernels, after a colon; empty where one does.
std::string why_no_windows(const PlanContext& context, const TrainingSpec& training, bool crosses_hosts);

/// `symmetric_memory: on` and what became of it.
GivenUsed symmetric_setting(const Gate& gate);

/// The kernels of one communicator.
struct SymmetricRanks {
  const PlanContext& context;
  const std::vector<DeviceId>& gpus;  ///< of one host
  Architecture architecture;
  SymmetricFacts facts;
};

/// The kernel that NCCL takes for `size`, into `plan`: its start, and one flow of loads and stores, whose unit is what
/// a GPU sends to one other, with multicast what crosses its port.
void plan_symmetric(const SymmetricRanks& ranks, const Launch& launch, Bytes size, OperationPlan& plan);

/// Time of one kernel alone, from its start on and without its launch.
Duration symmetric_time(const SymmetricRanks& ranks, const SymmetricChoice& choice, Bytes size);

/// What such forecasts rest on, a sentence each.
std::vector<std::string> symmetric_assumptions(const SymmetricRanks& ranks);

}  // namespace fabricast::models::nccl

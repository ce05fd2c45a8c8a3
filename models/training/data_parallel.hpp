// SPDX-License-Identifier: Apache-2.0
// A data-parallel step of one GPU as a program; all replicas do the same at the same time, so one compute stream and
// one NCCL stream stand for all of them.
//
//   DDP      buffers of batch norms broadcast | forward | backward up to a bucket's last gradient | copy into the
//   bucket |
//            ... ; all-reduces one after another on the NCCL stream, each after its bucket; copy out | optimiser
//   Horovod  the same with fusion buffers that the coordinator finds at each cycle, after a negotiation; by hosts
//   (by_hosts.hpp) where it is told to
//   FSDP     per block all-gather before forward and backward, reduce-scatter after backward; FSDP2's order
//
// Sources: docs/MODELS.md, "Training".
#pragma once

#include "fabricast/models/plan.hpp"
#include "fabricast/training.hpp"
#include "training/by_hosts.hpp"
#include "training/communicator.hpp"
#include "training/work.hpp"

namespace fabricast::models::training {

/// Data parallelism alone, gradient by gradient: DDP's buckets and Horovod's buffers.
bool is_plain(const TrainingSpec& spec);

/// Parameters of what surrounds the exchange on one kind of GPU.
struct SideCosts {
  const ParameterSet& parameters;
  double memory_bandwidth = 1;

  /// `passes` x `bytes` through the GPU's memory.
  [[nodiscard]] Duration copies(double passes, Bytes bytes) const;
};

/// How the replicas exchange.
struct Replicas {
  const Communicator* group = nullptr;  ///< null: one GPU, no exchange
  const ByHosts* by_hosts = nullptr;    ///< Horovod's forms by hosts instead of all-reduces of the group
  int local_size = 0;                   ///< GPUs of every host that takes part; 0 = hosts differ
};

Program data_parallel_program(const SideCosts& costs, const ParallelSpec& parallel, const StepWork& work,
                              const Replicas& replicas);

}  // namespace fabricast::models::training

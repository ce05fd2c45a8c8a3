// SPDX-License-Identifier: Apache-2.0
// Traces of applications to replay: what every rank computes and exchanges, and what waits for what. Read from
// MLCommons Chakra execution traces (protobuf as et_def.proto lays it out, or the JSON that chakra_jsonizer prints; one
// file per rank) and from GOAL schedules (the text that LogGOPSim's txt2bin reads).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

enum class TraceOpKind : std::uint8_t { compute, send, receive, collective };

/// One operation of a rank. Operations of a lane run one at a time; others when what they wait for has happened.
struct TraceOp {
  TraceOpKind kind = TraceOpKind::compute;
  std::string name;
  SourceLocation place;  ///< line 0: the node's number in a binary file is in the name
  Duration time;         ///< of compute
  Bytes size;            ///< of a message; of a collective as nccl-tests counts it
  int peer = 0;          ///< of a message: rank
  std::int64_t tag = 0;
  Benchmark collective = Benchmark::all_reduce_perf;
  std::string group;  ///< of a collective: ranks whose traces name it take part, in rank order
  int lane = 0;  ///< compute: a stream of the device, or a core; negative: the host's, which collectives do not slow
  std::vector<int> after;  ///< operations of the rank that must have ended
  std::vector<int> with;   ///< operations of the rank that must have started
};

struct Trace {
  std::string format;  ///< "chakra", "goal"
  bool is_on_gpus =
      true;  ///< rank i is GPU i and exchanges by NCCL; else a process with buffers in host memory, by MPI
  std::vector<std::vector<TraceOp>> ranks;
};

struct TraceFile {
  std::string name;
  std::string text;
};

/// GOAL: one file. Chakra: one file per rank, in the order of the number before their suffix, or one for `copies` equal
/// ranks. At most 65,536 ranks, 4,000,000 operations, 256 MiB.
Result<Trace> read_trace(const std::vector<TraceFile>& files, int copies = 0);
/// The ranks of each group as a file beside the traces lists them, {"NAME": [RANK, ...]}: a collective of a rank that
/// its group has not, and a rank that its group waits for in vain, are faults.
Result<void> check_groups(const Trace& trace, const TraceFile& groups);

}  // namespace fabricast

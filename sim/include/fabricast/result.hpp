// SPDX-License-Identifier: Apache-2.0
// What a simulation answers: one row per message size, the terms each time is made of, and what it rests on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabricast/fabric_report.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

/// One summand of a predicted time. The terms of a row add up to its time exactly.
struct Term {
  std::string name;  ///< "launch", "rendezvous handshake", "serialisation at node0.hca0 -> leaf0 (network)"
  Duration time;
  std::string parameter;  ///< parameter or link the time follows from
  std::string source;     ///< the parameter's source
};

/// A further column of a row. The key carries the unit (`_ps`, `_bytes`, `_share`); a key without one is a count.
struct Figure {
  std::string key;
  double value = 0;
};

/// What one stream of a step did, for timelines.
struct Span {
  std::string stream;
  std::string name;
  Duration start;  ///< after the step began
  Duration time;
};

struct Row {
  Bytes size;     ///< message size as the benchmark prints it
  Duration time;  ///< one operation: collective, half round trip, or the mean time per message of a bandwidth test
  Duration low_time, high_time;  ///< 80 % band
  Bandwidth algbw;               ///< nccl-tests' algbw; bytes per second of bandwidth tests (all pairs together)
  Bandwidth busbw;               ///< nccl-tests' busbw; equal to algbw elsewhere
  double messages_per_s = 0;     ///< osu_mbw_mr, perftest message rate
  std::string algorithm;         ///< used
  std::string protocol;          ///< used
  int channels = 0;              ///< used; 0 when the notion does not apply
  std::string bottleneck;  ///< what takes most of the time: the link or limit that holds the transfers, or another term
  Duration physical_bound;       ///< bytes over the narrowest link plus path latency: no prediction is below it
  bool is_extrapolated = false;  ///< outside the range the parameters were fitted on
  std::vector<Term> terms;
  std::string label;                           ///< what the row is about when that is not a size: a VM's name
  std::vector<Figure> figures;                 ///< same keys in every row of a workload
  std::vector<Span> timeline;                  ///< training: every stream's work, by start
  std::vector<FlowTime> flows;                 ///< traffic: completion of every flow
  std::shared_ptr<const FabricReport> fabric;  ///< packet engine only
};

/// What was asked of one setting and what the simulation used.
struct GivenUsed {
  std::string setting;
  std::string given;
  std::string used;
  std::string reason;
};

struct WorkloadPrediction {
  std::string name;
  Benchmark benchmark = Benchmark::osu_latency;
  int num_ranks = 0;
  int num_hosts = 0;
  std::vector<std::string> devices;  ///< full names of the ranks' devices, in rank order (at most 16; then "...")
  std::vector<Row> rows;
  std::vector<GivenUsed> settings;
  std::vector<std::string> assumptions;  ///< sorted, unique
  /// Devices without logs whose values those of a relative are, one sentence each; the band is wider for it.
  std::vector<std::string> stand_ins;
};

struct Prediction {
  std::string scenario;
  std::string topology;
  std::vector<WorkloadPrediction> workloads;
  bool is_interrupted = false;  ///< ended early: later sizes, or the end of the last, are missing
};

}  // namespace fabricast

// SPDX-License-Identifier: Apache-2.0
// Steps of transformers split over GPUs in five ways at once: tensor (t), context (c), pipeline (p, v virtual stages
// each), data (d = GPUs / (t c p)) and expert (e, with x GPUs per expert inside t d c). Ranks lie as Megatron-LM places
// them: tensor innermost, then context, data, pipeline outermost; for experts x innermost, then e, then their t c d /
// (x e) replicas, which exchange the gradients of experts.
//
// One compute stream and one NCCL stream per pipeline stage stand for all GPUs of the stage: replicas do the same at
// the same time. Collectives inside a layer wait for compute and compute waits for them: they are fixed terms of the
// chunk of layers that a stage computes, or flows where other workloads may be in their way. Sends between stages and
// the exchange of gradients are flows.
//
//   1F1B: p - s - 1 forward passes, then one backward after each forward; interleaved as Megatron-LM orders chunks.
//
// Sources: docs/MODELS.md, "Training".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "training/communicators.hpp"
#include "training/data_parallel.hpp"
#include "training/roofline.hpp"

namespace fabricast::models::training {

/// How many GPUs share what.
struct Layout {
  int tensor = 1, context = 1, pipeline = 1, data = 1, expert = 1, expert_tensor = 1;

  [[nodiscard]] int gpus() const { return tensor * context * pipeline * data; }
  /// Replicas of what is no expert, and of the experts.
  [[nodiscard]] int replicas() const { return data * context; }
  /// Experts have replicas of their own; else they are exchanged with all else.
  [[nodiscard]] bool has_experts_apart() const { return expert > 1 || expert_tensor != tensor; }
  [[nodiscard]] int expert_replicas() const { return tensor * data * context / (expert * expert_tensor); }
};

/// The groups that talk inside the layers of a stage, those of a kind together.
struct LayerGroups {
  std::optional<Communicators> tensor, context, expert, expert_tensor;

  [[nodiscard]] bool is_empty() const { return !tensor && !context && !expert && !expert_tensor; }
};

struct SplitGroups {
  Layout layout;
  Wire wire;                       ///< empty; of a program that they exchange in
  bool meets_others = false;       ///< other workloads run beside it: what layers exchange is on the wire
  std::vector<LayerGroups> layer;  ///< [stage] where they are on the wire, else those of stage 0, whose times all have
  std::vector<std::optional<Communicators>> data;         ///< [stage]
  std::vector<std::optional<Communicators>> expert_data;  ///< [stage]: replicas of its experts
  std::vector<std::optional<Communicators>> send;         ///< [stage]: to the next one, the last one's to the first

  [[nodiscard]] const LayerGroups& layer_of(int stage) const {
    return layer.size() == 1 ? layer.front() : layer[static_cast<std::size_t>(stage)];
  }

  /// Of all kinds and stages.
  [[nodiscard]] std::vector<const Communicators*> all() const;
  /// One that speaks for the step: between hosts, where any is; none where nothing is exchanged.
  [[nodiscard]] const Communicator* speaker() const;
};

/// The split of `gpus` GPUs, or why there is none.
Result<Layout> layout_of(const Workload& workload, int gpus);
Result<SplitGroups> make_groups(const PlanContext& context, const Workload& workload,
                                const std::vector<DeviceId>& gpus);

/// What is assumed of exchanges that meet, and by which adapters of the host of `gpu`, the first one, they go.
std::vector<std::string> split_assumptions(const PlanContext& context, const SplitGroups& split, DeviceId gpu);

/// Time of what one GPU computes: blocks, and what stands before and behind them.
struct BlockWork {
  Duration forward, backward;
  Duration attention;                            ///< of `forward`
  Duration selective;                            ///< of `forward`, what selective recomputation computes again
  Duration launch_forward, launch_backward;      ///< beside both, what the GPU waits for its launching thread
  double parameters = 0, expert_parameters = 0;  ///< that the GPU keeps, of experts apart
  double tensors = 0;

  [[nodiscard]] double all_parameters() const { return parameters + expert_parameters; }
};

/// Blocks of a model by kind.
struct BlockCount {
  int dense = 0, sparse = 0;  ///< without and with experts

  [[nodiscard]] int all() const { return dense + sparse; }
};

struct TransformerWork {
  BlockWork dense, sparse;  ///< a block without and one with experts
  BlockWork first, last;
  std::vector<int> sparse_before;  ///< [block]: how many before it have experts; one more entry than blocks
  std::string compute_parameter;

  /// From block `from` to the one before `to`.
  [[nodiscard]] BlockCount count(int from, int to) const;
  /// What so many blocks are together.
  [[nodiscard]] BlockWork sum(const BlockCount& blocks) const;
  [[nodiscard]] const BlockWork& block(bool is_sparse) const { return is_sparse ? sparse : dense; }
};
/// `slower`: how many times as long the slowest GPU computes, which so waits less for its launching thread.
TransformerWork transformer_work(const Roofline& roofline, const TrainingSpec& spec, const Layout& layout,
                                 double slower = 1);

Program split_program(const SideCosts& costs, const Roofline& roofline, const TrainingSpec& spec,
                      const SplitGroups& groups, const TransformerWork& work);

/// The same with parameters sharded over the replicas (data: fsdp); one pipeline stage.
Program sharded_program(const SideCosts& costs, const Roofline& roofline, const TrainingSpec& spec,
                        const SplitGroups& groups, const TransformerWork& work);

/// One layer's forward pass, computed as soon as it can be, with its exposed collectives.
Program layer_program(const Roofline& roofline, const TrainingSpec& spec, const SplitGroups& groups);

}  // namespace fabricast::models::training

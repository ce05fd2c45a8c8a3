// SPDX-License-Identifier: Apache-2.0
// Steps of transformers split over GPUs in five ways at once: tensor (t), context (c), pipeline (p, v virtual stages
// each), data (d = GPUs / (t c p)) and expert (e, inside d c). Ranks lie as Megatron-LM places them: tensor innermost,
// then context, data, pipeline outermost.
//
// One compute stream and one NCCL stream per pipeline stage stand for all GPUs of the stage: replicas do the same at
// the same time. Collectives inside a layer wait for compute and compute waits for them: they are fixed terms of the
// chunk of layers that a stage computes. Sends between stages and the exchange of gradients are flows.
//
//   1F1B: p - s - 1 forward passes, then one backward after each forward; interleaved as Megatron-LM orders chunks.
//
// Sources: docs/MODELS.md, "Training".
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "training/communicator.hpp"
#include "training/data_parallel.hpp"
#include "training/roofline.hpp"

namespace fabricast::models::training {

/// How many GPUs share what.
struct Layout {
  int tensor = 1, context = 1, pipeline = 1, data = 1, expert = 1;

  [[nodiscard]] int gpus() const { return tensor * context * pipeline * data; }
};

/// GPUs of a size in rank order, and the groups that talk. Groups of stage 0 stand for those of other stages where only
/// their times count.
struct SplitGroups {
  Layout layout;
  std::optional<Communicator> tensor, context, expert;
  std::vector<std::optional<Communicator>> data;  ///< [stage]
  std::vector<std::optional<Communicator>> send;  ///< [stage]: to the next one, the last one's to the first
};

/// The split of `gpus` GPUs, or why there is none.
Result<Layout> layout_of(const Workload& workload, int gpus);
Result<SplitGroups> make_groups(const PlanContext& context, const Workload& workload,
                                const std::vector<DeviceId>& gpus);

/// Time of what one GPU computes: blocks, and what stands before and behind them.
struct BlockWork {
  Duration forward, backward;
  Duration attention;  ///< of `forward`
};

struct TransformerWork {
  BlockWork block, first, last;
  double block_parameters = 0, first_parameters = 0, last_parameters = 0;  ///< per GPU of tensor and expert group
  double block_tensors = 0;
  std::string compute_parameter;
};
TransformerWork transformer_work(const Roofline& roofline, const TrainingSpec& spec, const Layout& layout);

Program split_program(const SideCosts& costs, const Roofline& roofline, const TrainingSpec& spec,
                      const SplitGroups& groups, const TransformerWork& work);

/// The same with parameters sharded over the replicas (data: fsdp); one pipeline stage.
Program sharded_program(const SideCosts& costs, const Roofline& roofline, const TrainingSpec& spec,
                        const SplitGroups& groups, const TransformerWork& work);

/// One layer's forward pass, computed as soon as it can be, with its exposed collectives.
Program layer_program(const Roofline& roofline, const TrainingSpec& spec, const SplitGroups& groups);

}  // namespace fabricast::models::training

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/assert.hpp"
#include "training/exchanges.hpp"
#include "training/pipeline_order.hpp"
#include "training/terms.hpp"
#include "training/transformer.hpp"

namespace fabricast::models::training {

namespace {

constexpr double k_bucket_parameters = 40e6;  ///< Megatron-LM: max(40e6, 1e6 x replicas)
constexpr double k_bucket_per_replica = 1e6;
constexpr int k_parameter_bytes = 2;  ///< gathered in bf16

/// Builds the program: every stage's tasks in its order, a task as soon as what it waits for is in the list.
class SplitStep {
 public:
  SplitStep(const SideCosts& costs, const Roofline& roofline, const TrainingSpec& spec, const SplitGroups& groups,
            const TransformerWork& work)
      : roofline_(roofline),
        spec_(spec),
        groups_(groups),
        work_(work),
        layout_(groups.layout),
        interleave_(spec.parallel.interleave),
        wire_(groups.wire) {
    program_.num_devices = layout_.pipeline;
    for (int s = 0; s < layout_.pipeline; ++s) {
      program_.streams.push_back({fmt::format("stage {} compute", s), s});
      exchanges_.emplace_back(costs.parameters, spec_, layout_, groups_.layer_of(s));
      flows_.emplace_back(program_, wire_, s);
    }
    for (int s = 0; s < layout_.pipeline; ++s) program_.streams.push_back({fmt::format("stage {} NCCL", s), -1});
    last_.assign(static_cast<std::size_t>(layout_.pipeline), -1);
    exchanged_.resize(static_cast<std::size_t>(layout_.pipeline));
  }

  Program make() {
    std::vector<std::vector<PipelineTask>> queues;
    std::vector<std::size_t> next(static_cast<std::size_t>(layout_.pipeline), 0);
    for (int s = 0; s < layout_.pipeline; ++s)
      queues.push_back(pipeline_order(s, layout_.pipeline, spec_.parallel.micro_batches, interleave_));
    for (bool is_moving = true; is_moving;) {
      is_moving = false;
      for (int s = 0; s < layout_.pipeline; ++s) {
        auto& at = next[static_cast<std::size_t>(s)];
        const auto& queue = queues[static_cast<std::size_t>(s)];
        while (at < queue.size() && is_ready(s, queue[at])) {
          add_task(s, queue[at], is_paired(queue, at));
          ++at;
          is_moving = true;
        }
      }
    }
    for (int s = 0; s < layout_.pipeline; ++s) {
      FABRICAST_ASSERT(next[static_cast<std::size_t>(s)] == queues[static_cast<std::size_t>(s)].size(),
                       "stage {} waits for ever", s);
      add_optimizer(s);
    }
    wire_.fill(program_);
    return std::move(program_);
  }

 private:
  using Key = std::tuple<int, int, bool>;  ///< virtual stage, micro-batch, backward

  /// Whether the task passes another micro-batch that goes the other way: a backward pass and the forward pass behind
  /// it.
  [[nodiscard]] bool is_paired(const std::vector<PipelineTask>& queue, std::size_t at) const {
    if (!spec_.parallel.expert_overlap) return false;
    if (queue[at].is_backward) return at + 1 < queue.size() && !queue[at + 1].is_backward;
    return at > 0 && queue[at - 1].is_backward;
  }

  [[nodiscard]] int virtual_stages() const { return layout_.pipeline * interleave_; }
  [[nodiscard]] int virtual_stage(int stage, const PipelineTask& task) const {
    return task.chunk * layout_.pipeline + stage;
  }

  /// What the task takes over: from the virtual stage before, or behind it going back; the last one's own forward.
  [[nodiscard]] std::optional<Key> source_of(int stage, const PipelineTask& task) const {
    const int place = virtual_stage(stage, task);
    if (!task.is_backward) return place == 0 ? std::nullopt : std::optional(Key{place - 1, task.batch, false});
    if (place + 1 == virtual_stages()) return Key{place, task.batch, false};
    return Key{place + 1, task.batch, true};
  }

  [[nodiscard]] bool is_ready(int stage, const PipelineTask& task) const {
    const auto source = source_of(stage, task);
    return !source || done_.contains(*source);
  }

  [[nodiscard]] int blocks_of(int place) const {
    const auto upto = [&](int i) {
      return static_cast<int>(std::int64_t{spec_.network->transformer->layers} * i / virtual_stages());
    };
    return upto(place + 1) - upto(place);
  }

  int push(Node node) {
    program_.nodes.push_back(std::move(node));
    return static_cast<int>(program_.nodes.size()) - 1;
  }

  /// Blocks of a chunk from its `first` one on.
  [[nodiscard]] BlockCount count(int place, int first, int blocks) const {
    const auto start =
        static_cast<int>(std::int64_t{spec_.network->transformer->layers} * place / virtual_stages()) + first;
    return work_.count(start, start + blocks);
  }

  int compute(int stage, const char* name, const std::string& parameter, Duration work, std::vector<Term> exchanges,
              std::vector<int> after) {
    Node node;
    node.kind = NodeKind::compute;
    node.label = node.work_name = name;
    node.work_parameter = parameter;
    node.work = work;
    node.fixed = std::move(exchanges);
    node.stream = stage;
    node.after = std::move(after);
    auto& last = last_[static_cast<std::size_t>(stage)];
    if (last >= 0) node.after.push_back(last);
    return last = push(std::move(node));
  }

  /// What a virtual stage hands to another; nothing between chunks of one GPU.
  int send(const Key& from, int to_stage) {
    const int node = done_.at(from);
    const int stage = std::get<0>(from) % layout_.pipeline;
    if (stage == to_stage) return node;
    const bool is_next = (stage + 1) % layout_.pipeline == to_stage;
    const auto& pair = groups_.send[static_cast<std::size_t>(is_next ? stage : to_stage)];
    // Without interleaving a stage computes nothing while it sends.
    const int stream = interleave_ > 1 ? -1 : stage;
    const int sent = pair->append(program_, wire_, Benchmark::sendrecv_perf, exchanges_.front().boundary(), {node},
                                  stream, "exposed sends between stages", -1);
    if (interleave_ == 1) last_[static_cast<std::size_t>(stage)] = sent;
    return sent;
  }

  void add_task(int stage, const PipelineTask& task, bool passes_another) {
    const int place = virtual_stage(stage, task);
    std::vector<int> after;
    if (const auto source = source_of(stage, task))
      after = {sent_.contains(*source) ? sent_.at(*source) : done_.at(*source)};
    const int blocks = blocks_of(place);
    const bool is_exchanged =
        (replicas(stage) || expert_replicas(stage)) &&
        (task.is_backward ? task.batch + 1 == spec_.parallel.micro_batches : task.batch == 0 && is_sharded());
    const int step = is_exchanged ? blocks_per_bucket() : std::max(1, blocks);
    for (int first = 0; first < std::max(1, blocks); first += step)
      add_piece(stage, task, {first, std::min(step, blocks - first), blocks, passes_another}, is_exchanged, after);
    auto& last = last_[static_cast<std::size_t>(stage)];
    last = flows_[static_cast<std::size_t>(stage)].end_pass(last);
    const Key key{place, task.batch, task.is_backward};
    done_[key] = last;
    const int to = task.is_backward ? place - 1 : place + 1;
    if (to >= 0 && to < virtual_stages()) sent_[key] = send(key, to % layout_.pipeline);
  }

  struct Piece {
    int first, blocks, of;
    bool is_paired;
  };

  /// Some blocks of a chunk, with the embedding before the first and the head behind the last.
  void add_piece(int stage, const PipelineTask& task, const Piece& piece, bool is_exchanged, std::vector<int>& after) {
    const int place = virtual_stage(stage, task);
    const bool is_begin = task.is_backward ? piece.first + piece.blocks >= piece.of : piece.first == 0;
    const bool is_end = task.is_backward ? piece.first == 0 : piece.first + piece.blocks >= piece.of;
    const auto part = [&](const BlockWork& work) { return task.is_backward ? work.backward : work.forward; };
    const int first = task.is_backward ? piece.of - piece.first - piece.blocks : piece.first;
    const auto blocks = count(place, first, piece.blocks);
    auto sum = work_.sum(blocks);
    auto time = part(sum);
    if (place == 0 && is_begin) {
      time += part(work_.first);
      sum.parameters += work_.first.parameters;
    }
    if (place + 1 == virtual_stages() && is_end) {
      time += part(work_.last);
      sum.parameters += work_.last.parameters;
    }
    if (is_exchanged && !task.is_backward) gather(stage, sum, after);
    const auto& of_stage = exchanges_[static_cast<std::size_t>(stage)];
    const auto exchanges = task.is_backward ? of_stage.backward(blocks, work_, piece.is_paired)
                                            : of_stage.forward(blocks, work_, piece.is_paired);
    const int work =
        compute(stage, task.is_backward ? k_backward : k_forward, work_.compute_parameter, time,
                groups_.meets_others ? of_stage.terms_beside(exchanges) : of_stage.terms(exchanges), after);
    after.clear();
    auto& last = last_[static_cast<std::size_t>(stage)];
    if (groups_.meets_others) last = flows_[static_cast<std::size_t>(stage)].append(exchanges, work);
    if (is_exchanged && task.is_backward) reduce(stage, sum, last);
  }

  [[nodiscard]] bool is_sharded() const { return spec_.parallel.data == DataParallelism::zero1; }
  [[nodiscard]] const Communicators* replicas(int stage) const { return one_of(groups_.data, stage); }
  [[nodiscard]] const Communicators* expert_replicas(int stage) const { return one_of(groups_.expert_data, stage); }
  [[nodiscard]] static const Communicators* one_of(const std::vector<std::optional<Communicators>>& groups, int stage) {
    const auto& found = groups[static_cast<std::size_t>(stage)];
    return found ? &*found : nullptr;
  }

  [[nodiscard]] int blocks_per_bucket() const {
    const double least = std::max(k_bucket_parameters, k_bucket_per_replica * layout_.replicas());
    const double block = std::max(work_.dense.all_parameters(), work_.sparse.all_parameters());
    return std::max(1, static_cast<int>(std::ceil(least / std::max(1.0, block))));
  }

  /// Adds to `waits` what has to be there.
  void gather(int stage, const BlockWork& part, std::vector<int>& waits) {
    const auto one = [&](const Communicators* group, double parameters, const char* name) {
      if (group == nullptr || parameters <= 0) return;
      waits.push_back(group->append(program_, wire_, Benchmark::all_gather_perf,
                                    to_bytes(parameters * k_parameter_bytes), {}, layout_.pipeline + stage, name,
                                    stage));
    };
    one(replicas(stage), part.parameters, "exposed all-gather of parameters");
    one(expert_replicas(stage), part.expert_parameters, "exposed all-gather of experts");
  }

  void reduce(int stage, const BlockWork& part, int after) {
    const auto operation = is_sharded() ? Benchmark::reduce_scatter_perf : Benchmark::all_reduce_perf;
    const auto one = [&](const Communicators* group, double parameters, const char* name) {
      if (group == nullptr || parameters <= 0) return;
      const auto size = to_bytes(parameters * element_bytes(spec_.parallel.exchange));
      exchanged_[static_cast<std::size_t>(stage)] = {
          group->append(program_, wire_, operation, size, {after}, layout_.pipeline + stage, name, stage)};
    };
    one(replicas(stage), part.parameters, "exposed exchange of gradients");
    one(expert_replicas(stage), part.expert_parameters, "exposed exchange of experts' gradients");
  }

  void add_optimizer(int stage) {
    BlockCount blocks;
    for (int chunk = 0; chunk < interleave_; ++chunk) {
      const int place = chunk * layout_.pipeline + stage;
      const auto one = count(place, 0, blocks_of(place));
      blocks.dense += one.dense;
      blocks.sparse += one.sparse;
    }
    auto sum = work_.sum(blocks);
    auto& last = last_[static_cast<std::size_t>(stage)];
    last = flows_[static_cast<std::size_t>(stage)].end_pass(last);
    if (stage == 0) sum.parameters += work_.first.parameters;
    if (stage + 1 == layout_.pipeline) sum.parameters += work_.last.parameters;
    const double own = sum.parameters / (is_sharded() ? layout_.replicas() : 1) +
                       sum.expert_parameters / (is_sharded() ? layout_.expert_replicas() : 1);
    compute(stage, k_optimizer, roofline_.optimizer_efficiency().name, roofline_.optimizer(own, sum.tensors), {},
            exchanged_[static_cast<std::size_t>(stage)]);
  }

  const Roofline& roofline_;
  const TrainingSpec& spec_;
  const SplitGroups& groups_;
  const TransformerWork& work_;
  Layout layout_;
  std::vector<BlockExchanges> exchanges_;  ///< [stage]
  std::vector<LayerFlows> flows_;          ///< [stage]
  int interleave_;
  Wire wire_;
  Program program_;
  std::vector<int> last_;                    ///< [stage] last node of its compute stream
  std::vector<std::vector<int>> exchanged_;  ///< [stage] last node of its gradients' exchange
  std::map<Key, int> done_, sent_;
};

}  // namespace

Program split_program(const SideCosts& costs, const Roofline& roofline, const TrainingSpec& spec,
                      const SplitGroups& groups, const TransformerWork& work) {
  return SplitStep(costs, roofline, spec, groups, work).make();
}

}  // namespace fabricast::models::training

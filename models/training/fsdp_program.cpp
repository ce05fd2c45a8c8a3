// SPDX-License-Identifier: Apache-2.0
// Fully sharded data parallelism in the order of PyTorch's FSDP2 (fully_shard), one group per block, the rest in a root
// group that stays gathered after forward. Experts are sharded over their own replicas. Collectives run one after
// another on one stream.
//
//   forward    gather of the next block while this one computes; copy out of the gathered buffer on the compute stream
//   backward   the same in reverse; gradients of a block are copied in when the reduce-scatter before has ended
//
// [pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py]
#include <algorithm>

#include "base/parameter_name.hpp"
#include "training/exchanges.hpp"
#include "training/terms.hpp"
#include "training/transformer.hpp"

namespace fabricast::models::training {

namespace {

constexpr int k_gathered_bytes = 2;  ///< parameters travel in bf16

class ShardedStep {
 public:
  ShardedStep(const SideCosts& costs, const Roofline& roofline, const TrainingSpec& spec, const SplitGroups& groups,
              const TransformerWork& work)
      : costs_(costs),
        roofline_(roofline),
        spec_(spec),
        work_(work),
        exchanges_(costs.parameters, spec, groups.layout, groups.layer.front()),
        meets_others_(groups.meets_others),
        group_(groups.data.front() ? &*groups.data.front() : nullptr),
        experts_(groups.expert_data.front() ? &*groups.expert_data.front() : nullptr),
        wire_(groups.wire),
        flows_(program_, wire_, k_compute) {
    program_.num_devices = 1;
    program_.streams = {{"GPU 0 compute", 0}, {"GPU 0 NCCL", -1}};
  }

  Program make() {
    const int blocks = spec_.network->transformer->layers;
    BlockWork root;
    root.parameters = work_.first.parameters + work_.last.parameters;
    for (int batch = 0; batch < spec_.parallel.micro_batches; ++batch) {
      const int gathered = gather(root, {});
      copy_out(root, gathered);
      int next = gather(block(0), {last_});
      compute(k_forward, work_.first.forward, launching(work_.first.launch_forward));
      for (int b = 0; b < blocks; ++b) {
        copy_out(block(b), next);
        if (b + 1 < blocks) next = gather(block(b + 1), {last_});
        pass(k_forward, block(b).forward, block(b).launch_forward, exchanges_.forward(work_.count(b, b + 1), work_));
      }
      compute(k_forward, work_.last.forward, launching(work_.last.launch_forward));
      backward(blocks, root);
    }
    const auto all = work_.sum(work_.count(0, blocks));
    const double own = (root.parameters + all.parameters) / (group_ == nullptr ? 1 : group_->size()) +
                       all.expert_parameters / (experts_ == nullptr ? 1 : experts_->size());
    last_ = flows_.end_pass(last_);
    compute(k_optimizer, roofline_.optimizer(own, all.tensors), {}, reduced_, roofline_.optimizer_efficiency().name);
    wire_.fill(program_);
    return std::move(program_);
  }

 private:
  [[nodiscard]] const BlockWork& block(int b) const { return work_.block(work_.count(b, b + 1).sparse > 0); }

  void backward(int blocks, const BlockWork& root) {
    // The last block stays gathered between forward and backward.
    compute(k_backward, work_.last.backward, launching(work_.last.launch_backward));
    int next = -1;
    for (int b = blocks - 1; b >= 0; --b) {
      if (next >= 0) copy_out(block(b), next);
      next = b > 0 ? gather(block(b - 1), {last_}) : -1;
      pass(k_backward, block(b).backward, block(b).launch_backward, exchanges_.backward(work_.count(b, b + 1), work_));
      reduce(block(b));
    }
    compute(k_backward, work_.first.backward, launching(work_.first.launch_backward));
    reduce(root);
  }

  /// `exposed` beside what a pass waits for its launching thread.
  [[nodiscard]] std::vector<Term> launching(Duration wait, std::vector<Term> exposed = {}) const {
    const auto& one = costs_.parameters.at("training.operator_time"_key);
    if (wait.ps > 0) exposed.push_back({k_launch, wait, one.name, one.source});
    return exposed;
  }

  int compute(const char* name, Duration time, std::vector<Term> exposed, int after = -1,
              const std::string& parameter = {}) {
    Node node;
    node.kind = NodeKind::compute;
    node.label = node.work_name = name;
    node.work_parameter = parameter.empty() ? work_.compute_parameter : parameter;
    node.work = time;
    node.fixed = std::move(exposed);
    node.stream = k_compute;
    if (last_ >= 0) node.after.push_back(last_);
    if (after >= 0) node.after.push_back(after);
    program_.nodes.push_back(std::move(node));
    return last_ = static_cast<int>(program_.nodes.size()) - 1;
  }

  /// A block one way, with what it exchanges inside.
  void pass(const char* name, Duration time, Duration launch, const std::vector<LayerExchange>& exchanges) {
    compute(name, time,
            launching(launch, meets_others_ ? exchanges_.terms_beside(exchanges) : exchanges_.terms(exchanges)));
    if (meets_others_) last_ = flows_.end_pass(flows_.append(exchanges, last_));
  }

  /// What is gathered and scattered of a part.
  [[nodiscard]] double dense(const BlockWork& part) const { return group_ == nullptr ? 0 : part.parameters; }
  [[nodiscard]] double expert(const BlockWork& part) const { return experts_ == nullptr ? 0 : part.expert_parameters; }

  /// Index of the gather's end; -1 where nothing is gathered.
  int gather(const BlockWork& part, std::vector<int> after) {
    std::erase(after, -1);
    int last = -1;
    const auto one = [&](const Communicators* group, double parameters, const char* name) {
      if (parameters <= 0) return;
      last = group->append(program_, wire_, Benchmark::all_gather_perf, to_bytes(parameters * k_gathered_bytes), after,
                           k_nccl, name, 0);
    };
    one(group_, dense(part), "exposed all-gather of parameters");
    one(experts_, expert(part), "exposed all-gather of experts");
    return last;
  }

  void copy_out(const BlockWork& part, int gathered) {
    const double parameters = dense(part) + expert(part);
    if (parameters <= 0) return;
    compute("gathered parameters out of their buffer", costs_.copies(2, to_bytes(parameters * k_gathered_bytes)), {},
            gathered, "training.copy_efficiency"_key);
  }

  void reduce(const BlockWork& part) {
    const double bytes = element_bytes(spec_.parallel.exchange);
    const double parameters = dense(part) + expert(part);
    if (parameters <= 0) return;
    const int copied =
        compute("gradients into the buffer of the reduce-scatter", costs_.copies(2, to_bytes(parameters * bytes)), {},
                reduced_, "training.copy_efficiency"_key);
    const auto one = [&](const Communicators* group, double own, const char* name) {
      if (own <= 0) return;
      reduced_ = group->append(program_, wire_, Benchmark::reduce_scatter_perf, to_bytes(own * bytes), {copied}, k_nccl,
                               name, 0);
    };
    one(group_, dense(part), "exposed reduce-scatter of gradients");
    one(experts_, expert(part), "exposed reduce-scatter of experts' gradients");
  }

  const SideCosts& costs_;
  const Roofline& roofline_;
  const TrainingSpec& spec_;
  const TransformerWork& work_;
  BlockExchanges exchanges_;
  bool meets_others_;
  const Communicators* group_;    ///< replicas of what is no expert
  const Communicators* experts_;  ///< replicas of experts
  Wire wire_;
  Program program_;
  LayerFlows flows_;
  int last_ = -1;
  int reduced_ = -1;
};

}  // namespace

Program sharded_program(const SideCosts& costs, const Roofline& roofline, const TrainingSpec& spec,
                        const SplitGroups& groups, const TransformerWork& work) {
  return ShardedStep(costs, roofline, spec, groups, work).make();
}

}  // namespace fabricast::models::training

// SPDX-License-Identifier: Apache-2.0
// Fully sharded data parallelism in the order of PyTorch's FSDP2 (fully_shard), one group per block, the rest in a root
// group that stays gathered after forward. Collectives of the communicator run one after another on one stream.
//
//   forward    gather of the next block while this one computes; copy out of the gathered buffer on the compute stream
//   backward   the same in reverse; gradients of a block are copied in when the reduce-scatter before has ended
//
// [pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py]
#include <algorithm>

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
        exchanges_(costs.parameters, spec, groups),
        group_(groups.data.front() ? &*groups.data.front() : nullptr) {
    program_.num_devices = 1;
    program_.streams = {{"GPU 0 compute", 0}, {"GPU 0 NCCL", -1}};
  }

  Program make() {
    const int blocks = spec_.network->transformer->layers;
    const double root = work_.first_parameters + work_.last_parameters;
    for (int batch = 0; batch < spec_.parallel.micro_batches; ++batch) {
      const int gathered = gather(root, {});
      copy_out(root, gathered);
      int next = gather(work_.block_parameters, {last_});
      compute(k_forward, work_.first.forward, {});
      for (int block = 0; block < blocks; ++block) {
        copy_out(work_.block_parameters, next);
        if (block + 1 < blocks) next = gather(work_.block_parameters, {last_});
        compute(k_forward, work_.block.forward, exchanges_.forward(1, work_.block));
      }
      compute(k_forward, work_.last.forward, {});
      backward(blocks, root);
    }
    const double shards = group_ == nullptr ? 1 : group_->size();
    const double parameters = root + blocks * work_.block_parameters;
    compute(k_optimizer, roofline_.optimizer(parameters / shards, blocks * work_.block_tensors), {}, reduced_);
    return std::move(program_);
  }

 private:
  void backward(int blocks, double root) {
    // The last block stays gathered between forward and backward.
    compute(k_backward, work_.last.backward, {});
    int next = -1;
    for (int block = blocks - 1; block >= 0; --block) {
      if (next >= 0) copy_out(work_.block_parameters, next);
      next = block > 0 ? gather(work_.block_parameters, {last_}) : -1;
      compute(k_backward, work_.block.backward, exchanges_.backward(1, work_.block));
      reduce(work_.block_parameters);
    }
    compute(k_backward, work_.first.backward, {});
    reduce(root);
  }

  int compute(const char* name, Duration time, std::vector<Term> exposed, int after = -1,
              const char* parameter = nullptr) {
    Node node;
    node.kind = NodeKind::compute;
    node.label = node.work_name = name;
    node.work_parameter = parameter == nullptr ? work_.compute_parameter : parameter;
    node.work = time;
    node.fixed = std::move(exposed);
    node.stream = k_compute;
    if (last_ >= 0) node.after.push_back(last_);
    if (after >= 0) node.after.push_back(after);
    program_.nodes.push_back(std::move(node));
    return last_ = static_cast<int>(program_.nodes.size()) - 1;
  }

  /// Index of the gather's end; -1 with one GPU.
  int gather(double parameters, std::vector<int> after) {
    if (group_ == nullptr) return -1;
    std::erase(after, -1);
    return group_->append(program_, Benchmark::all_gather_perf, to_bytes(parameters * k_gathered_bytes), after, k_nccl,
                          "exposed all-gather of parameters", 0);
  }

  void copy_out(double parameters, int gathered) {
    if (group_ == nullptr) return;
    compute("gathered parameters out of their buffer", costs_.copies(2, to_bytes(parameters * k_gathered_bytes)), {},
            gathered, "training.copy_efficiency");
  }

  void reduce(double parameters) {
    if (group_ == nullptr) return;
    const auto size = to_bytes(parameters * element_bytes(spec_.parallel.exchange));
    const int copied = compute("gradients into the buffer of the reduce-scatter", costs_.copies(2, size), {}, reduced_,
                               "training.copy_efficiency");
    reduced_ = group_->append(program_, Benchmark::reduce_scatter_perf, size, {copied}, k_nccl,
                              "exposed reduce-scatter of gradients", 0);
  }

  const SideCosts& costs_;
  const Roofline& roofline_;
  const TrainingSpec& spec_;
  const TransformerWork& work_;
  BlockExchanges exchanges_;
  const Communicator* group_;
  Program program_;
  int last_ = -1;
  int reduced_ = -1;
};

}  // namespace

Program sharded_program(const SideCosts& costs, const Roofline& roofline, const TrainingSpec& spec,
                        const SplitGroups& groups, const TransformerWork& work) {
  return ShardedStep(costs, roofline, spec, groups, work).make();
}

}  // namespace fabricast::models::training

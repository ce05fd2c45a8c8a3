// SPDX-License-Identifier: Apache-2.0
#include "training/data_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parameter_name.hpp"
#include "training/buckets.hpp"
#include "training/terms.hpp"

namespace fabricast::models::training {

namespace {

constexpr int k_device = 0;
constexpr Bytes k_fusion{64 << 20};

class DataParallelStep {
 public:
  DataParallelStep(const SideCosts& costs, const ParallelSpec& parallel, const StepWork& work, const Replicas& replicas)
      : costs_(costs),
        parallel_(parallel),
        work_(work),
        group_(replicas.group),
        by_hosts_(replicas.by_hosts),
        local_size_(replicas.local_size) {
    program_.num_devices = 1;
    program_.streams = {{"GPU 0 compute", k_device}, {"GPU 0 NCCL", -1}};
    if (by_hosts_ != nullptr && by_hosts_->is_by_mpi()) program_.streams.push_back({"GPU 0 MPI", -1});
  }

  Program make() {
    for (int batch = 1; batch < parallel_.micro_batches; ++batch) {
      compute(k_forward, work_.forward, work_.compute_parameter);
      compute(k_backward, work_.backward, work_.compute_parameter);
    }
    if (group_ != nullptr) broadcast_buffers();
    compute(k_forward, work_.forward, work_.compute_parameter);
    if (group_ == nullptr) {
      compute(k_backward, work_.backward, work_.compute_parameter);
    } else {
      backward();
    }
    compute(k_optimizer, work_.optimizer, work_.optimizer_parameter);
    return std::move(program_);
  }

 private:
  /// Appends work to the compute stream; returns its index.
  int compute(const char* name, Duration time, const std::string& parameter, std::vector<int> after = {}) {
    Node node;
    node.kind = NodeKind::compute;
    node.label = node.work_name = name;
    node.work_parameter = parameter;
    node.work = time;
    node.stream = k_compute;
    node.after = std::move(after);
    if (last_ >= 0) node.after.push_back(last_);
    program_.nodes.push_back(std::move(node));
    return last_ = static_cast<int>(program_.nodes.size()) - 1;
  }

  int compute(const char* name, const ParameterName<Dimension::time, std::string_view>& each, double times,
              std::vector<int> after = {}) {
    return compute(name, from_seconds(costs_.parameters.at(each).value * times), each, std::move(after));
  }

  /// Batch norms: every step begins with the means and variances of rank 0, copied tensor by tensor.
  void broadcast_buffers() {
    if (work_.buffers == 0 || parallel_.data != DataParallelism::ddp) return;
    compute("launching the copies of batch norms' buffers", "training.buffer_copy_time"_key, work_.buffers);
    const int sent = group_->append(program_, Benchmark::broadcast_perf, work_.buffer_bytes, {last_}, k_nccl,
                                    "broadcast of batch norms' buffers", -1);
    last_ = sent;
  }

  /// Measured DDP steps of networks with batch norms take as long as if no all-reduce began before the backward pass
  /// had ended: five rows over NVLink, host memory and TCP. Why is not known.
  [[nodiscard]] bool is_unhidden() const { return work_.buffers > 0 && parallel_.data == DataParallelism::ddp; }

  [[nodiscard]] std::vector<Bucket> buckets() const {
    if (parallel_.data != DataParallelism::horovod) return ddp_buckets(work_.tensors, parallel_.bucket);
    auto fusion = parallel_.fusion.value_or(k_fusion);
    if (local_size_ > 0) fusion = fusion_threshold(fusion, local_size_);
    const auto cycle = parallel_.cycle.value_or(costs_.parameters["training.horovod_cycle"_key]);
    if (by_hosts_ == nullptr || !by_hosts_->is_by_mpi()) return horovod_buffers(work_.tensors, fusion, cycle);
    return horovod_buffers(work_.tensors, fusion, cycle,
                           [&](const Bucket& buffer) { return negotiation() + by_hosts_->busy(buffer); });
  }

  [[nodiscard]] Bytes on_wire(const Bucket& bucket) const {
    return Bytes{bucket.bytes.value * element_bytes(parallel_.exchange) / 4};
  }

  /// Passes over a bucket's fp32 bytes: into the bucket, and divided or out of it; casts of a hook read 4 and write 2
  /// bytes each way.
  [[nodiscard]] double passes() const { return parallel_.exchange == Precision::fp32 ? 2 : 3; }

  void backward() {
    Duration done;
    int exchanged = -1;
    const auto all = buckets();
    if (is_unhidden()) {
      compute(k_backward, work_.backward, work_.compute_parameter);
      done = work_.backward;
    }
    for (std::size_t b = 0; b < all.size(); ++b) {
      const auto& bucket = all[b];
      // Horovod's cycle finds a buffer later than its gradients: compute goes on meanwhile, see negotiate().
      const bool is_found_later = parallel_.data == DataParallelism::horovod;
      const auto ready = std::min(is_found_later ? last_gradient_of(bucket) : bucket.ready, work_.backward);
      if (ready > done) compute(k_backward, ready - done, work_.compute_parameter);
      done = std::max(done, ready);
      const int copied = copy_in(bucket);
      const auto which = fmt::format("bucket {} of {} ({})", b + 1, all.size(), to_string(bucket.bytes));
      std::vector<int> after{copied};
      if (parallel_.data == DataParallelism::horovod) after = {negotiate(bucket, copied)};
      exchanged = exchange(bucket, after, which);
    }
    if (work_.backward > done) compute(k_backward, work_.backward - done, work_.compute_parameter);
    compute("gradients out of their buckets", costs_.copies(passes(), work_.gradient_bytes),
            "training.copy_efficiency"_key, {exchanged});
  }

  int exchange(const Bucket& bucket, const std::vector<int>& after, const std::string& which) {
    if (by_hosts_ == nullptr)
      return group_->append(program_, Benchmark::all_reduce_perf, on_wire(bucket), after, k_nccl,
                            "exposed all-reduce of gradients, " + which, k_device);
    const auto ends = by_hosts_->append(program_, bucket, after, which, k_device);
    thread_free_ = ends.freed;
    return ends.done;
  }

  int copy_in(const Bucket& bucket) {
    compute("gradients into their buckets", costs_.copies(passes(), bucket.bytes), "training.copy_efficiency"_key);
    return compute("launching gradient copies", "training.tensor_copy_time"_key, bucket.tensors);
  }

  [[nodiscard]] Duration negotiation() const {
    return from_seconds(costs_.parameters.at("training.horovod_negotiation"_key).value *
                        std::ceil(std::log2(group_->size())));
  }

  /// The coordinator's cycle finds the buffer after its gradients, when its thread is free; then all ranks agree.
  int negotiate(const Bucket& bucket, int after) {
    Node node;
    node.kind = NodeKind::delay;
    node.label = "exposed negotiation";
    node.stream = -1;
    node.after = {after};
    const auto last_ready = last_gradient_of(bucket);
    node.fixed.push_back({"waiting for Horovod's cycle", bucket.ready - last_ready, "training.horovod_cycle"_key,
                          costs_.parameters.at("training.horovod_cycle"_key).source});
    if (thread_free_ >= 0) {
      // The cycle passes while the thread is kept.
      program_.nodes.push_back(node);
      node.fixed.clear();
      node.after = {static_cast<int>(program_.nodes.size()) - 1, thread_free_};
    }
    const auto& round = costs_.parameters.at("training.horovod_negotiation"_key);
    node.fixed.push_back({"negotiation", negotiation(), round.name, round.source});
    program_.nodes.push_back(std::move(node));
    return static_cast<int>(program_.nodes.size()) - 1;
  }

  [[nodiscard]] Duration last_gradient_of(const Bucket& bucket) const {
    Duration last;
    for (const auto& tensor : work_.tensors) {
      if (tensor.ready <= bucket.ready) last = std::max(last, tensor.ready);
    }
    return last;
  }

  const SideCosts& costs_;
  const ParallelSpec& parallel_;
  const StepWork& work_;
  const Communicator* group_;
  const ByHosts* by_hosts_;
  int local_size_;
  Program program_;
  int last_ = -1;
  int thread_free_ = -1;  ///< what Horovod's thread was kept by
};

}  // namespace

bool is_plain(const TrainingSpec& spec) {
  const auto& p = spec.parallel;
  const bool is_whole = p.tensor == 1 && p.pipeline == 1 && p.context == 1 && p.expert == 1;
  return spec.part == TrainingPart::step && is_whole &&
         (p.data == DataParallelism::ddp || p.data == DataParallelism::horovod);
}

Duration SideCosts::copies(double passes, Bytes bytes) const {
  const double rate = memory_bandwidth * parameters["training.copy_efficiency"_key];
  return from_seconds(passes * static_cast<double>(bytes.value) / rate);
}

Program data_parallel_program(const SideCosts& costs, const ParallelSpec& parallel, const StepWork& work,
                              const Replicas& replicas) {
  return DataParallelStep(costs, parallel, work, replicas).make();
}

}  // namespace fabricast::models::training

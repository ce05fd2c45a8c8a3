// SPDX-License-Identifier: Apache-2.0
#include "config/training.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "config/network.hpp"
#include "config/profiler_trace.hpp"
#include "config/readers.hpp"
#include "config/schema_parts.hpp"
#include "fabricast/training.hpp"

namespace fabricast::config {

namespace {

using namespace parts;

constexpr Duration k_longest_cycle{1'000'000'000'000};  ///< 1 s

SchemaPtr parallel_schema() {
  const auto count = integer(1, 1'000'000);
  return mapping(
      "the parallelism",
      {{"data", choice({"ddp", "horovod", "fsdp", "zero1"}),
        "how replicas agree: PyTorch's DDP or FSDP2, Horovod, a sharded optimiser; default ddp"},
       {"bucket", size(), "ddp: bucket_cap_mb; default 25 MiB and 1 MiB for the first; given, it is the first's too"},
       {"exchange", choice({"fp32", "bf16", "fp16"}), "gradients on the wire; default fp32"},
       {"fusion", size(), "horovod: HOROVOD_FUSION_THRESHOLD; default 64 MiB"},
       {"cycle", quantity(Dimension::time), "horovod: HOROVOD_CYCLE_TIME; default 1 ms"},
       {"hierarchical", flag(),
        "horovod: HOROVOD_HIERARCHICAL_ALLREDUCE, NCCL inside hosts and MPI through host memory between them; default "
        "off"},
       {"torus", flag(), "horovod: HOROVOD_TORUS_ALLREDUCE, the same with NCCL between hosts; default off"},
       {"tensor", count, "GPUs that share each layer; default 1"},
       {"sequence", flag(), "tensor parallelism also splits norms by sequence; default off"},
       {"pipeline", count, "stages; default 1"},
       {"interleave", integer(1, 1000), "virtual stages per GPU; default 1"},
       {"context", count, "GPUs that share each sequence; default 1"},
       {"context_exchange", choice({"ring", "all_to_all"}),
        "context: keys and values passed round, or heads for tokens by all-to-alls (Ulysses); default ring"},
       {"expert", count, "GPUs that share the experts; default 1"},
       {"expert_tensor", count, "GPUs that share each expert's matrices; default: tensor"},
       {"imbalance", number(1, 1000),
        "tokens of the busiest GPU's experts over the mean, or a padded capacity; default 1"},
       {"expert_overlap", flag(),
        "dispatch and combine beside the compute of another micro-batch, as Megatron-LM and DualPipe; default off"},
       {"micro_batches", count, "per step and replica, their gradients add up; default 1"},
       {"recompute", choice({"none", "selective", "full"}), "activations computed again in backward; default none"}});
}

/// Reads the keys of one workload.
class TrainingReader {
 public:
  TrainingReader(const Node& node, const std::string& folder, Diagnostics& faults)
      : node_(node), folder_(folder), faults_(faults) {}

  TrainingSpec read() {
    read_counts();
    if (const auto* part = node_.find("part"); part != nullptr && part->scalar == "layer")
      spec_.part = TrainingPart::layer;
    if (const auto* parallel = node_.find("parallel")) read_parallel(*parallel);
    read_precision();
    read_work();
    if (const auto* slow = node_.find("slow")) {
      for (const auto& [gpu, rate] : slow->entries)
        spec_.slow.push_back({gpu.scalar, as_quantity(rate, Dimension::number), gpu.location()});
    }
    if (const auto* jitter = node_.find("jitter")) spec_.jitter = as_quantity(*jitter, Dimension::number);
    if (const auto* cache = node_.find("kv_length")) {
      spec_.kv_length = static_cast<int>(as_integer(*cache));
      if (spec_.part != TrainingPart::layer)
        faults_.push_back(cache->error("'kv_length' belongs to `part: layer`", "leave it out"));
    }
    return std::move(spec_);
  }

 private:
  void read_counts() {
    const auto* gpus = node_.find("gpus");
    if (gpus == nullptr) return;
    if (gpus->kind == Node::Kind::scalar) spec_.gpu_counts = {static_cast<int>(as_integer(*gpus))};
    for (const auto& item : gpus->items) spec_.gpu_counts.push_back(static_cast<int>(as_integer(item)));
  }

  void read_precision() {
    const auto* precision = node_.find("precision");
    if (precision != nullptr) {
      spec_.precision = *precision_from_name(precision->scalar);
      spec_.precision_location = precision->location();
    }
    if (const auto* batch = node_.find("batch_per_gpu")) spec_.batch_per_gpu = static_cast<int>(as_integer(*batch));
  }

  void read_work() {
    const auto* network = node_.find("network");
    const auto* profile = node_.find("profile");
    const auto* model = node_.find("model");
    if ((network == nullptr) == (profile == nullptr)) {
      faults_.push_back(node_.error(network == nullptr ? "training needs a network or a measured profile"
                                                       : "training has a network and a measured profile",
                                    "write `network: resnet-50`, or `profile: FILE` and `model: NAME`"));
      return;
    }
    if (profile != nullptr) return read_profile(*profile, model);
    if (model != nullptr)
      faults_.push_back(model->error("'model' names a model of a profile", "write it as `network:`"));
    read_network_of(*network);
  }

  void read_network_of(const Node& network) {
    const auto* tokens = node_.find("tokens");
    auto found = find_network(network.scalar, folder_, network, faults_,
                              tokens == nullptr ? std::nullopt : std::optional(as_integer(*tokens)));
    if (!found) return;
    if (network.scalar.ends_with(".yaml")) spec_.files.push_back(resolved(folder_, network.scalar));
    if (tokens != nullptr && found->tokens == 0)
      faults_.push_back(
          tokens->error(fmt::format("'tokens' beside '{}', whose samples are images", network.scalar), "leave it out"));
    if (node_.find("batch_per_gpu") == nullptr)
      faults_.push_back(node_.error("a network needs `batch_per_gpu`", "write e.g. `batch_per_gpu: 32`"));
    if (spec_.part == TrainingPart::layer && !found->transformer)
      faults_.push_back(network.error(fmt::format("'{}' has no transformer layer", network.scalar),
                                      "`part: layer` takes networks given by their dimensions"));
    if (!found->transformer) refuse_model_parallel(network.scalar);
    if (!found->transformer || found->transformer->experts == 0) refuse_expert_keys(network.scalar);
    spec_.network = std::move(found);
  }

  void refuse_expert_keys(const std::string& what) {
    const auto* parallel = node_.find("parallel");
    if (parallel == nullptr) return;
    for (const auto* key : {"expert_tensor", "imbalance", "expert_overlap"}) {
      if (const auto* found = parallel->find(key))
        faults_.push_back(found->error(fmt::format("'{}' of '{}', which has no experts", key, what), "leave it out"));
    }
  }

  void refuse_model_parallel(const std::string& what) {
    const auto* parallel = node_.find("parallel");
    if (parallel == nullptr) return;
    for (const auto* key : {"tensor", "pipeline", "context", "expert"}) {
      const auto* found = parallel->find(key);
      if (found != nullptr && as_integer(*found) > 1)
        faults_.push_back(found->error(fmt::format("'{}: {}' of '{}'", key, found->scalar, what),
                                       "only networks given by the dimensions of a transformer are split"));
    }
  }

  void read_profile(const Node& file, const Node* model) {
    const auto path = resolved(folder_, file.scalar);
    const auto text = read_text_file(path);
    if (!text) {
      for (const auto& fault : text.error())
        faults_.push_back(file.error(fault.message, "write a path from this file"));
      return;
    }
    spec_.files.push_back(path);
    auto profiles =
        looks_like_trace(*text) ? profile_of_trace(path, *text, file) : parse_training_profiles(path, *text);
    if (!profiles) {
      faults_.insert(faults_.end(), profiles.error().begin(), profiles.error().end());
      return;
    }
    if (spec_.part == TrainingPart::layer)
      faults_.push_back(file.error("a profile has no single layer", "name a network"));
    refuse_model_parallel("a measured profile");
    refuse_expert_keys("a measured profile");
    choose(*profiles, file, model);
  }

  /// A trace says neither precision nor batch.
  Result<std::vector<TrainingProfile>> profile_of_trace(const std::string& path, const std::string& text,
                                                        const Node& file) {
    auto profile = parse_profiler_trace(path, text);
    if (!profile) return tl::unexpected(profile.error());
    if (node_.find("precision") == nullptr || node_.find("batch_per_gpu") == nullptr)
      return tl::unexpected(Diagnostics{file.error("a profiler's trace says neither precision nor batch",
                                                   "add `precision: bf16` and `batch_per_gpu: 32` as they were")});
    profile->precision = spec_.precision;
    profile->batch_per_gpu = spec_.batch_per_gpu;
    spec_.notes.push_back(fmt::format("{} gradients of {} parameters in a trace of PyTorch's profiler, counted as fp32",
                                      profile->tensors.size(), profile->parameters));
    return std::vector{std::move(*profile)};
  }

  /// The profile of model, precision and batch; of another batch, scaled, when there is none.
  void choose(const std::vector<TrainingProfile>& profiles, const Node& file, const Node* model) {
    std::vector<std::string> known;
    const TrainingProfile* best = nullptr;
    const bool has_precision = node_.find("precision") != nullptr;
    const bool has_batch = node_.find("batch_per_gpu") != nullptr;
    for (const auto& one : profiles) {
      known.push_back(fmt::format("{} {} batch {}", one.model, to_string(one.precision), one.batch_per_gpu));
      if (model != nullptr && one.model != model->scalar) continue;
      if (has_precision && one.precision != spec_.precision) continue;
      if (best == nullptr || (has_batch && one.batch_per_gpu == spec_.batch_per_gpu)) best = &one;
    }
    if (best == nullptr) {
      faults_.push_back((model != nullptr ? *model : file)
                            .error(fmt::format("the profile has no model '{}'{}", model != nullptr ? model->scalar : "",
                                               has_precision ? fmt::format(" in {}", to_string(spec_.precision)) : ""),
                                   fmt::format("it has {}", fmt::join(known, ", "))));
      return;
    }
    if (model == nullptr && profiles.size() > 1) {
      faults_.push_back(node_.error("the profile holds several models",
                                    fmt::format("add `model:`, one of {}", fmt::join(known, ", "))));
      return;
    }
    spec_.profile = *best;
    spec_.precision = best->precision;
    if (!has_batch) spec_.batch_per_gpu = best->batch_per_gpu;
    if (spec_.batch_per_gpu != best->batch_per_gpu)
      spec_.notes.push_back(
          fmt::format("forward and backward of {} scale with the batch from {}, which was measured, to {}", best->model,
                      best->batch_per_gpu, spec_.batch_per_gpu));
  }

  void integer_of(const Node& parallel, const char* key, int& into) {
    if (const auto* found = parallel.find(key)) into = static_cast<int>(as_integer(*found));
  }

  void read_parallel(const Node& node) {
    auto& out = spec_.parallel;
    if (const auto* data = node.find("data")) {
      for (const auto kind :
           {DataParallelism::ddp, DataParallelism::horovod, DataParallelism::fsdp, DataParallelism::zero1}) {
        if (to_string(kind) == data->scalar) out.data = kind;
      }
    }
    if (const auto* exchange = node.find("exchange")) out.exchange = *precision_from_name(exchange->scalar);
    if (const auto* bucket = node.find("bucket")) out.bucket = as_size(*bucket);
    if (const auto* fusion = node.find("fusion")) out.fusion = as_size(*fusion);
    if (const auto* cycle = node.find("cycle")) out.cycle = from_seconds(as_quantity(*cycle, Dimension::time));
    if (const auto* by_hosts = node.find("hierarchical")) out.hierarchical = as_flag(*by_hosts);
    if (const auto* by_hosts = node.find("torus")) out.torus = as_flag(*by_hosts);
    integer_of(node, "tensor", out.tensor);
    integer_of(node, "pipeline", out.pipeline);
    integer_of(node, "interleave", out.interleave);
    integer_of(node, "context", out.context);
    if (const auto* way = node.find("context_exchange"); way != nullptr && way->scalar == "all_to_all")
      out.context_exchange = ContextExchange::all_to_all;
    integer_of(node, "expert", out.expert);
    if (const auto* shared = node.find("expert_tensor")) out.expert_tensor = static_cast<int>(as_integer(*shared));
    if (const auto* busiest = node.find("imbalance")) out.imbalance = as_quantity(*busiest, Dimension::number);
    integer_of(node, "micro_batches", out.micro_batches);
    if (const auto* overlap = node.find("expert_overlap")) out.expert_overlap = as_flag(*overlap);
    if (const auto* sequence = node.find("sequence")) out.sequence = as_flag(*sequence);
    if (const auto* recompute = node.find("recompute")) {
      for (const auto kind : {Recomputation::none, Recomputation::selective, Recomputation::full}) {
        if (to_string(kind) == recompute->scalar) out.recompute = kind;
      }
    }
    refuse_unread(node);
  }

  /// A setting that the chosen parallelism does not read.
  void refuse_unread(const Node& node) {
    const auto& spec = spec_.parallel;
    const auto only = [&](const char* key, bool is_read, const char* fix) {
      if (const auto* found = node.find(key); found != nullptr && !is_read)
        faults_.push_back(found->error(fmt::format("nothing reads '{}' here", key), fix));
    };
    const auto schema = parallel_schema();
    for (const auto& field : schema->fields) {
      const std::string_view key = field.name;
      const bool is_of_layer = key == "tensor" || key == "expert" || key == "imbalance";
      if (spec_.part == TrainingPart::layer && !is_of_layer)
        only(field.name.c_str(), false, "one layer's forward pass is split by `tensor` and `expert`");
    }
    if (spec_.part == TrainingPart::layer) return;
    only("bucket", spec.data == DataParallelism::ddp, "it belongs to `data: ddp`");
    only("fusion", spec.data == DataParallelism::horovod, "it belongs to `data: horovod`, `bucket` to ddp");
    only("cycle", spec.data == DataParallelism::horovod, "it belongs to `data: horovod`");
    for (const auto* key : {"hierarchical", "torus"})
      only(key, spec.data == DataParallelism::horovod, "it belongs to `data: horovod`");
    if (spec.hierarchical && spec.torus)
      faults_.push_back(node.find("torus")->error("'torus' beside 'hierarchical', which Horovod then takes",
                                                  "leave one of them out"));
    only("interleave", spec.pipeline > 1, "it belongs to `pipeline` above 1");
    only("context_exchange", spec.context > 1, "it belongs to `context` above 1");
    only("sequence", spec.tensor > 1, "it belongs to `tensor` above 1");
    only("expert_overlap", spec.expert > 1 && spec.micro_batches > 1,
         "it belongs to `expert` and `micro_batches` above 1");
    only("expert_overlap", spec.data != DataParallelism::fsdp, "it belongs to `data: ddp` and `data: zero1`");
    only("expert_overlap", spec.pipeline == 1 || spec.interleave > 1, "with `pipeline` it needs `interleave` above 1");
    if (spec.bucket && spec.bucket->value < 1)
      faults_.push_back(node.find("bucket")->error("'bucket' must be at least 1 B"));
    if (spec.cycle && *spec.cycle > k_longest_cycle)
      faults_.push_back(node.find("cycle")->error("'cycle' must be at most 1 s"));
  }

  const Node& node_;
  const std::string& folder_;
  Diagnostics& faults_;
  TrainingSpec spec_;
};

}  // namespace

std::vector<Field> training_fields() {
  return {{"network", text(), "training: a shipped network by name, or your own .yaml file"},
          {"profile", text(), "training: measured profile of one GPU, relative to this file, instead of a network"},
          {"model", text(), "training: which model of the profile"},
          {"precision", choice({"fp32", "tf32", "fp16", "bf16", "fp8"}),
           "training: of matrix products; default the profile's, else bf16 where all GPUs have it, fp16 on Volta and "
           "Turing, "
           "fp32 before"},
          {"batch_per_gpu", integer(1, 1'000'000), "training: samples per GPU (per micro-batch and replica)"},
          {"tokens", integer(1, 10'000'000), "training: of a sequence; default: the network's"},
          {"part", choice({"step", "layer"}), "training: a step, or one layer's forward pass alone; default step"},
          {"kv_length", integer(0, 10'000'000), "training, part layer: tokens cached before these; default 0"},
          {"slow", free_mapping(number(0.01, 1)),
           "training: GPUs that compute slower, by name: what they compute of what the others do, e.g. {node3.gpu1: "
           "0.9}"},
          {"jitter", number(0, 0.5),
           "training: standard deviation of a GPU's compute from step to step, as a share of it; default 0"},
          {"parallel", parallel_schema(), "training: how the work is spread over GPUs"}};
}

void read_training(const Node& node, const std::string& folder, Workload& workload, Diagnostics& faults) {
  if (workload.benchmark != Benchmark::training) {
    for (const auto& field : training_fields()) {
      if (const auto* found = node.find(field.name))
        faults.push_back(found->error(fmt::format("'{}' belongs to the benchmark `training`", field.name)));
    }
    return;
  }
  workload.training = std::make_shared<const TrainingSpec>(TrainingReader(node, folder, faults).read());
  workload.send_buffer = workload.receive_buffer = BufferPlace::device;
  if (const auto* sizes = node.find("sizes"))
    faults.push_back(sizes->error("'sizes' of a training step", "the network says what is exchanged"));
}

}  // namespace fabricast::config

// SPDX-License-Identifier: Apache-2.0
#include "training/work.hpp"

#include <algorithm>
#include <array>

namespace fabricast::models::training {

namespace {

constexpr int k_buffers_per_norm = 3;
constexpr std::array<const char*, 4> k_embeddings{"emb", "tok", "wte", "pos"};

Duration scaled(Duration time, double factor) { return from_seconds(time.seconds() * factor); }

std::string layer_of(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); }

bool is_norm(const GradientTensor& one, const GradientTensor& other) {
  return one.bytes == other.bytes && layer_of(one.name) == layer_of(other.name);
}

}  // namespace

int batch_norms(const std::vector<GradientTensor>& tensors) {
  int norms = 0;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const bool is_embedding = std::ranges::any_of(
        k_embeddings, [&](const char* part) { return tensors[t].name.find(part) != std::string::npos; });
    if (is_embedding) return 0;
    if (t > 0 && is_norm(tensors[t], tensors[t - 1])) ++norms;
  }
  return norms;
}

StepWork work_of_profile(const TrainingProfile& profile, int batch_per_gpu) {
  StepWork work;
  const double batch = static_cast<double>(batch_per_gpu) / profile.batch_per_gpu;
  const double parts = (profile.forward + profile.backward).seconds();
  const double whole = (profile.step - profile.optimizer).seconds();
  const double factor = (whole > 0 && whole < parts ? whole / parts : 1) * batch;
  work.forward = scaled(profile.forward, factor);
  work.backward = scaled(profile.backward, factor);
  work.optimizer = profile.optimizer;
  for (const auto& tensor : profile.tensors) {
    auto ready = std::min(scaled(tensor.ready, factor), work.backward);
    work.tensors.push_back({tensor.name, tensor.bytes, ready});
    work.gradient_bytes += tensor.bytes;
  }
  const int norms = batch_norms(profile.tensors);
  work.buffers = k_buffers_per_norm * norms;
  for (std::size_t t = 1; t < profile.tensors.size() && norms > 0; ++t) {
    // Mean and variance are as large as the weight; the count has 8 bytes.
    if (is_norm(profile.tensors[t], profile.tensors[t - 1]))
      work.buffer_bytes += 2 * profile.tensors[t].bytes + Bytes{8};
  }
  work.compute_parameter = work.optimizer_parameter = "workload.profile";
  work.compute_source = "the measured profile";
  return work;
}

}  // namespace fabricast::models::training

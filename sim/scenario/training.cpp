// SPDX-License-Identifier: Apache-2.0
// Names of training settings, sums over a network, and the text form of a measured profile:
//
//   #PROFILE <TAB> model <TAB> precision <TAB> batch_per_gpu <TAB> 64 <TAB> step_us <TAB> 23282.6 ...
//   tensor <TAB> gradient bytes <TAB> ready, us since backward began
#include "fabricast/training.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

namespace fabricast {

namespace {

constexpr std::array<std::pair<Precision, std::string_view>, 5> k_precisions{{{Precision::fp32, "fp32"},
                                                                              {Precision::tf32, "tf32"},
                                                                              {Precision::fp16, "fp16"},
                                                                              {Precision::bf16, "bf16"},
                                                                              {Precision::fp8, "fp8"}}};
constexpr double k_most_us = 1e12;  ///< 11 days

std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string column; std::getline(in, column, '\t');) out.push_back(column);
  return out;
}

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || at != end || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

/// Reads line by line; a fault names its line and the reading goes on.
class ProfileReader {
 public:
  explicit ProfileReader(const std::string& file) : file_(file) {}

  void line(const std::string& text, int number) {
    number_ = number;
    if (text.empty()) return;
    const auto columns = columns_of(text);
    if (columns[0] == "#PROFILE") return head(columns);
    if (text[0] == '#') return;
    tensor(columns);
  }

  Result<std::vector<TrainingProfile>> take() {
    if (profiles_.empty() && faults_.empty())
      fault("no line '#PROFILE'", "write one per model: #PROFILE, model, precision, batch_per_gpu, N, step_us, ...");
    for (const auto& profile : profiles_) {
      if (profile.tensors.empty()) fault("profile of '" + profile.model + "' has no tensors", "list name, bytes, time");
    }
    if (!faults_.empty()) return tl::unexpected(faults_);
    return std::move(profiles_);
  }

 private:
  void fault(std::string message, std::string hint) {
    auto one = make_error(std::move(message), std::move(hint));
    one.location.file = file_;
    one.location.line = number_;
    one.location.column = 1;
    faults_.push_back(std::move(one));
  }

  void head(const std::vector<std::string>& columns) {
    TrainingProfile profile;
    const auto precision = columns.size() > 2 ? precision_from_name(columns[2]) : std::nullopt;
    if (!precision) return fault("a profile without model and precision", "write e.g. #PROFILE, vgg16, bf16");
    profile.model = columns[1];
    profile.precision = *precision;
    for (std::size_t i = 3; i + 1 < columns.size(); i += 2) value(columns[i], columns[i + 1], profile);
    if (profile.forward.ps <= 0 || profile.backward.ps <= 0)
      fault("profile of '" + profile.model + "' without forward and backward time", "give forward_us and backward_us");
    if (profile.step.ps <= 0) profile.step = profile.forward + profile.backward + profile.optimizer;
    profiles_.push_back(std::move(profile));
  }

  void value(const std::string& key, const std::string& text, TrainingProfile& profile) {
    const auto number = number_of(text);
    if (!number || *number > k_most_us) return fault("'" + key + "' is '" + text + "', a number is expected", "");
    const auto time = from_seconds(*number * 1e-6);
    if (key == "batch_per_gpu")
      profile.batch_per_gpu = std::max(1, static_cast<int>(std::min(*number, 1e9)));
    else if (key == "step_us")
      profile.step = time;
    else if (key == "forward_us")
      profile.forward = time;
    else if (key == "backward_us")
      profile.backward = time;
    else if (key == "optimizer_us")
      profile.optimizer = time;
    else if (key == "parameters")
      profile.parameters = static_cast<std::int64_t>(*number);
    else
      fault("unknown value '" + key + "' of a profile",
            "known: batch_per_gpu, step_us, forward_us, backward_us, optimizer_us, parameters");
  }

  void tensor(const std::vector<std::string>& columns) {
    if (profiles_.empty()) return fault("a tensor before the first line '#PROFILE'", "");
    const auto bytes = columns.size() == 3 ? number_of(columns[1]) : std::nullopt;
    const auto ready = columns.size() == 3 ? number_of(columns[2]) : std::nullopt;
    if (!bytes || !ready || *bytes < 1 || *bytes > 1e15 || *ready > k_most_us)
      return fault("a tensor needs name, gradient bytes and time in us, separated by tabs", "");
    auto& tensors = profiles_.back().tensors;
    const auto time = from_seconds(*ready * 1e-6);
    if (!tensors.empty() && time < tensors.back().ready)
      return fault("'" + columns[0] + "' is ready before the tensor above it", "list tensors as they become ready");
    tensors.push_back({columns[0], to_bytes(*bytes), time});
  }

  std::string file_;
  int number_ = 1;
  std::vector<TrainingProfile> profiles_;
  Diagnostics faults_;
};

}  // namespace

std::string_view to_string(Precision precision) {
  return std::ranges::find(k_precisions, precision, [](const auto& one) { return one.first; })->second;
}

std::optional<Precision> precision_from_name(std::string_view name) {
  const auto it = std::ranges::find(k_precisions, name, [](const auto& one) { return one.second; });
  if (it == k_precisions.end()) return std::nullopt;
  return it->first;
}

int element_bytes(Precision precision) {
  if (precision == Precision::fp8) return 1;
  return precision == Precision::fp16 || precision == Precision::bf16 ? 2 : 4;
}

std::string_view to_string(LayerKind kind) {
  switch (kind) {
    case LayerKind::convolution:
      return "convolution";
    case LayerKind::gemm:
      return "gemm";
    case LayerKind::attention:
      return "attention";
    case LayerKind::memory:
      return "memory";
    case LayerKind::embedding:
      return "embedding";
  }
  return "";
}

std::string_view to_string(DataParallelism kind) {
  switch (kind) {
    case DataParallelism::ddp:
      return "ddp";
    case DataParallelism::horovod:
      return "horovod";
    case DataParallelism::fsdp:
      return "fsdp";
    case DataParallelism::zero1:
      return "zero1";
  }
  return "";
}

std::string_view to_string(ContextExchange kind) {
  switch (kind) {
    case ContextExchange::ring:
      return "ring";
    case ContextExchange::all_to_all:
      return "all_to_all";
  }
  return "";
}

std::string_view to_string(Recomputation kind) {
  switch (kind) {
    case Recomputation::none:
      return "none";
    case Recomputation::selective:
      return "selective";
    case Recomputation::full:
      return "full";
  }
  return "";
}

std::int64_t Network::parameters() const {
  std::int64_t sum = 0;
  for (const auto& layer : layers) {
    for (const auto elements : layer.tensors) sum += elements;
  }
  return sum;
}

int Network::num_tensors() const {
  std::size_t sum = 0;
  for (const auto& layer : layers) sum += layer.tensors.size();
  return static_cast<int>(sum);
}

double Network::forward_flop() const {
  double sum = 0;
  for (const auto& layer : layers) sum += layer.forward_flop;
  return sum;
}

double Network::activated_parameters() const {
  if (tokens == 0) return 0;
  double flop = 0;
  for (const auto& layer : layers) {
    if (layer.kind == LayerKind::gemm) flop += layer.forward_flop;
  }
  return flop / 2 / static_cast<double>(tokens);
}

Result<std::vector<TrainingProfile>> parse_training_profiles(const std::string& file, const std::string& text) {
  ProfileReader reader(file);
  std::istringstream in(text);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    reader.line(line, ++number);
  }
  return reader.take();
}

}  // namespace fabricast

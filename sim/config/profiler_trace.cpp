// SPDX-License-Identifier: Apache-2.0
#include "config/profiler_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace fabricast::config {

namespace {

using Json = nlohmann::json;

constexpr std::string_view k_step = "ProfilerStep#";
constexpr std::string_view k_optimizer = "Optimizer.step#";
constexpr std::string_view k_backward = "autograd::engine::evaluate_function";
constexpr std::string_view k_gradient = "torch::autograd::AccumulateGrad";

enum class Phase { forward, backward, optimizer };

struct Event {
  std::string category, name;
  std::int64_t thread = 0;
  double begin = 0, end = 0;  ///< us
  std::int64_t correlation = -1;
  std::int64_t elements = 0;  ///< of a gradient
};

struct Kernel {
  double launched = 0;  ///< us, on the host
  double begin = 0, end = 0;
  Phase phase = Phase::forward;
};

/// One step's kernels in the order of their launch, and its gradients in the order of their accumulation.
struct Step {
  double begin = 0, end = 0;  ///< on the host
  std::vector<Kernel> kernels;
  [[nodiscard]] double first() const {
    double out = kernels.front().begin;
    for (const auto& kernel : kernels) out = std::min(out, kernel.begin);
    return out;
  }
  /// End of the last kernel up to a phase.
  [[nodiscard]] double last(Phase phase) const {
    double out = first();
    for (const auto& kernel : kernels) {
      if (kernel.phase <= phase) out = std::max(out, kernel.end);
    }
    return out;
  }
};

double number_of(const Json& object, const char* key, double other) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>() : other;
}

std::string text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string{};
}

/// Threads are numbers; those of streams may be words.
std::int64_t thread_of(const Json& event) { return static_cast<std::int64_t>(number_of(event, "tid", -1)); }

/// Product of the first input's dimensions; 0 when the trace has no shapes.
std::int64_t elements_of(const Json& arguments) {
  const auto dims = arguments.find("Input Dims");
  if (dims == arguments.end() || !dims->is_array() || dims->empty() || !dims->front().is_array()) return 0;
  std::int64_t product = 1;
  for (const auto& one : dims->front()) {
    constexpr std::int64_t k_most = std::int64_t{1} << 40;
    const auto extent = one.is_number_integer() ? one.get<std::int64_t>() : 0;
    if (extent <= 0 || extent > k_most || product > k_most) return 0;
    product *= extent;
  }
  return product;
}

std::optional<Event> event_of(const Json& item) {
  if (!item.is_object() || text_of(item, "ph") != "X") return std::nullopt;
  Event event;
  event.category = text_of(item, "cat");
  event.name = text_of(item, "name");
  event.thread = thread_of(item);
  event.begin = number_of(item, "ts", NAN);
  event.end = event.begin + number_of(item, "dur", 0);
  if (!std::isfinite(event.begin) || !(event.end >= event.begin)) return std::nullopt;
  if (const auto arguments = item.find("args"); arguments != item.end() && arguments->is_object()) {
    event.correlation = static_cast<std::int64_t>(number_of(*arguments, "correlation", -1));
    if (event.name == k_gradient) event.elements = elements_of(*arguments);
  }
  return event;
}

bool is_on_gpu(const Event& event) {
  return event.category == "kernel" || event.category == "gpu_memcpy" || event.category == "gpu_memset";
}

/// Host spans of one kind, to ask what a launch lies in.
class Spans {
 public:
  void add(const Event& event) { by_thread_[event.thread].emplace_back(event.begin, event.end); }
  void sort() {
    for (auto& [thread, spans] : by_thread_) {
      std::sort(spans.begin(), spans.end());
      // Spans within spans: keep the outer ones.
      std::vector<std::pair<double, double>> outer;
      for (const auto& span : spans) {
        if (outer.empty() || span.first >= outer.back().second) outer.push_back(span);
      }
      spans = std::move(outer);
    }
  }
  [[nodiscard]] bool hold(const Event& event) const {
    const auto spans = by_thread_.find(event.thread);
    if (spans == by_thread_.end()) return false;
    const auto after = std::upper_bound(spans->second.begin(), spans->second.end(), std::pair(event.begin, 1e300));
    return after != spans->second.begin() && event.begin < std::prev(after)->second;
  }

 private:
  std::map<std::int64_t, std::vector<std::pair<double, double>>> by_thread_;
};

class TraceReader {
 public:
  explicit TraceReader(const std::string& file) : file_(file) {}

  Result<TrainingProfile> read(const Json& events) {
    collect(events);
    if (num_exchanges_ > 0)
      return fault(fmt::format("the trace holds {} kernels of NCCL", num_exchanges_),
                   "profile one GPU alone: its compute times are without waits for others");
    make_steps();
    if (steps_.empty())
      return fault("no kernel of a GPU in the trace", "profile with ProfilerActivity.CPU and ProfilerActivity.CUDA");
    if (gradients_.empty())
      return fault(fmt::format("no '{}' in the trace", k_gradient), "profile whole training steps, backward included");
    return profile();
  }

 private:
  tl::unexpected<Diagnostics> fault(std::string message, std::string fix) const {
    auto out = make_error(std::move(message), std::move(fix));
    out.location.file = file_;
    return tl::unexpected(Diagnostics{out});
  }

  void collect(const Json& events) {
    for (const auto& item : events) {
      auto event = event_of(item);
      if (!event) continue;
      if (is_on_gpu(*event)) {
        num_exchanges_ += event->name.find("nccl") != std::string::npos ? 1 : 0;
        on_gpu_.emplace(event->correlation, std::pair(event->begin, event->end));
      } else if (event->category == "cuda_runtime" || event->category == "cuda_driver") {
        launches_.push_back(*event);
      } else if (event->name == k_gradient) {
        gradients_.push_back(*event);
      } else if (event->name.starts_with(k_backward)) {
        backward_.add(*event);
        if (event->name.find("AccumulateGrad") == std::string::npos) nodes_.push_back(*event);
      } else if (event->name.starts_with(k_optimizer)) {
        optimizer_.add(*event);
      } else if (event->name.starts_with(k_step) && event->category != "gpu_user_annotation") {
        marks_.push_back(*event);
      }
    }
    const auto by_begin = [](const Event& a, const Event& b) { return a.begin < b.begin; };
    std::stable_sort(launches_.begin(), launches_.end(), by_begin);
    std::stable_sort(gradients_.begin(), gradients_.end(), by_begin);
    std::stable_sort(nodes_.begin(), nodes_.end(), by_begin);
    std::stable_sort(marks_.begin(), marks_.end(), by_begin);
    backward_.sort();
    optimizer_.sort();
  }

  [[nodiscard]] Phase phase_of(const Event& launch) const {
    if (optimizer_.hold(launch)) return Phase::optimizer;
    return backward_.hold(launch) ? Phase::backward : Phase::forward;
  }

  void make_steps() {
    for (const auto& mark : marks_) steps_.push_back({mark.begin, mark.end, {}});
    if (steps_.empty()) steps_.push_back({-1e300, 1e300, {}});
    for (const auto& launch : launches_) {
      const auto kernel = on_gpu_.find(launch.correlation);
      if (launch.correlation < 0 || kernel == on_gpu_.end()) continue;
      for (auto& step : steps_) {
        if (launch.begin < step.begin || launch.begin >= step.end) continue;
        step.kernels.push_back({launch.begin, kernel->second.first, kernel->second.second, phase_of(launch)});
        break;
      }
    }
    std::erase_if(steps_, [](const Step& step) { return step.kernels.empty(); });
  }

  /// Time of every step on the GPU: to the next one's first kernel, of the last to its own end.
  [[nodiscard]] double duration(std::size_t s) const {
    const double end = s + 1 < steps_.size() ? steps_[s + 1].first() : steps_[s].last(Phase::optimizer);
    return end - steps_[s].first();
  }

  /// The median one; without the last when others show the whole of theirs.
  [[nodiscard]] std::size_t typical_step() const {
    std::vector<std::size_t> order;
    const std::size_t whole = steps_.size() > 1 ? steps_.size() - 1 : 1;
    for (std::size_t s = 0; s < whole; ++s) order.push_back(s);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return duration(a) < duration(b); });
    return order[(order.size() - 1) / 2];
  }

  Result<TrainingProfile> profile() {
    const auto s = typical_step();
    const auto& step = steps_[s];
    const double forward_end = step.last(Phase::forward);
    const double backward_end = step.last(Phase::backward);
    const double optimizer_end = step.last(Phase::optimizer);
    if (backward_end <= forward_end)
      return fault("no kernel of a backward pass in the step", fmt::format("it is told by '{}'", k_backward));
    TrainingProfile out;
    out.model = std::filesystem::path(file_).stem().string();
    out.step = microseconds(duration(s));
    out.backward = microseconds(backward_end - forward_end);
    out.optimizer = microseconds(optimizer_end - backward_end);
    out.forward = out.step - out.backward - out.optimizer;
    add_gradients(step, forward_end, out);
    if (out.parameters == 0)
      return fault("the gradients of the trace have no sizes", "profile with record_shapes=True");
    return out;
  }

  static Duration microseconds(double us) { return from_seconds(std::max(0.0, us) * 1e-6); }

  void add_gradients(const Step& step, double backward_begin, TrainingProfile& out) const {
    std::size_t next = 0;
    double ready = backward_begin;
    for (const auto& gradient : gradients_) {
      if (gradient.begin < step.begin || gradient.begin >= step.end || gradient.elements <= 0) continue;
      for (; next < step.kernels.size() && step.kernels[next].launched <= gradient.end; ++next)
        ready = std::max(ready, step.kernels[next].end);
      out.tensors.push_back({name_of(gradient), Bytes{4 * gradient.elements},
                             std::min(microseconds(ready - backward_begin), out.backward)});
      out.parameters += gradient.elements;
    }
  }

  /// After the node before it: weight and bias of a batch norm share theirs, so that batch norms are found.
  [[nodiscard]] std::string name_of(const Event& gradient) const {
    const auto after = std::upper_bound(nodes_.begin(), nodes_.end(), gradient.begin,
                                        [](double begin, const Event& node) { return begin < node.begin; });
    const auto index = std::distance(nodes_.begin(), after);
    const auto node = after == nodes_.begin() ? std::string{} : std::prev(after)->name;
    const auto is_of = [&](const char* what) { return node.find(what) != std::string::npos; };
    const auto serial = &gradient - gradients_.data();
    if (is_of("BatchNorm")) return fmt::format("bn{}.{}", index, serial);
    return fmt::format("{}{}.weight", is_of("Embedding") ? "emb" : "layer", serial);
  }

  std::string file_;
  std::map<std::int64_t, std::pair<double, double>> on_gpu_;
  std::vector<Event> launches_, gradients_, nodes_, marks_;
  Spans backward_, optimizer_;
  std::vector<Step> steps_;
  int num_exchanges_ = 0;
};

Diagnostics fault_of(const std::string& file, std::string message, std::string fix) {
  auto out = make_error(std::move(message), std::move(fix));
  out.location.file = file;
  return {out};
}

}  // namespace

bool looks_like_trace(const std::string& text) {
  const auto at = text.find_first_not_of(" \t\r\n");
  const bool is_compressed = text.size() > 1 && text[0] == '\x1f' && text[1] == '\x8b';
  return is_compressed || (at != std::string::npos && (text[at] == '{' || text[at] == '['));
}

Result<TrainingProfile> parse_profiler_trace(const std::string& file, const std::string& text) {
  if (text.starts_with("\x1f\x8b"))
    return tl::unexpected(fault_of(file, "the trace is compressed", "unpack it first: gunzip"));
  const auto document = Json::parse(text, nullptr, false);
  if (document.is_discarded())
    return tl::unexpected(fault_of(file, "the trace is no whole JSON document", "export it again"));
  const auto events = document.is_array() ? document.end() : document.find("traceEvents");
  if (!document.is_array() && (events == document.end() || !events->is_array()))
    return tl::unexpected(fault_of(file, "no list 'traceEvents' in the trace",
                                   "a profile is a trace of PyTorch's export_chrome_trace, or a table of times"));
  return TraceReader(file).read(document.is_array() ? document : *events);
}

}  // namespace fabricast::config

// SPDX-License-Identifier: Apache-2.0
// Logs of training, as they are published: tables with a row per run (ours, LLM-Foundry, MLPerf results, ABCI, AWS),
// with a column per model (TensorFlow, Horovod's README) or per number of GPUs (DGX Cloud recipes), tables below a
// sentence that says model and GPUs (torchtitan), and the lines that programs print: Horovod's synthetic benchmarks,
// MXNet's Speedometer.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "readers/readers.hpp"
#include "readers/training_columns.hpp"

namespace fabricast::readers {
namespace {

constexpr double k_imagenet = 1'281'167;  ///< images of the training set, ILSVRC 2012

bool is_title(std::string_view line) {
  return line.starts_with("**") && contains(line, "GPU") && contains(line, "model");
}
bool is_by_gpus(std::string_view line) {
  return line.starts_with("|") && contains(line, "x ") && contains(line, " GPUs") && contains(line, "hroughput on ");
}
bool is_speed(std::string_view line) { return contains(line, "Speed: ") && contains(line, " samples/sec"); }
bool is_summary(std::string_view line) { return line.starts_with("Total img/sec on "); }
bool is_mlperf(std::string_view line) { return contains(line, "# dir |") && contains(line, "gbs"); }

/// The first number behind a key; nothing without the key.
std::optional<double> number_after(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const auto words = split_words(line.substr(at + key.size()));
  return words.empty() ? std::nullopt : number_in(words.front().text);
}

std::optional<int> whole(const std::optional<double>& value) {
  constexpr double k_most = 1e9;
  if (!value || *value < 1 || *value > k_most) return std::nullopt;
  return static_cast<int>(std::llround(*value));
}

/// "Local batch size 2, global batch size 16." -> 16 for "global batch size".
std::optional<int> batch_after(const std::string& line, std::string_view key) {
  return whole(number_after(lower(line), key));
}

class TrainingReader {
 public:
  TrainingReader(const LogText& log, Lines section)
      : log_(log),
        section_(section),
        table_(begin_table(log, LogFormat::training, section.empty() ? 0 : section.front().number)) {
    table_.benchmark = Benchmark::training;
    about_.gpus = provenance_count("gpus");
    about_.text = provenance("benchmark");
    about_.precision = precision_in(about_.text);
  }

  std::vector<MeasuredLog> read() {
    for (const auto& line : section_) read_line(line);
    end_block();
    std::vector<MeasuredLog> tables;
    tables.push_back(std::move(table_));
    return tables;
  }

 private:
  [[nodiscard]] std::string provenance(const std::string& key) const {
    const auto found = log_.provenance.find(key);
    return found == log_.provenance.end() ? "" : found->second;
  }
  /// A count, not a range.
  [[nodiscard]] std::optional<int> provenance_count(const std::string& key) const {
    const auto count = parse_count(provenance(key));
    return count ? whole(static_cast<double>(*count)) : std::nullopt;
  }

  void read_line(const Line& line) {
    const auto text = std::string(trim(line.text));
    if (text.empty()) return;
    if (is_speed(text)) return add_rate(line, about_, number_after(text, "Speed: "));
    if (read_printed(line, text)) return;
    if (is_title(text)) return read_title(text);
    if (is_by_gpus(text)) return begin_block(text);
    if (auto roles = roles_of_head(text); !roles.empty() || is_mlperf(text)) {
      end_block();
      roles_ = std::move(roles);
      is_mlperf_ = is_mlperf(text);
      return;
    }
    if (text.front() == '#' || contains(text, "---")) return;
    if (!block_.empty() && text.front() == '|') return read_block_row(cells_of(text), line);
    const auto cells = cells_of(text);
    if (is_mlperf_ && cells.size() > 3) return read_mlperf(cells, line);
    if (!roles_.empty() && cells.size() == roles_.size()) read_row(cells, line);
  }

  /// Lines of Horovod's synthetic benchmarks.
  bool read_printed(const Line& line, const std::string& text) {
    if (text.starts_with("Model: ")) about_.model = text.substr(7);
    if (text.starts_with("Batch size: ")) about_.batch_per_gpu = count_after(text, "Batch size");
    if (text.starts_with("Number of GPUs: ")) about_.gpus = count_after(text, "Number of GPUs");
    if (is_summary(text)) {
      const auto colon = text.find(": ");
      const auto words = split_words(std::string_view(text).substr(std::min(colon + 1, text.size())));
      about_.gpus = count_after(text, "Total img/sec on");
      add_rate(line, about_, words.empty() ? std::nullopt : number_in(words.front().text));
    }
    return is_summary(text) || contains(text, "img/sec per GPU") || text.starts_with("Img/sec per GPU");
  }

  void add_rate(const Line& line, const MeasuredStep& about, std::optional<double> rate) {
    if (!rate || *rate <= 0) return lose(line, "it has no throughput above zero");
    auto step = about;
    step.samples_per_s = rate;
    keep(std::move(step), line);
  }

  void keep(MeasuredStep step, const Line& line) {
    step.text += " " + line.text;
    step.line = line.number;
    table_.steps.push_back(std::move(step));
  }

  void lose(const Line& line, const std::string& why) {
    add_warning(table_, line_warning(log_, line, "row lost: " + why));
  }

  /// "**Table 3** ... Llama 3.1 8B model. 128 GPUs. Local batch size 2, global batch size 256. ..."
  void read_title(const std::string& text) {
    end_block();
    roles_.clear();
    about_ = {};
    about_.text = text;
    about_.gpus = gpus_in(text);
    about_.batch_per_gpu = batch_after(text, "local batch size");
    about_.global_batch = batch_after(text, "global batch size");
    about_.precision = precision_in(text);
    const auto end = text.find(" model");
    const auto begin = text.rfind(". ", end);
    about_.model =
        text.substr(begin == std::string::npos ? 0 : begin + 2, end - (begin == std::string::npos ? 0 : begin + 2));
  }

  // ---- a column per number of GPUs

  /// "| Llama 3.1 8b BF16 (TP=1, ...) | Throughput on 8x H100 GPUs (GBS=128) | ..."
  void begin_block(const std::string& text) {
    end_block();
    roles_.clear();
    const auto cells = cells_of(text);
    for (std::size_t c = 1; c < cells.size(); ++c) {
      MeasuredStep step;
      step.model = cells[0].substr(0, cells[0].find(" ("));
      step.text = cells[0] + " | " + cells[c];
      step.precision = precision_in(cells[0]);
      step.gpus = gpus_in(cells[c]);
      step.global_batch = whole(number_after(cells[c].substr(0, cells[c].find(')')), "GBS="));
      block_.push_back(std::move(step));
    }
  }

  void read_block_row(const std::vector<std::string>& cells, const Line& line) {
    const auto name = lower(cells[0]);
    for (std::size_t c = 1; c < cells.size() && c <= block_.size(); ++c) {
      auto& step = block_[c - 1];
      const auto value = number_in(cells[c]);
      if (contains(name, "step time") && value && *value > 0) step.step = from_seconds(*value);
      if (contains(name, "step time")) step.line = line.number;
      if (contains(name, "tokens per second") && value && *value > 0) step.tokens_per_s = value;
      if (name == "gbs") step.global_batch = whole(value);
      if (name == "layers") step.layers = whole(value);
    }
  }

  void end_block() {
    for (auto& step : block_) {
      if (step.step || step.tokens_per_s) table_.steps.push_back(std::move(step));
    }
    block_.clear();
  }

  // ---- a row per run

  void read_row(const std::vector<std::string>& cells, const Line& line) {
    auto step = about_;
    std::vector<std::pair<std::string, double>> of_models;
    bool is_timed = false;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const auto value = number_in(cells[c]);
      if (roles_[c].column == Column::model_rate) {
        if (value && *value > 0) of_models.emplace_back(roles_[c].name, *value);
        continue;
      }
      is_timed |= set_cell(step, roles_[c], cells[c], value);
    }
    if (!step.precision) step.precision = precision_in(line.text);
    if (!step.gpus && !roles_.empty()) step.gpus = gpus_in(cells[0]);
    for (const auto& [model, rate] : of_models) {
      auto one = step;
      one.model = model.starts_with("model_") ? model.substr(6) : model;
      add_rate(line, one, rate);
    }
    if (!of_models.empty()) return;
    if (!is_timed) return lose(line, "it has neither a step's time nor a throughput");
    if (step.tokens_per_s && *step.tokens_per_s < 0) {
      if (!step.gpus) return lose(line, "it says a throughput per GPU, but not how many there are");
      step.tokens_per_s = -*step.tokens_per_s * *step.gpus;
    }
    keep(std::move(step), line);
  }

  /// True when the cell is a time or a rate. A rate of one GPU is kept negative until its count is known.
  bool set_cell(MeasuredStep& step, const ColumnRole& role, const std::string& cell,
                std::optional<double> value) const {
    const bool is_above = value && *value > 0;
    switch (role.column) {
      case Column::gpus:
        step.gpus = whole(value);
        return false;
      case Column::hosts:
        step.hosts = whole(value);
        return false;
      case Column::model:
        step.model = cell;
        return false;
      case Column::precision:
        step.precision = precision_in(cell);
        return false;
      case Column::batch:
        step.batch_per_gpu = whole(value);
        return false;
      case Column::global_batch:
        step.global_batch = whole(value);
        return false;
      case Column::tokens:
        step.tokens = whole(value);
        return false;
      case Column::kv_length:
        step.kv_length = value ? std::llround(*value) : 0;
        return false;
      case Column::hidden:
        step.hidden = whole(value);
        return false;
      case Column::path:
        step.path = cell;
        return false;
      case Column::exchange:
        step.exchange = precision_in(cell);
        return false;
      case Column::bucket_mib:
        if (const auto mib = whole(value)) step.bucket = Bytes{std::int64_t{*mib} << 20};
        return false;
      case Column::step:
      case Column::layer:
        if (is_above) step.step = from_seconds(*value * role.unit);
        step.is_layer = role.column == Column::layer;
        return is_above;
      case Column::samples_rate:
        if (is_above) step.samples_per_s = value;
        return is_above;
      case Column::tokens_rate:
        if (is_above) step.tokens_per_s = value;
        return is_above;
      case Column::tokens_rate_of_one:
        // The rate of all is printed with more digits where both are.
        if (is_above && !step.tokens_per_s) step.tokens_per_s = -*value;
        return is_above;
      case Column::train_time:
        if (const auto epochs = epochs_of_imagenet(); is_above && epochs)
          step.samples_per_s = k_imagenet * *epochs / *value;
        return step.samples_per_s.has_value();
      case Column::other:
      case Column::model_rate:
        return false;
    }
    return false;
  }

  /// "..., ImageNet 90 epochs, total wall time in s": images are those of the training set.
  [[nodiscard]] std::optional<double> epochs_of_imagenet() const {
    const auto text = provenance("benchmark");
    const auto at = text.find("ImageNet ");
    if (at == std::string::npos || !contains(text.substr(at), "epochs")) return std::nullopt;
    return number_after(text, "ImageNet ");
  }

  /// "NVIDIA/results/eos_n8_ngc24.09_nemo/llama2_70b_lora | 10 | 8 | 14.76982 | None | ..."; GPT-3 counts tokens.
  void read_mlperf(const std::vector<std::string>& cells, const Line& line) {
    const auto slash = cells[0].rfind('/');
    const auto before = slash == std::string::npos ? slash : cells[0].rfind('/', slash - 1);
    const auto rate = cells.size() > 3 ? number_in(cells[3]) : std::nullopt;
    if (before == std::string::npos || !rate || *rate <= 0) return;  // submissions without a throughput
    MeasuredStep step;
    step.model = cells[0].substr(slash + 1);
    step.gpus = gpus_of_system(std::string_view(cells[0]).substr(before + 1, slash - before - 1));
    step.global_batch = whole(number_in(cells[2]));
    (step.model == "gpt3" ? step.tokens_per_s : step.samples_per_s) = rate;
    keep(std::move(step), line);
  }

  const LogText& log_;
  Lines section_;
  MeasuredLog table_;
  MeasuredStep about_;  ///< what stands above the rows
  std::vector<ColumnRole> roles_;
  bool is_mlperf_ = false;
  std::vector<MeasuredStep> block_;  ///< columns of a table by GPUs
};

}  // namespace

bool starts_training(std::string_view line) {
  const auto text = trim(line);
  if (text.empty()) return false;
  return is_title(text) || is_by_gpus(text) || is_speed(text) || is_summary(text) || is_mlperf(text) ||
         !roles_of_head(text).empty();
}

std::vector<MeasuredLog> read_training(const LogText& log, Lines section) {
  return TrainingReader(log, section).read();
}

}  // namespace fabricast::readers

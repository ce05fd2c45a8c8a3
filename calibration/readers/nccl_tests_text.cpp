// SPDX-License-Identifier: Apache-2.0
// Tables of nccl-tests: the preamble (versions, settings, devices), then rows. NCCL's own debug lines between rows and
// a preamble printed by several unconnected processes are expected.
#include <algorithm>
#include <charconv>
#include <set>

#include "readers/nccl_content.hpp"
#include "readers/nccl_row.hpp"
#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

bool is_preamble(std::string_view line) {
  return (contains(line, "nThread") && contains(line, "nGpus")) || contains(line, "nccl-tests version") ||
         contains(line, "Collective test starting") || contains(line, "Blocking Enabled");
}

std::string word_after(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return {};
  const auto words = split_words(line.substr(at + key.size()));
  return words.empty() ? std::string{} : std::string(words[0].text);
}

void read_versions(std::string_view line, MeasuredHeader& header) {
  if (auto version = word_after(line, "nccl-tests version"); !version.empty()) header.tool_version = version;
  if (const auto code = count_after(line, "nccl-library")) header.nccl_version = nccl_version_text(*code);
  if (!header.nccl_version.empty()) return;
  const auto version = word_after(line, "NCCL version");
  if (!version.empty() && version[0] >= '0' && version[0] <= '9')
    header.nccl_version = version.substr(0, version.find('+'));
}

void read_settings(std::string_view line, MeasuredHeader& header) {
  if (!contains(line, "nThread")) return;
  header.threads = count_after(line, "nThread");
  header.gpus_per_thread = count_after(line, "nGpus");
  header.warmup_iterations = count_after(line, "warmup iters");
  header.aggregated_iterations = count_after(line, "agg iters");
  const auto iterations = line.find(" iters: ", line.find("warmup iters") + 12);
  if (contains(line, "warmup iters") && iterations != std::string_view::npos) {
    header.iterations = count_after(line.substr(iterations), "iters");
  }
  const bool is_graph = count_after(line, "graph").value_or(0) > 0;
  header.launch = launch_mode(header, is_graph);
}

/// `#  Rank  0 Group  0 Pid 1000 on node0 device  0 [0000:00:06] NVIDIA H200`
std::optional<MeasuredRank> parse_device_line(std::string_view line) {
  const auto rank = count_after(line, "Rank");
  const auto on = line.find(" on ");
  const auto device = line.find(" device ");
  if (!rank || !contains(line, "Pid") || on == std::string_view::npos || device == std::string_view::npos ||
      device < on) {
    return std::nullopt;
  }
  MeasuredRank result;
  result.rank = *rank;
  result.group = count_after(line, "Group").value_or(0);
  result.host = trim(line.substr(on + 4, device - on - 4));
  result.device = count_after(line, " device ").value_or(0);
  const auto open = line.find('[', device);
  const auto close = open == std::string_view::npos ? open : line.find(']', open);
  if (close != std::string_view::npos) {
    result.bus_id = line.substr(open + 1, close - open - 1);
    result.device_name = trim(line.substr(close + 1));
  }
  return result;
}

/// Builds the tables of one section.
class SectionReader {
 public:
  explicit SectionReader(const LogText& log) : log_(log) {}

  void read(const Line& line) {
    if (is_preamble(line.text)) {
      read_preamble(line);
    } else if (auto columns = nccl_header_columns(line.text); !columns.empty()) {
      read_header(line, std::move(columns));
    } else if (const auto rank = parse_device_line(line.text)) {
      add_rank(line, *rank);
    } else {
      read_other(line);
    }
  }

  std::vector<MeasuredLog> finish() {
    close();
    return std::move(tables_);
  }

 private:
  MeasuredLog& table(const Line& line) {
    if (!table_) {
      table_ = begin_table(log_, LogFormat::nccl_tests, line.number);
      table_->benchmark = named_before_;
    }
    return *table_;
  }

  void read_preamble(const Line& line) {
    if (table_ && !table_->rows.empty()) close();
    auto& current = table(line);
    if (contains(line.text, "nThread") && current.header.threads) {
      add_warning(current,
                  line_warning(log_, line, "several processes print into this log: their rows are read as one table"));
    }
    read_versions(line.text, current.header);
    read_settings(line.text, current.header);
    if (contains(line.text, "Blocking Enabled")) current.header.is_blocking = true;
    if (const auto benchmark = benchmark_in(line.text)) current.benchmark = benchmark;
    name_program(word_after(line.text, "Collective test starting:"), current);
  }

  void read_header(const Line& line, Columns columns) {
    if (table_ && !table_->rows.empty()) {
      // A header repeated without a preamble: the same run as far as the log says.
      auto repeated = begin_table(log_, LogFormat::nccl_tests, line.number);
      repeated.header = table_->header;
      repeated.benchmark = table_->benchmark;
      repeated.other_test = table_->other_test;
      close();
      table_ = std::move(repeated);
    }
    table(line).header.unit = "us";
    table(line).header.has_old_columns =
        std::any_of(columns.begin(), columns.end(), [](const auto& column) { return column == "error"; });
    const bool has_cpu_times = std::find(columns.begin(), columns.end(), "cputime") != columns.end();
    if (has_cpu_times)
      add_warning(table(line),
                  line_warning(log_, line, "these times are the CPU's (cputime, -C); wall times are taken from algbw"));
    columns_ = std::move(columns);
  }

  void add_rank(const Line& line, const MeasuredRank& rank) {
    auto& ranks = table(line).header.ranks;
    const bool is_known = std::any_of(ranks.begin(), ranks.end(), [&](const auto& r) { return r.rank == rank.rank; });
    if (!is_known) ranks.push_back(rank);
  }

  void read_other(const Line& line) {
    auto [row, fault, scale] = parse_nccl_row(line, columns_);
    if (row || !fault.empty()) row_lines_.push_back({line, columns_, scale});
    if (row) {
      table(line).rows.push_back(std::move(*row));
    } else if (!fault.empty()) {
      add_warning(table(line), line_warning(log_, line, std::move(fault)));
    } else {
      if (const auto benchmark = benchmark_in(line.text)) named_before_ = benchmark;
      read_versions(line.text, table_ ? table_->header : before_);
    }
  }

  void close() {
    if (!table_) return;
    if (table_->header.nccl_version.empty()) table_->header.nccl_version = before_.nccl_version;
    std::sort(table_->header.ranks.begin(), table_->header.ranks.end(),
              [](const auto& a, const auto& b) { return a.rank < b.rank; });
    summarize_ranks(table_->header);
    read_scaled_rows(log_, row_lines_, *table_);
    row_lines_.clear();
    complete_from_provenance(log_, *table_);
    recompute_bandwidths(*table_);
    tables_.push_back(std::move(*table_));
    table_.reset();
  }

  const LogText& log_;
  std::optional<MeasuredLog> table_;
  std::vector<MeasuredLog> tables_;
  std::vector<RowLine> row_lines_;  ///< of the table
  Columns columns_;
  std::optional<Benchmark> named_before_;  ///< by a command line above the table
  MeasuredHeader before_;                  ///< NCCL's release, named above the first table
};

}  // namespace

LaunchMode launch_mode(const MeasuredHeader& header, bool is_graph) {
  if (is_graph) return LaunchMode::graph;
  if (header.gpus_per_thread.value_or(1) > 1) return LaunchMode::one_thread;
  return header.threads.value_or(1) > 1 ? LaunchMode::thread_per_gpu : LaunchMode::process_per_gpu;
}

bool starts_nccl_tests(std::string_view line) { return is_preamble(line) || !nccl_header_columns(line).empty(); }

std::vector<MeasuredLog> read_nccl_tests(const LogText& log, Lines section) {
  SectionReader reader(log);
  for (const auto& line : section) reader.read(line);
  return reader.finish();
}

}  // namespace fabricast::readers

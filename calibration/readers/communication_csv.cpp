// SPDX-License-Identifier: Apache-2.0
// Times of NCCL's operations as aiconfigurator keeps them, one line per measurement of nccl-tests:
//
//   framework,version,device,op_name,kernel_source,nccl_dtype,num_gpus,message_size,latency
//   TRTLLM,2.29.2,NVIDIA B200,all_gather,NCCL,half,8,65536,0.0191
//
// message_size counts elements of nccl_dtype, latency is in milliseconds, of one thread per GPU of one host. Columns go
// by their names. One table per operation, number of GPUs and release.
#include <algorithm>
#include <array>

#include "readers/nccl_content.hpp"
#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

enum CommunicationColumn {
  k_version,
  k_device,
  k_operation,
  k_kernels,
  k_datatype,
  k_gpus,
  k_size,
  k_latency,
  k_num_columns
};
constexpr std::array<std::string_view, k_num_columns> k_column_names{
    "version", "device", "op_name", "kernel_source", "nccl_dtype", "num_gpus", "message_size", "latency"};

std::vector<std::string_view> csv_cells(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::size_t begin = 0; begin <= line.size();) {
    const auto end = std::min(line.find(',', begin), line.size());
    out.push_back(trim(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return out;
}

/// Where each column stands in a head line; nothing when one is missing.
struct CommunicationHead {
  std::array<std::size_t, k_num_columns> at{};
  std::size_t num_cells = 0;
};

std::optional<CommunicationHead> communication_head(std::string_view line) {
  const auto cells = csv_cells(line);
  CommunicationHead head;
  head.num_cells = cells.size();
  for (std::size_t i = 0; i < k_column_names.size(); ++i) {
    const auto found = std::find(cells.begin(), cells.end(), k_column_names[i]);
    if (found == cells.end()) return std::nullopt;
    head.at[i] = static_cast<std::size_t>(found - cells.begin());
  }
  return head;
}

/// "reduce_scatter" -> reduce_scatter_perf.
std::optional<Benchmark> benchmark_of_operation(std::string_view operation) {
  return benchmark_in(std::string(operation) + "_perf");
}

/// A line as a row and the table it belongs to.
struct CommunicationRow {
  Benchmark benchmark = Benchmark::all_reduce_perf;
  int num_gpus = 0;
  std::string_view version, device;
  MeasuredRow row;
};

/// The measurement of a line; else what is wrong with it.
tl::expected<CommunicationRow, std::string> communication_row(const CommunicationHead& head, const Line& line) {
  const auto cells = csv_cells(line.text);
  if (cells.size() != head.num_cells) return tl::make_unexpected("its cells do not fit the columns");
  const auto cell = [&](CommunicationColumn column) { return cells[head.at[column]]; };
  if (cell(k_kernels) != "NCCL") return tl::make_unexpected("its kernels are not NCCL's");
  const auto benchmark = benchmark_of_operation(cell(k_operation));
  if (!benchmark || !is_of_format(*benchmark, LogFormat::nccl_tests))
    return tl::make_unexpected("its operation is none of nccl-tests");
  const int bytes = datatype_bytes(std::string(cell(k_datatype)));
  if (bytes == 0) return tl::make_unexpected("its type of elements is unknown");
  const auto gpus = parse_count(cell(k_gpus));
  constexpr std::int64_t k_most_gpus = 1'000'000;
  if (!gpus || *gpus < 1 || *gpus > k_most_gpus) return tl::make_unexpected("its number of GPUs is none");
  const auto count = parse_count(cell(k_size));
  constexpr std::int64_t k_most_elements = std::int64_t{1} << 50;
  if (!count || *count < 1 || *count > k_most_elements) return tl::make_unexpected("its size is none");
  const auto latency =
      line.is_terminated || head.at[k_latency] + 1 < head.num_cells ? parse_printed(cell(k_latency)) : std::nullopt;
  if (!latency || latency->value <= 0) return tl::make_unexpected("its latency is no time, or cut");
  CommunicationRow out;
  out.benchmark = *benchmark;
  out.num_gpus = static_cast<int>(*gpus);
  out.version = cell(k_version);
  out.device = cell(k_device);
  out.row.size = Bytes{*count * bytes};
  out.row.time = from_us(latency->value * 1e3);  // the type stays out, as where an author cut nccl-tests' columns
  out.row.line = line.number;
  return out;
}

MeasuredLog& communication_table(const LogText& log, const CommunicationRow& one, std::vector<MeasuredLog>& tables) {
  const auto found = std::find_if(tables.begin(), tables.end(), [&](const MeasuredLog& table) {
    return table.benchmark == one.benchmark && table.header.num_ranks == one.num_gpus &&
           table.header.nccl_version == one.version;
  });
  if (found != tables.end()) return *found;
  auto table = begin_table(log, LogFormat::nccl_tests, one.row.line);
  table.benchmark = one.benchmark;
  table.header.nccl_version = std::string(one.version);
  table.header.num_ranks = one.num_gpus;
  table.header.num_hosts = 1;
  table.header.ranks_per_host = one.num_gpus;
  table.header.threads = one.num_gpus;
  table.header.gpus_per_thread = 1;
  table.header.launch = LaunchMode::thread_per_gpu;
  table.header.device_names = {std::string(one.device)};
  table.header.unit = "ms";
  tables.push_back(std::move(table));
  return tables.back();
}

}  // namespace

bool starts_communication_csv(std::string_view line) { return communication_head(line).has_value(); }

std::vector<MeasuredLog> read_communication_csv(const LogText& log, Lines section) {
  std::vector<MeasuredLog> tables;
  std::vector<Diagnostic> lost;
  std::optional<CommunicationHead> head;
  for (const auto& line : section) {
    if (trim(line.text).empty() || line.text.starts_with('#')) continue;
    if (auto found = communication_head(line.text)) {
      head = found;
      continue;
    }
    if (!head) continue;
    if (auto one = communication_row(*head, line))
      communication_table(log, *one, tables).rows.push_back(std::move(one->row));
    else
      lost.push_back(line_warning(log, line, "row lost: " + one.error()));
  }
  if (tables.empty())
    tables.push_back(begin_table(log, LogFormat::nccl_tests, section.empty() ? 0 : section[0].number));
  for (auto& warning : lost) add_warning(tables.front(), std::move(warning));
  for (auto& table : tables) {
    std::stable_sort(table.rows.begin(), table.rows.end(),
                     [](const auto& a, const auto& b) { return a.size < b.size; });
    recompute_bandwidths(table);
  }
  return tables;
}

}  // namespace fabricast::readers

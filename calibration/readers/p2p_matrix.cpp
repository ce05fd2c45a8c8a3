// SPDX-License-Identifier: Apache-2.0
// The matrices of p2pBandwidthLatencyTest (CUDA samples): bandwidth in GB/s (1e9 B/s) and latency in us between every
// pair of GPUs, with direct peer access off and on.
#include <algorithm>
#include <cmath>
#include <limits>

#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

bool is_banner(std::string_view line) { return contains(line, "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"); }

/// "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)".
bool is_matrix_title(std::string_view line) {
  return contains(line, "P2P=") && (contains(line, "Matrix (GB/s)") || contains(line, "Matrix (us)"));
}

MeasuredMatrix matrix_of_title(std::string_view title, int line) {
  MeasuredMatrix matrix;
  matrix.title = std::string(trim(title));
  matrix.is_latency = contains(title, "(us)");
  matrix.is_bidirectional = contains(title, "Bidirectional");
  matrix.is_p2p = contains(title, "P2P=Enabled");
  matrix.is_write = contains(title, "P2P Writes");
  matrix.line = line;
  return matrix;
}

/// `Device: 0, NVIDIA A100-SXM4-80GB, pciBusID: 26, pciDeviceID: 0, pciDomainID:0`
void read_device(std::string_view line, MeasuredHeader& header) {
  const auto device = count_after(line, "Device:");
  const auto first = line.find(", ");
  const auto bus = line.find(", pciBusID: ");
  if (!device || first == std::string_view::npos || bus == std::string_view::npos || bus <= first) return;
  MeasuredRank rank;
  rank.rank = rank.device = *device;
  rank.device_name = std::string(line.substr(first + 2, bus - first - 2));
  const auto id = line.substr(bus + 12);
  rank.bus_id = std::string(id.substr(0, id.find(',')));
  header.ranks.push_back(std::move(rank));
}

/// The devices of a column header `D\D 0 1 2`; empty when the line is none.
std::vector<int> column_devices(const std::vector<Word>& words) {
  if (words.size() < 2 || (words[0].text != "D\\D" && words[0].text != "GPU" && words[0].text != "CPU")) return {};
  std::vector<int> devices;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto device = parse_count(words[i].text);
    if (!device || *device > 100'000) return {};
    devices.push_back(static_cast<int>(*device));
  }
  return devices;
}

class MatrixReader {
 public:
  explicit MatrixReader(const LogText& log, int line)
      : log_(log), table_(begin_table(log, LogFormat::p2p_matrix, line)) {}

  void read(const Line& line) {
    const auto words = split_words(line.text);
    if (is_matrix_title(line.text)) {
      title_ = matrix_of_title(line.text, line.number);
      is_open_ = false;
    } else if (auto devices = column_devices(words); !devices.empty()) {
      if (title_) open_matrix(std::string(words[0].text), std::move(devices));
    } else if (is_open_ && !words.empty() && parse_count(words[0].text)) {
      read_row(line, words);
    } else {
      if (contains(line.text, "Connectivity Matrix")) title_.reset();
      is_open_ = false;
      read_device(line.text, table_.header);
    }
  }

  MeasuredLog finish() {
    std::erase_if(table_.matrices, [](const MeasuredMatrix& m) { return m.value.empty(); });
    table_.title = "p2pBandwidthLatencyTest";
    summarize_ranks(table_.header);
    table_.header.hosts.clear();
    table_.header.num_hosts = 1;
    return std::move(table_);
  }

 private:
  /// One title can head two matrices: times seen by the GPU and by the CPU.
  void open_matrix(std::string row_kind, std::vector<int> devices) {
    table_.matrices.push_back(*title_);
    table_.matrices.back().row_kind = std::move(row_kind);
    table_.matrices.back().column_devices = std::move(devices);
    is_open_ = true;
  }

  void read_row(const Line& line, const std::vector<Word>& words) {
    auto& matrix = table_.matrices.back();
    const bool may_be_cut = !line.is_terminated && words.size() <= matrix.column_devices.size();
    if (words.size() > matrix.column_devices.size() + 1 || may_be_cut) {
      return add_warning(table_, line_warning(log_, line, "row lost: it has not one value per device"));
    }
    const double unit = matrix.is_latency ? 1e-6 : 1e9;
    std::vector<double> values(matrix.column_devices.size(), std::numeric_limits<double>::quiet_NaN());
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (const auto number = parse_printed(words[i].text)) values[i - 1] = number->value * unit;
    }
    matrix.row_devices.push_back(static_cast<int>(std::min<std::int64_t>(*parse_count(words[0].text), 100'000)));
    matrix.value.push_back(std::move(values));
  }

  const LogText& log_;
  MeasuredLog table_;
  std::optional<MeasuredMatrix> title_;
  bool is_open_ = false;
};

}  // namespace

bool starts_p2p_matrix(std::string_view line) { return is_banner(line) || is_matrix_title(line); }

std::vector<MeasuredLog> read_p2p_matrix(const LogText& log, Lines section) {
  MatrixReader reader(log, section.empty() ? 0 : section.front().number);
  for (const auto& line : section) reader.read(line);
  std::vector<MeasuredLog> tables;
  tables.push_back(reader.finish());
  return tables;
}

}  // namespace fabricast::readers

// SPDX-License-Identifier: Apache-2.0
// Everything that is read of each held log: our own measurements and the logs kept from fuzzing, in every format.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "fabricast/measurement.hpp"
#include "tests/unit/kept/table.hpp"

using namespace fabricast;

namespace {

/// Names and values of what a log states; what it does not state is left out.
class Said {
 public:
  template <class T>
  void add(const char* name, const T& value) {
    if constexpr (requires { value.has_value(); }) {
      if (value) add(name, *value);
    } else if constexpr (requires { value.ps; }) {
      put(name, fmt::format("{}ps", value.ps));
    } else if constexpr (requires { value.bytes_per_s; }) {
      put(name, fmt::format("{:.6g}B/s", value.bytes_per_s));
    } else if constexpr (std::is_same_v<T, Bytes>) {
      put(name, fmt::format("{}B", value.value));
    } else if constexpr (std::is_same_v<T, bool>) {
      if (value) put(name, "yes");
    } else if constexpr (std::is_enum_v<T>) {
      put(name, fmt::format("{}", static_cast<int>(value)));
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!value.empty()) put(name, value);
    } else if constexpr (std::is_floating_point_v<T>) {
      put(name, fmt::format("{:.6g}", value));
    } else {
      put(name, fmt::format("{}", value));
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void put(const char* name, const std::string& value) { text_ += fmt::format(" {}={}", name, value); }
  std::string text_;
};

std::string said_of(const MeasuredHeader& header) {
  Said out;
  out.add("tool", header.tool_version);
  out.add("nccl", header.nccl_version);
  out.add("ranks", header.num_ranks);
  out.add("hosts", header.num_hosts);
  out.add("per_host", header.ranks_per_host);
  for (const auto& host : header.hosts) out.add("host", host);
  for (const auto& rank : header.ranks)
    out.add("rank", fmt::format("{}/{}/{}/{}/{}/{}", rank.rank, rank.group, rank.host, rank.device, rank.bus_id,
                                rank.device_name));
  out.add("send", header.send_buffer);
  out.add("receive", header.receive_buffer);
  out.add("managed", header.is_managed_memory);
  out.add("accelerator", header.accelerator);
  out.add("unit", header.unit);
  out.add("window", header.window);
  out.add("pairs", header.pairs);
  out.add("qps", header.queue_pairs);
  out.add("depth", header.tx_depth);
  out.add("mtu", header.mtu);
  out.add("both_ways", header.is_bidirectional);
  out.add("connection", header.connection_type);
  out.add("device", header.device);
  out.add("link", header.link_type);
  out.add("launch", header.launch);
  out.add("threads", header.threads);
  out.add("gpus_per_thread", header.gpus_per_thread);
  out.add("iterations", header.iterations);
  out.add("warmup", header.warmup_iterations);
  out.add("aggregated", header.aggregated_iterations);
  out.add("blocking", header.is_blocking);
  out.add("nvls", header.nccl_seen.nvls);
  out.add("p2p", header.nccl_seen.has_p2p);
  out.add("shm", header.nccl_seen.has_shm);
  out.add("ib", header.nccl_seen.has_ib);
  out.add("gdr", header.nccl_seen.has_gdr);
  out.add("socket", header.nccl_seen.has_socket);
  for (const auto& [name, value] : header.environment) out.add("env", name + ":" + value);
  return out.text();
}

std::string said_of(const MeasuredRow& row) {
  Said out;
  out.add("size", row.size);
  out.add("time", row.time);
  out.add("in_place", row.in_place_time);
  out.add("in_place_only", row.is_in_place_only);
  out.add("bandwidth", row.bandwidth);
  out.add("busbw", row.busbw);
  out.add("peak", row.peak_bandwidth);
  out.add("printed_algbw", row.printed_algbw);
  out.add("printed_busbw", row.printed_busbw);
  out.add("messages", row.messages_per_s);
  out.add("min", row.min_time);
  out.add("max", row.max_time);
  out.add("typical", row.typical_time);
  out.add("std_dev", row.std_dev);
  for (const auto& one : row.percentiles) out.add("percentile", fmt::format("{:.4g}:{}", one.share, one.time.ps));
  for (const auto& one : row.iterations) out.add("iteration", one);
  out.add("overlap", row.overlap);
  out.add("compute", row.compute_time);
  out.add("communication", row.pure_communication_time);
  out.add("count_iterations", row.num_iterations);
  out.add("wrong", row.num_wrong);
  out.add("datatype", row.datatype);
  out.add("reduction", row.reduction);
  out.add("count", row.count);
  out.add("root", row.root);
  out.add("in_place_checked", row.is_in_place_checked);
  out.add("line", row.line);
  return out.text();
}

std::string said_of(const MeasuredStep& step) {
  Said out;
  out.add("model", step.model);
  out.add("path", step.path);
  out.add("precision", step.precision);
  out.add("exchange", step.exchange);
  out.add("gpus", step.gpus);
  out.add("hosts", step.hosts);
  out.add("batch", step.batch_per_gpu);
  out.add("global_batch", step.global_batch);
  out.add("tokens", step.tokens);
  out.add("kv", step.kv_length);
  out.add("hidden", step.hidden);
  out.add("layers", step.layers);
  out.add("bucket", step.bucket);
  out.add("step", step.step);
  out.add("samples", step.samples_per_s);
  out.add("tokens_per_s", step.tokens_per_s);
  out.add("layer", step.is_layer);
  out.add("line", step.line);
  return out.text();
}

std::string said_of(const MeasuredLog& log) {
  std::string out =
      fmt::format("  table of line {}, format {}, {}:{}\n", log.line, static_cast<int>(log.format),
                  log.benchmark ? std::string(to_string(*log.benchmark)) : "no benchmark", said_of(log.header));
  for (const auto possible : log.possible_benchmarks) out += fmt::format("    possibly {}\n", to_string(possible));
  for (const auto& row : log.rows) out += "    row" + said_of(row) + "\n";
  for (const auto& step : log.steps) out += "    step" + said_of(step) + "\n";
  for (const auto& matrix : log.matrices) {
    out += fmt::format("    matrix {} {}{}{}{} {}:", matrix.title, matrix.is_latency ? "latency " : "",
                       matrix.is_bidirectional ? "both " : "", matrix.is_p2p ? "p2p " : "",
                       matrix.is_write ? "write " : "", matrix.row_kind);
    for (const auto& values : matrix.value)
      for (const double value : values) out += fmt::format(" {:.5g}", value);
    out += "\n";
  }
  for (const auto& copy : log.copies) {
    Said said;
    said.add("kind", copy.kind);
    said.add("size", copy.size);
    said.add("time", copy.time);
    said.add("bandwidth", copy.bandwidth);
    for (const int device : copy.devices) said.add("device", device);
    said.add("at_once", copy.num_concurrent);
    out += "    copy" + said.text() + "\n";
  }
  for (const auto& one : log.tuning.table)
    out += fmt::format("    model {} {} {} {} {:.5g}\n", one.operation, one.algorithm, one.protocol, one.latency.ps,
                       one.bandwidth.bytes_per_s);
  for (const auto& one : log.tuning.choices) {
    Said said;
    said.add("size", one.size);
    said.add("time", one.predicted_time);
    said.add("from", one.channels_from);
    said.add("to", one.channels_to);
    out += fmt::format("    choice {} {} {}{}\n", one.operation, one.algorithm, one.protocol, said.text());
  }
  for (const auto& warning : log.warnings) out += fmt::format("    warning: {}\n", warning.message);
  return out;
}

/// Bytes of damaged logs that are no text, as numbers.
std::string shown(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n' || (c >= ' ' && c <= '~'))
      out += c;
    else
      out += fmt::format("<{}>", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace

TEST_CASE("of every held log the same is read as before") {
  const std::filesystem::path source = FABRICAST_SOURCE_DIR;
  std::vector<std::filesystem::path> files;
  for (const auto* folder : {"calibration/data", "tests/fuzz/corpus/logs"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source / folder))
      if (entry.is_regular_file() && entry.path().extension() != ".yaml" && entry.path().extension() != ".xml")
        files.push_back(entry.path());
  std::ranges::sort(files);
  std::string out;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    out += file.lexically_relative(source).generic_string() + "\n";
    const auto logs = read_logs_text(text, "log");
    if (!logs) {
      out += "  " + logs.error().front().message + "\n";
      continue;
    }
    for (const auto& log : *logs) out += said_of(log);
  }
  test::check_kept("logs", shown(out));
}

// SPDX-License-Identifier: Apache-2.0
// Tables as nccl-tests, OSU and perftest print them, so that eyes and awk scripts find their columns; what is ours
// comes after them. GB = 1e9 B, OSU's MB = 1e6 B, perftest's MiB = 2^20 B.
#include <fmt/format.h>

#include <algorithm>

#include "report/fabric_tables.hpp"
#include "report/inputs.hpp"
#include "report/report.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

namespace {

/// nccl-tests' width-limited number: fewer decimals as the value grows.
std::string short_number(double value) {
  if (value >= 1e6) return fmt::format("{:.0f}", value);
  if (value >= 1e4) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

/// Elements of a float buffer as nccl-tests counts them.
std::int64_t element_count(Benchmark benchmark, Bytes size, int ranks) {
  return size.value / 4 / (counts_parts(benchmark) ? std::max(1, ranks) : 1);
}

bool reduces(Benchmark benchmark) {
  return benchmark == Benchmark::all_reduce_perf || benchmark == Benchmark::reduce_scatter_perf ||
         benchmark == Benchmark::reduce_perf;
}

/// nccl-tests' last lines, which its users' scripts look for: the plain mean over every row of the table.
std::string nccl_footer(const std::vector<Row>& rows) {
  double sum = 0;
  for (const auto& row : rows) sum += row.busbw.bytes_per_s * 1e-9;
  const double mean = rows.empty() ? 0 : sum / static_cast<double>(rows.size());
  return fmt::format("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {:g} \n#\n", mean);
}

/// nccl-tests' thirteen columns, then ours. No data is checked, so #wrong is N/A as with its `-c 0`; a forecast knows
/// one time for both halves.
std::string nccl_table(const WorkloadPrediction& workload, const Workload& asked, bool is_whole) {
  const auto line = [](const char* size, const char* count, const char* type, const char* operation, const char* root,
                       const std::string& half, const char* band, const char* ours) {
    auto text = fmt::format("#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}  {}  {}  {:>18}  {}", size, count, type, operation,
                            root, half, half, band, ours);
    return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  std::string out = fmt::format("#{:>49}  {:^31}  {:^31}  {:^18}\n", "", "out-of-place", "in-place", "80 % band");
  out = out.substr(0, out.find_last_not_of(" \n") + 1) + "\n";
  out += line("size", "count", "type", "redop", "root", "   time   algbw   busbw  #wrong", "low      high",
              "algorithm protocol channels");
  out += line("(B)", "(elements)", "", "", "", "   (us)  (GB/s)  (GB/s)        ", "(us)      (us)", "");
  bool all_finished = is_whole;
  for (const auto& row : workload.rows) {
    all_finished = all_finished && is_finished(row);
    if (!is_finished(row)) {
      out += unfinished_line(row);
      continue;
    }
    const auto half = fmt::format("{:>7}  {:>6.2f}  {:>6.2f}  {:>6}", short_number(row.time.us()),
                                  row.algbw.bytes_per_s * 1e-9, row.busbw.bytes_per_s * 1e-9, "N/A");
    out += fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}  {}  {}  {:>8}  {:>8}  {:<9} {:<8} {:>8}\n", row.size.value,
                       element_count(workload.benchmark, row.size, workload.num_ranks), "float",
                       reduces(workload.benchmark) ? "sum" : "none", has_root(workload.benchmark) ? asked.root : -1,
                       half, half, short_number(row.low_time.us()), short_number(row.high_time.us()), row.algorithm,
                       row.protocol, row.channels);
  }
  return all_finished ? out + nccl_footer(workload.rows) : out;
}

std::string buffer_name(BufferPlace place) { return place == BufferPlace::device ? "DEVICE (D)" : "HOST (H)"; }

std::string osu_title(Benchmark benchmark, bool on_device) {
  std::string what;
  switch (benchmark) {
    case Benchmark::osu_latency:
      what = "Latency";
      break;
    case Benchmark::osu_bw:
      what = "Bandwidth";
      break;
    case Benchmark::osu_bibw:
      what = "Bi-Directional Bandwidth";
      break;
    case Benchmark::osu_multi_lat:
      what = "Multi Latency";
      break;
    case Benchmark::osu_mbw_mr:
      what = "Multiple Bandwidth / Message Rate";
      break;
    case Benchmark::osu_allreduce:
      what = "Allreduce Latency";
      break;
    case Benchmark::osu_allgather:
      what = "Allgather Latency";
      break;
    case Benchmark::osu_reduce_scatter:
      what = "Reduce_scatter Latency";
      break;
    case Benchmark::osu_bcast:
      what = "Broadcast Latency";
      break;
    case Benchmark::osu_reduce:
      what = "Reduce Latency";
      break;
    case Benchmark::osu_alltoall:
      what = "All-to-All Personalized Exchange Latency";
      break;
    case Benchmark::osu_gather:
      what = "Gather Latency";
      break;
    case Benchmark::osu_scatter:
      what = "Scatter Latency";
      break;
    default:
      what = "Barrier Latency";
      break;
  }
  return fmt::format("OSU MPI{} {} Test", on_device ? "-CUDA" : "", what);
}

std::string osu_table(const WorkloadPrediction& workload, const Workload& asked) {
  const bool on_device = asked.send_buffer == BufferPlace::device || asked.receive_buffer == BufferPlace::device;
  std::string out = fmt::format("# {}\n", osu_title(workload.benchmark, on_device));
  if (on_device && !is_collective(workload.benchmark))
    out += fmt::format("# Send Buffer on {} and Receive Buffer on {}\n", buffer_name(asked.send_buffer),
                       buffer_name(asked.receive_buffer));
  const bool is_rate = workload.benchmark == Benchmark::osu_mbw_mr;
  if (is_rate) out += fmt::format("# [ pairs: {} ] [ window size: {} ]\n", asked.pairs, asked.window);
  const auto column = is_bandwidth_test(workload.benchmark)
                          ? (is_rate ? "MB/s" : "Bandwidth (MB/s)")
                          : (is_collective(workload.benchmark) ? "Avg Latency(us)" : "Latency (us)");
  out += fmt::format("# {:<8}{:>20}{}{:>14}{:>14}  {}\n", "Size", column,
                     is_rate ? fmt::format("{:>18}", "Messages/s") : "", "low", "high", "protocol");
  for (const auto& row : workload.rows) {
    if (!is_finished(row)) {
      out += unfinished_line(row);
      continue;
    }
    const auto shown = [&](Duration time) {
      if (!is_bandwidth_test(workload.benchmark)) return fmt::format("{:.2f}", time.us());
      return fmt::format("{:.2f}", time.ps > 0 ? static_cast<double>(row.size.value) / time.seconds() * 1e-6 : 0.0);
    };
    // The slow end of a time band is the low end of a bandwidth band.
    const bool flip = is_bandwidth_test(workload.benchmark);
    out += fmt::format("{:<10}{:>20}{}{:>14}{:>14}  {}\n", row.size.value, shown(row.time),
                       is_rate ? fmt::format("{:>18.2f}", row.messages_per_s) : "",
                       shown(flip ? row.high_time : row.low_time), shown(flip ? row.low_time : row.high_time),
                       row.protocol);
  }
  return out;
}

/// perftest's defaults: as often to each of its queue pairs, which it prints as one number.
int num_iterations(const Workload& asked) {
  return (asked.benchmark == Benchmark::ib_write_bw ? 5000 : 1000) * asked.queue_pairs;
}

std::string perftest_table(const WorkloadPrediction& workload, const Workload& asked) {
  const bool is_rate = is_bandwidth_test(workload.benchmark);
  std::string out =
      fmt::format("# {} ({}, queue pairs {}, tx depth {})\n", to_string(workload.benchmark),
                  asked.is_bidirectional ? "bidirectional" : "one direction", asked.queue_pairs, asked.window);
  if (is_rate) {
    out +=
        " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]   low[MiB/sec]  "
        "high[MiB/sec]\n";
  } else {
    out +=
        " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]       low[usec]      "
        "high[usec]\n";
  }
  for (const auto& row : workload.rows) {
    if (!is_finished(row)) {
      out += unfinished_line(row);
      continue;
    }
    if (is_rate) {
      const auto mib = [&](Duration time) {
        return time.ps > 0 ? static_cast<double>(row.size.value) / time.seconds() / 1048576.0 : 0.0;
      };
      out += fmt::format(" {:<10} {:<12} {:>16.2f} {:>22.2f} {:>15.6f} {:>14.2f} {:>14.2f}\n", row.size.value,
                         num_iterations(asked), mib(row.time), mib(row.time), row.messages_per_s * 1e-6,
                         mib(row.high_time), mib(row.low_time));
    } else {
      out += fmt::format(" {:<7} {:<12} {:>12.2f} {:>14.2f} {:>16.2f} {:>14.2f} {:>15.2f} {:>15.2f}\n", row.size.value,
                         1000, row.time.us(), row.time.us(), row.time.us(), row.time.us(), row.low_time.us(),
                         row.high_time.us());
    }
  }
  return out;
}

/// Copies, compute steps and TCP: no table of a known tool fits all, so time and rate side by side.
std::string system_table(const WorkloadPrediction& workload) {
  std::string out = "#       size          time       rate       low      high  what\n";
  out += "#        (B)          (us)     (GB/s)      (us)      (us)\n";
  for (const auto& row : workload.rows) {
    if (!is_finished(row)) {
      out += unfinished_line(row);
      continue;
    }
    out += fmt::format("{:>12}  {:>12}  {:>9.3f}  {:>8}  {:>8}  {}\n", row.size.value, short_number(row.time.us()),
                       row.algbw.bytes_per_s * 1e-9, short_number(row.low_time.us()), short_number(row.high_time.us()),
                       row.algorithm);
  }
  return out;
}

/// Calls `use` with first and last row of every run of rows that are alike in `of`.
template <class Of, class Use>
void for_each_run(const std::vector<Row>& rows, Of of, Use use) {
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t last = first;
    while (last + 1 < rows.size() && of(rows[last + 1]) == of(rows[first])) ++last;
    use(rows[first], rows[last]);
    first = last + 1;
  }
}

/// "1 KiB .. 64 KiB", a single row by its own name.
std::string span_name(const Row& first, const Row& last) { return range_text(row_name(first), row_name(last)); }

/// Runs of sizes with the same bottleneck: "1 KiB .. 64 KiB: one TCP stream".
std::string bottlenecks(const WorkloadPrediction& workload) {
  std::string out;
  for_each_run(
      workload.rows, [](const Row& row) { return std::string_view(row.bottleneck); },
      [&](const Row& first, const Row& last) {
        out += fmt::format("#   {}: {}\n", span_name(first, last),
                           first.bottleneck.empty() ? "no transfer" : first.bottleneck);
      });
  return out;
}

}  // namespace

std::string range_text(const std::string& low, const std::string& high) {
  return low == high ? low : low + " .. " + high;
}

bool is_finished(const Row& row) { return !row.fabric || row.fabric->is_finished(); }

std::string unfinished_line(const Row& row) {
  return fmt::format("# {} B: not finished, {} after {:.3f} us\n", row.size.value, row.fabric->stop, row.time.us());
}

std::string extrapolation_note(const WorkloadPrediction& workload) {
  std::string sizes;
  for_each_run(
      workload.rows, [](const Row& row) { return row.is_extrapolated; },
      [&](const Row& first, const Row& last) {
        if (first.is_extrapolated) sizes += (sizes.empty() ? "" : ", ") + span_name(first, last);
      });
  return sizes.empty()
             ? ""
             : fmt::format("# extrapolated beyond what the parameters were fitted to, with a wider band: {}\n", sizes);
}

std::string workload_table(const WorkloadPrediction& workload, const Workload& asked, bool is_whole) {
  switch (family_of(workload.benchmark)) {
    case BenchmarkFamily::nccl_tests:
      return nccl_table(workload, asked, is_whole);
    case BenchmarkFamily::osu:
      return osu_table(workload, asked);
    case BenchmarkFamily::perftest:
      return perftest_table(workload, asked);
    case BenchmarkFamily::system:
      return system_table(workload);
    case BenchmarkFamily::sharing:
      return sharing_table(workload);
    case BenchmarkFamily::traffic:
      return traffic_table(workload);
    case BenchmarkFamily::training:
      return training_table(workload);
  }
  return "";
}

std::string text(const Document& document) {
  const auto& prediction = document.prediction;
  const auto& scenario = document.scenario;
  const auto& provenance = document.provenance;
  std::string out;
  for (std::size_t w = 0; w < prediction.workloads.size(); ++w) {
    const auto& workload = prediction.workloads[w];
    out += fmt::format("# fabricast {}: forecast of {} ({}), {} {}{} on {} host{} of '{}'\n", provenance.version,
                       workload.name, to_string(workload.benchmark), workload.num_ranks,
                       workload.benchmark == Benchmark::traffic ? "flow" : "rank", workload.num_ranks == 1 ? "" : "s",
                       workload.num_hosts, workload.num_hosts == 1 ? "" : "s", prediction.topology);
    std::string ranks;
    for (std::size_t d = 0; d < workload.devices.size() && d < 8; ++d)
      ranks += (d > 0 ? ", " : "") + workload.devices[d];
    if (workload.benchmark != Benchmark::traffic && !ranks.empty())
      out += fmt::format("# ranks: {}{}\n", ranks, workload.devices.size() > 8 ? ", ..." : "");
    out += workload_table(workload, scenario.workloads[w], !prediction.is_interrupted);
    if (prediction.is_interrupted) out += "# interrupted: sizes that did not finish are missing\n";
    out += extrapolation_note(workload);
    out += fabric_table(workload);
    if (family_of(workload.benchmark) != BenchmarkFamily::sharing) out += "# bottleneck:\n" + bottlenecks(workload);
    if (!workload.settings.empty()) out += "# settings (given -> used):\n";
    for (const auto& setting : workload.settings) {
      out += fmt::format("#   {}: {} -> {}{}\n", setting.setting, setting.given, setting.used,
                         setting.reason.empty() ? "" : fmt::format(" ({})", setting.reason));
    }
    out += "# assumptions:\n";
    for (const auto& assumption : workload.assumptions) out += fmt::format("#   {}\n", assumption);
    if (w + 1 < prediction.workloads.size()) out += "\n";
  }
  out += "# inputs:\n" + inputs_text(sums_of(provenance.inputs));
  for (const auto& setting : provenance.settings) out += fmt::format("#   --set {}={}\n", setting.path, setting.value);
  out += fmt::format("#   parameters: {}\n", provenance.parameter_files.empty()
                                                 ? "shipped"
                                                 : "shipped, then " + provenance.parameter_files.front());
  for (std::size_t i = 1; i < provenance.parameter_files.size(); ++i)
    out += fmt::format("#   then {}\n", provenance.parameter_files[i]);
  return out;
}

std::string explain(const WorkloadPrediction& workload, const Row& row) {
  std::string out =
      fmt::format("# {} of {}: {} ({} {}{})\n", workload.name, row_name(row), to_string(row.time), row.algorithm,
                  row.protocol, row.channels > 0 ? fmt::format(", {} channels", row.channels) : "");
  std::size_t widest = 4;
  std::size_t widest_parameter = 9;
  for (const auto& term : row.terms) {
    widest = std::max(widest, term.name.size());
    widest_parameter = std::max(widest_parameter, term.parameter.size());
  }
  out += fmt::format("  {:>14}  {:>6}  {:<{}}  {:<{}}  {}\n", "time (us)", "share", "term", widest, "parameter",
                     widest_parameter, "source");
  for (const auto& term : row.terms) {
    const double share =
        row.time.ps == 0 ? 0 : 100.0 * static_cast<double>(term.time.ps) / static_cast<double>(row.time.ps);
    out += fmt::format("  {:>14.6f}  {:>5.1f}%  {:<{}}  {:<{}}  {}\n", term.time.us(), share, term.name, widest,
                       term.parameter, widest_parameter, term.source);
  }
  out += fmt::format("  {:>14.6f}  100.0%  sum\n", row.time.us());
  out += fmt::format("  {:>14.6f}          physical bound: payload over the narrowest link\n", row.physical_bound.us());
  out += fmt::format("  bottleneck: {}\n", row.bottleneck.empty() ? "none" : row.bottleneck);
  return out;
}

}  // namespace fabricast::report

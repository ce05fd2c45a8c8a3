// SPDX-License-Identifier: Apache-2.0
// sockperf's client, one row per test: the size of its messages and the mean of half a round trip, as it prints it
// (--full-rtt: the whole, halved here). The size stands in the command line alone (-m, --msg-size; 14 B unless told
// otherwise). Under load, where messages leave before their forerunners are back, and in throughput mode it measures
// what is not forecast.
//
//   sockperf: [Total Run] RunTime=10.000 sec; Warm up time=400 msec; SentMessages=43606; ReceivedMessages=43605
//   sockperf: ====> avg-latency=11.650 (std-dev=91.464)
//   sockperf: Summary: Latency is 11.650 usec
//   sockperf: ---> percentile 99.000 =   17.505
#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

constexpr Bytes k_smallest_message{14};  ///< sockperf's header, its default size

/// The number behind `key` of a line; nothing when it is not there.
std::optional<Printed> number_behind(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const auto rest = trim(line.substr(at + key.size()));
  return parse_printed(rest.substr(0, rest.find_first_not_of("0123456789.")));
}

/// `-m 64`, `-m64`, `--msg-size=64` or `--msg-size 64` of a command line.
std::optional<Bytes> message_size(const std::string& line) {
  const auto words = split_words(line);
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const std::string_view option : {"--msg-size=", "--msg-size", "-m"}) {
      if (!words[i].text.starts_with(option)) continue;
      auto value = words[i].text.substr(option.size());
      if (value.empty() && i + 1 < words.size()) value = words[i + 1].text;
      if (const auto count = parse_count(value)) return Bytes{*count};
    }
  }
  return std::nullopt;
}

/// Modes other than ping-pong, by the command line.
std::string other_mode(const std::string& line) {
  for (const auto& word : split_words(line)) {
    if (word.text == "under-load" || word.text == "ul") return "sockperf under-load";
    if (word.text == "throughput" || word.text == "tp") return "sockperf throughput";
    if (word.text == "playback" || word.text == "pb") return "sockperf playback";
  }
  return {};
}

bool is_command(std::string_view line) { return contains(line, "sockperf ") && !contains(line, "sockperf: "); }
bool is_output(std::string_view line) { return contains(line, "sockperf: ") && !contains(line, "version #"); }
bool begins_sockperf_test(std::string_view line) { return contains(line, "sockperf[CLIENT]"); }

/// Times of a row, halved where they are of whole round trips.
void read_times(const std::string& line, double share, MeasuredRow& row) {
  const auto time = [&](std::string_view key) -> std::optional<Duration> {
    const auto number = number_behind(line, key);
    return number ? std::optional(from_us(number->value * share)) : std::nullopt;
  };
  if (const auto most = time("<MAX> observation =")) row.max_time = most;
  if (const auto least = time("<MIN> observation =")) row.min_time = least;
  if (const auto deviation = time("std-dev=")) row.std_dev = deviation;
  if (!contains(line, "---> percentile")) return;
  const auto percent = number_behind(line, "percentile");
  const auto value = time(" =");
  if (percent && value && percent->value < 100) row.percentiles.push_back({percent->value / 100, *value});
  if (percent && value && percent->value == 50) row.typical_time = value;
}

MeasuredLog read_sockperf_test(const LogText& log, Lines lines) {
  auto table = begin_table(log, LogFormat::sockperf, lines.front().number);
  table.title = "sockperf";
  table.header.unit = "us";
  MeasuredRow row;
  std::optional<Bytes> size;
  bool is_rtt = false;
  std::string other;
  for (const auto& line : lines) {
    if (contains(line.text, "avg-rtt=")) is_rtt = true;
    if (is_command(line.text)) {
      if (const auto named = message_size(line.text)) size = named;
      other = other_mode(line.text);
    }
    if (contains(line.text, "Summary: Message Rate") || contains(line.text, "Summary: BandWidth"))
      other = "sockperf throughput";
    const auto sent = number_behind(line.text, "SentMessages="), got = number_behind(line.text, "ReceivedMessages=");
    if (sent && got && sent->value > 2 * got->value + 2) other = "sockperf under-load";
    if (contains(line.text, "PORT =") && contains(line.text, "# TCP")) table.header.connection_type = "TCP";
    if (contains(line.text, "PORT =") && contains(line.text, "# UDP")) table.header.connection_type = "UDP";
    const double share = is_rtt ? 0.5 : 1;
    read_times(line.text, share, row);
    auto summary = number_behind(line.text, "Summary: Latency is ");
    if (!summary) summary = number_behind(line.text, "Summary: Round trip is ");
    if (!summary || summary->value <= 0) continue;
    row.time = from_us(summary->value * (contains(line.text, "Round trip") ? 0.5 : 1));
    row.line = line.number;
  }
  table.other_test = other;
  if (!other.empty()) return table;
  table.benchmark = Benchmark::sockperf;
  if (row.time.ps <= 0) {
    add_warning(table, line_warning(log, lines.front(), "row lost: the test has no summary"));
    return table;
  }
  if (!size)
    add_warning(table, line_warning(log, lines.front(),
                                    "no line names the size of the messages (-m): sockperf's 14 B are taken"));
  row.size = size.value_or(k_smallest_message);
  table.rows.push_back(std::move(row));
  return table;
}

}  // namespace

bool starts_sockperf(std::string_view line) {
  return begins_sockperf_test(line) || contains(line, "sockperf: Summary: ") || contains(line, "sockperf: [Total Run]");
}

std::vector<MeasuredLog> read_sockperf(const LogText& log, Lines section) {
  std::vector<MeasuredLog> tables;
  for (const auto lines : tests_of(section, begins_sockperf_test, is_output))
    tables.push_back(read_sockperf_test(log, lines));
  return tables;
}

}  // namespace fabricast::readers

// SPDX-License-Identifier: Apache-2.0
// iperf3, client or server, as text and JSON (-J, --json-stream). A test is one row: the block that its senders write
// (-l, 128 KiB unless told otherwise) and what all its streams carried together, as the receiver counted it; of a test
// that was cut, the mean of its intervals. Bits are thousands, bytes 1024 (iperf3's units.c), so "9.42 Gbits/sec"
// is 9.42e9 bit/s and "1244 MBytes/sec" 1244 x 2^20 B/s. Intervals that are left out (-O) are marked "(omitted)".
//
//   [ ID][Role] Interval           Transfer     Bitrate         Retr
//   [  5][TX-C]   0.00-10.00  sec  11.0 GBytes  9.42 Gbits/sec    0   sender
//   [SUM][TX-C]   0.00-10.04  sec  22.0 GBytes  18.8 Gbits/sec        receiver
#include <algorithm>

#include "readers/json_values.hpp"
#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

constexpr Bytes k_tcp_block{128 << 10};  ///< DEFAULT_TCP_BLKSIZE

/// Bytes per second of a unit; 0 for none. "Gbits/sec", "MBytes/sec".
double unit_of_rate(std::string_view unit) {
  if (!unit.ends_with("/sec")) return 0;
  unit.remove_suffix(4);
  const bool is_bits = unit.ends_with("bits");
  if (!is_bits && !unit.ends_with("Bytes")) return 0;
  const auto prefix = unit.substr(0, unit.size() - (is_bits ? 4 : 5));
  const double step = is_bits ? 1e3 : 1024;
  double scale = is_bits ? 1.0 / 8 : 1;
  for (const auto* one : {"", "K", "M", "G", "T"}) {
    if (prefix == one) return scale;
    scale *= step;
  }
  return 0;
}

/// One line of a table.
struct StreamLine {
  std::string tag;  ///< "5", "SUM"; empty when cut off
  char way = ' ';   ///< T or R of the role: sends or receives; blank without --bidir
  double begin_s = 0, end_s = 0;
  double bytes_per_s = 0;
  enum class Kind { interval, omitted, sender, receiver } kind = Kind::interval;
};

std::optional<StreamLine> stream_line(std::string_view line) {
  const auto words = split_words(line);
  const auto sec = std::find_if(words.begin(), words.end(), [](const Word& w) { return w.text == "sec"; });
  if (sec == words.begin() || words.end() - sec < 5) return std::nullopt;
  const auto span = (sec - 1)->text;
  const auto dash = span.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto begin = parse_printed(span.substr(0, dash)), end = parse_printed(span.substr(dash + 1));
  const auto rate = parse_printed((sec + 3)->text);
  const double unit = unit_of_rate((sec + 4)->text);
  if (!begin || !end || !rate || unit <= 0) return std::nullopt;
  StreamLine out;
  const auto tags = line.substr(0, (sec - 1)->column);
  if (const auto close = tags.find(']'); tags.starts_with('[') && close != std::string_view::npos)
    out.tag = std::string(trim(tags.substr(1, close - 1)));
  if (contains(tags, "[TX-")) out.way = 'T';
  if (contains(tags, "[RX-")) out.way = 'R';
  out.begin_s = begin->value;
  out.end_s = end->value;
  out.bytes_per_s = rate->value * unit;
  const auto last = words.back().text;
  if (last == "(omitted)") out.kind = StreamLine::Kind::omitted;
  if (last == "sender") out.kind = StreamLine::Kind::sender;
  if (last == "receiver") out.kind = StreamLine::Kind::receiver;
  return out;
}

bool is_stream_line(std::string_view line) { return stream_line(line).has_value(); }
bool begins_test(std::string_view line) {
  return contains(line, "Connecting to host ") || contains(line, "Accepted connection from ");
}
bool is_iperf2(std::string_view line) {
  return contains(line, "Client connecting to ") || contains(line, "Server listening on TCP port") ||
         contains(line, "Server listening on UDP port");
}

/// A number of bytes as iperf3 takes it: K, M and G are 2^10, 2^20 and 2^30.
std::optional<Bytes> block_of(std::string_view word) {
  std::int64_t unit = 1;
  constexpr std::string_view k_units = "kmg";
  const auto at = word.empty() ? std::string_view::npos : k_units.find(static_cast<char>(word.back() | 0x20));
  if (at != std::string_view::npos) {
    unit = std::int64_t{1} << (10 * (at + 1));
    word.remove_suffix(1);
  }
  const auto count = parse_count(word);
  constexpr std::int64_t k_largest = 1 << 30;
  if (!count || *count <= 0 || *count > k_largest / unit) return std::nullopt;
  return Bytes{*count * unit};
}

/// What a command line or the lines of -V say of the test.
void read_iperf3_settings(const std::string& line, MeasuredHeader& header, std::optional<Bytes>& block) {
  const auto words = split_words(line);
  if (words.size() == 2 && words[0].text == "iperf" && parse_printed(words[1].text.substr(0, words[1].text.find('+'))))
    header.tool_version = std::string(words[1].text);
  if (contains(line, "Starting Test: protocol: ")) {
    header.connection_type = contains(line, "protocol: TCP") ? "TCP" : contains(line, "protocol: UDP") ? "UDP" : "SCTP";
    header.streams = count_after(line, header.connection_type + ",");
    if (const auto blocks = line.find(" byte blocks"); blocks != std::string::npos) {
      const auto before = std::string_view(line).substr(0, blocks);
      block = block_of(before.substr(before.rfind(' ') + 1));
    }
  }
  if (contains(line, "Total Datagrams")) header.connection_type = "UDP";
  if (contains(line, "[Role]")) header.is_bidirectional = true;
  for (std::size_t i = 0; contains(line, "iperf3 ") && i + 1 < words.size(); ++i) {
    if (words[i].text == "-P" || words[i].text == "--parallel") header.streams = leading_count(words[i + 1].text);
    if (words[i].text == "-l" || words[i].text == "--length") block = block_of(words[i + 1].text);
  }
}

/// The sum over the streams of lines of one kind: its SUM line, else its streams one by one.
double rate_of(const std::vector<StreamLine>& lines, StreamLine::Kind kind, char way) {
  double sum = 0;
  for (const auto& line : lines) {
    if (line.kind != kind || line.way != way) continue;
    if (line.tag == "SUM") return line.bytes_per_s;
    sum += line.bytes_per_s;
  }
  return sum;
}

/// The mean over intervals, each with its length; of several streams their SUM lines.
double mean_of_intervals(const std::vector<StreamLine>& lines, char way) {
  const bool has_sums = std::ranges::find(lines, "SUM", &StreamLine::tag) != lines.end();
  double bytes = 0, begin_s = 1e300, end_s = 0;
  for (const auto& line : lines) {
    if (line.kind != StreamLine::Kind::interval || line.way != way || (line.tag == "SUM") != has_sums) continue;
    bytes += line.bytes_per_s * (line.end_s - line.begin_s);
    begin_s = std::min(begin_s, line.begin_s);
    end_s = std::max(end_s, line.end_s);
  }
  return end_s > begin_s ? bytes / (end_s - begin_s) : 0;
}

/// Streams that went one way, as the lines name them.
int streams_of(const std::vector<StreamLine>& lines) {
  std::vector<std::string> tags;
  for (const auto& line : lines) {
    const bool is_new = std::ranges::find(tags, line.tag) == tags.end();
    if (line.tag != "SUM" && !line.tag.empty() && line.way != 'R' && is_new) tags.push_back(line.tag);
  }
  return static_cast<int>(tags.size());
}

/// Adds the row of a rate.
void add_rate(MeasuredLog& table, std::optional<Bytes> block, double bytes_per_s, int line) {
  MeasuredRow row;
  row.size = block.value_or(k_tcp_block);
  row.bandwidth = Bandwidth{bytes_per_s};
  row.time = from_seconds(static_cast<double>(row.size.value) / bytes_per_s);
  row.line = line;
  table.rows.push_back(std::move(row));
}

MeasuredLog iperf3_table(const LogText& log, int line) {
  auto table = begin_table(log, LogFormat::iperf3, line);
  table.title = "iperf3";
  table.benchmark = Benchmark::iperf3;
  table.header.unit = "Gbits/sec";
  return table;
}

/// One test of a text.
MeasuredLog read_iperf3_test(const LogText& log, Lines lines) {
  auto table = iperf3_table(log, lines.front().number);
  std::optional<Bytes> block;
  std::vector<StreamLine> streams;
  int last = table.line;
  for (const auto& line : lines) {
    read_iperf3_settings(line.text, table.header, block);
    if (is_iperf2(line.text)) table.other_test = "iperf 2";
    if (const auto at = line.text.find("iperf3: error - "); at != std::string::npos)
      add_warning(table, line_warning(log, line, "the test ended with '" + line.text.substr(at + 16) + "'"));
    if (auto one = line.is_terminated || line.text.ends_with("er") ? stream_line(line.text) : std::nullopt) {
      streams.push_back(std::move(*one));
      last = line.number;
    }
  }
  if (!table.other_test.empty()) table.benchmark.reset();
  if (const int count = streams_of(streams); count > 0 && !table.header.streams) table.header.streams = count;
  const char way = table.header.is_bidirectional && !streams.empty() ? streams.back().way : ' ';
  double rate = rate_of(streams, StreamLine::Kind::receiver, way);
  if (rate <= 0) rate = rate_of(streams, StreamLine::Kind::sender, way);
  if (rate <= 0) {
    rate = mean_of_intervals(streams, way);
    if (rate > 0)
      add_warning(table,
                  line_warning(log, lines.front(), "the test has no summary, the mean of its intervals is taken"));
  }
  if (rate > 0) add_rate(table, block, rate, last);
  return table;
}

/// Bits per second over the intervals that count, of a test that was cut.
double mean_of_intervals(const nlohmann::json& top) {
  double bytes = 0, seconds = 0;
  const auto intervals = top.find("intervals");
  if (intervals == top.end()) return 0;
  for (const auto& one : *intervals) {
    const auto& sum = object_of(one, "sum");
    const auto omitted = sum.find("omitted");
    if (omitted != sum.end() && *omitted == true) continue;
    bytes += std::max(0.0, number_of(sum, "bytes").value_or(0));
    seconds += std::max(0.0, number_of(sum, "seconds").value_or(0));
  }
  return seconds > 0 ? 8 * bytes / seconds : 0;
}

}  // namespace

bool starts_iperf3(std::string_view line) {
  return begins_test(line) || is_iperf2(line) || contains(line, "iperf3: error - ") || is_stream_line(line);
}

std::vector<MeasuredLog> read_iperf3(const LogText& log, Lines section) {
  std::vector<MeasuredLog> tables;
  for (const auto lines : tests_of(section, begins_test, is_stream_line)) {
    auto table = read_iperf3_test(log, lines);
    if (!table.rows.empty() || !table.warnings.empty()) tables.push_back(std::move(table));
  }
  return tables;
}

std::optional<MeasuredLog> iperf3_json(const nlohmann::json& top, const LogText& log) {
  const auto &start = object_of(top, "start"), &end = object_of(top, "end");
  const auto version = text_of(start, "version");
  if (!version.starts_with("iperf")) return std::nullopt;
  auto table = iperf3_table(log, 0);
  const auto& test = object_of(start, "test_start");
  table.header.tool_version = version.substr(version.find(' ') + 1);
  table.header.connection_type = text_of(test, "protocol");
  table.header.streams = int_of(test, "num_streams");
  table.header.is_bidirectional = end.contains("sum_sent_bidir_reverse");
  if (const auto fault = text_of(top, "error"); !fault.empty())
    add_warning(table, file_warning(log.name, "the test ended with '" + fault + "'"));
  if (number_of(test, "target_bitrate").value_or(0) > 0 && table.header.connection_type == "TCP")
    add_warning(table, file_warning(log.name, "the senders kept to a given rate (-b), which is not forecast"));
  auto rate = number_of(object_of(end, "sum_received"), "bits_per_second");
  if (!rate || *rate <= 0) rate = number_of(object_of(end, "sum_sent"), "bits_per_second");
  if (!rate || *rate <= 0) {
    rate = mean_of_intervals(top);
    if (*rate > 0)
      add_warning(table, file_warning(log.name, "the test has no summary, the mean of its intervals is taken"));
  }
  const auto block = bytes_of(test, "blksize");
  if (rate && *rate > 0) add_rate(table, block && block->value > 0 ? block : std::nullopt, *rate / 8, 0);
  return table;
}

}  // namespace fabricast::readers

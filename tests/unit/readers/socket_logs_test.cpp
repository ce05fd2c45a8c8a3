// SPDX-License-Identifier: Apache-2.0
// Output of iperf3 3.12 and sockperf 3.7, captured between two processes of one machine: its figures say nothing of a
// network, its layout is theirs.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fabricast/measurement.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

constexpr const char* k_four_streams = R"(Connecting to host 127.0.0.1, port 5299
[  5] local 127.0.0.1 port 40710 connected to 127.0.0.1 port 5299
[  7] local 127.0.0.1 port 40718 connected to 127.0.0.1 port 5299
[  9] local 127.0.0.1 port 40724 connected to 127.0.0.1 port 5299
[ 12] local 127.0.0.1 port 40728 connected to 127.0.0.1 port 5299
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec   638 MBytes  5.34 Gbits/sec    0   1.62 MBytes
[  7]   0.00-1.00   sec   635 MBytes  5.32 Gbits/sec    0   1.62 MBytes
[  9]   0.00-1.00   sec   632 MBytes  5.30 Gbits/sec    0   1.75 MBytes
[ 12]   0.00-1.00   sec   630 MBytes  5.27 Gbits/sec    0    767 KBytes
[SUM]   0.00-1.00   sec  2.48 GBytes  21.2 Gbits/sec    0
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   1.00-2.00   sec   672 MBytes  5.63 Gbits/sec    0   1.75 MBytes
[  7]   1.00-2.00   sec   664 MBytes  5.56 Gbits/sec    0   1.75 MBytes
[  9]   1.00-2.00   sec   665 MBytes  5.57 Gbits/sec    0   1.75 MBytes
[ 12]   1.00-2.00   sec   659 MBytes  5.51 Gbits/sec    0   1.75 MBytes
[SUM]   1.00-2.00   sec  2.60 GBytes  22.3 Gbits/sec    0
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-2.00   sec  1.28 GBytes  5.48 Gbits/sec    0             sender
[  5]   0.00-2.01   sec  1.28 GBytes  5.47 Gbits/sec                  receiver
[  7]   0.00-2.00   sec  1.27 GBytes  5.44 Gbits/sec    0             sender
[  7]   0.00-2.01   sec  1.27 GBytes  5.42 Gbits/sec                  receiver
[  9]   0.00-2.00   sec  1.27 GBytes  5.43 Gbits/sec    0             sender
[  9]   0.00-2.01   sec  1.27 GBytes  5.41 Gbits/sec                  receiver
[ 12]   0.00-2.00   sec  1.26 GBytes  5.39 Gbits/sec    0             sender
[ 12]   0.00-2.01   sec  1.26 GBytes  5.38 Gbits/sec                  receiver
[SUM]   0.00-2.00   sec  5.07 GBytes  21.7 Gbits/sec    0             sender
[SUM]   0.00-2.01   sec  5.07 GBytes  21.7 Gbits/sec                  receiver

iperf Done.
)";

constexpr const char* k_two_streams_in_bytes = R"(iperf 3.12
Control connection MSS 32768
Connecting to host 127.0.0.1, port 5299
      TCP MSS: 32768 (default)
[  5] local 127.0.0.1 port 40746 connected to 127.0.0.1 port 5299
[  7] local 127.0.0.1 port 40752 connected to 127.0.0.1 port 5299
Starting Test: protocol: TCP, 2 streams, 65536 byte blocks, omitting 1 seconds, 2 second test, tos 0
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec   698 MBytes   698 MBytes/sec   14   2.87 MBytes       (omitted)
[  7]   0.00-1.00   sec   671 MBytes   671 MBytes/sec   16   2.87 MBytes       (omitted)
[SUM]   0.00-1.00   sec  1.34 GBytes  1369 MBytes/sec   30             (omitted)
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   0.00-1.00   sec  1.14 GBytes  1164 MBytes/sec    3    639 KBytes
[  7]   0.00-1.00   sec  1.09 GBytes  1117 MBytes/sec    3   2.75 MBytes
[SUM]   0.00-1.00   sec  2.23 GBytes  2281 MBytes/sec    6
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   1.00-2.00   sec  1.29 GBytes  1324 MBytes/sec    0   1.75 MBytes
[  7]   1.00-2.00   sec  1.25 GBytes  1283 MBytes/sec    0   1.50 MBytes
[SUM]   1.00-2.00   sec  2.55 GBytes  2606 MBytes/sec    0
- - - - - - - - - - - - - - - - - - - - - - - - -
Test Complete. Summary Results:
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-2.00   sec  2.43 GBytes  1244 MBytes/sec    3             sender
[  5]   0.00-2.00   sec  2.43 GBytes  1244 MBytes/sec                  receiver
[  7]   0.00-2.00   sec  2.34 GBytes  1200 MBytes/sec    3             sender
[  7]   0.00-2.00   sec  2.34 GBytes  1200 MBytes/sec                  receiver
[SUM]   0.00-2.00   sec  4.78 GBytes  2444 MBytes/sec    6             sender
[SUM]   0.00-2.00   sec  4.78 GBytes  2444 MBytes/sec                  receiver
CPU Utilization: local/sender 46.0% (1.0%u/44.9%s), remote/receiver 39.3% (0.9%u/38.4%s)
snd_tcp_congestion bbr
rcv_tcp_congestion bbr

iperf Done.
)";

constexpr const char* k_both_ways = R"(Connecting to host 127.0.0.1, port 5299
[  5] local 127.0.0.1 port 40778 connected to 127.0.0.1 port 5299
[  7] local 127.0.0.1 port 40788 connected to 127.0.0.1 port 5299
[  9] local 127.0.0.1 port 40794 connected to 127.0.0.1 port 5299
[ 12] local 127.0.0.1 port 40810 connected to 127.0.0.1 port 5299
[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd
[  5][TX-C]   0.00-1.00   sec   405 MBytes  3.40 Gbits/sec    1   1023 KBytes
[  7][TX-C]   0.00-1.00   sec   401 MBytes  3.36 Gbits/sec    1    895 KBytes
[SUM][TX-C]   0.00-1.00   sec   806 MBytes  6.76 Gbits/sec    2
[  9][RX-C]   0.00-1.00   sec   816 MBytes  6.85 Gbits/sec
[ 12][RX-C]   0.00-1.00   sec   806 MBytes  6.76 Gbits/sec
[SUM][RX-C]   0.00-1.00   sec  1.58 GBytes  13.6 Gbits/sec
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5][TX-C]   1.00-2.00   sec   381 MBytes  3.20 Gbits/sec    1   1.62 MBytes
[  7][TX-C]   1.00-2.00   sec   376 MBytes  3.16 Gbits/sec    0   1.62 MBytes
[SUM][TX-C]   1.00-2.00   sec   758 MBytes  6.35 Gbits/sec    1
[  9][RX-C]   1.00-2.00   sec   811 MBytes  6.80 Gbits/sec
[ 12][RX-C]   1.00-2.00   sec   809 MBytes  6.78 Gbits/sec
[SUM][RX-C]   1.00-2.00   sec  1.58 GBytes  13.6 Gbits/sec
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID][Role] Interval           Transfer     Bitrate         Retr
[  5][TX-C]   0.00-2.00   sec   786 MBytes  3.30 Gbits/sec    2             sender
[  5][TX-C]   0.00-2.01   sec   781 MBytes  3.27 Gbits/sec                  receiver
[  7][TX-C]   0.00-2.00   sec   777 MBytes  3.26 Gbits/sec    1             sender
[  7][TX-C]   0.00-2.01   sec   773 MBytes  3.23 Gbits/sec                  receiver
[SUM][TX-C]   0.00-2.00   sec  1.53 GBytes  6.56 Gbits/sec    3             sender
[SUM][TX-C]   0.00-2.01   sec  1.52 GBytes  6.49 Gbits/sec                  receiver
[  9][RX-C]   0.00-2.00   sec  1.59 GBytes  6.84 Gbits/sec    1             sender
[  9][RX-C]   0.00-2.01   sec  1.59 GBytes  6.80 Gbits/sec                  receiver
[ 12][RX-C]   0.00-2.00   sec  1.58 GBytes  6.79 Gbits/sec    0             sender
[ 12][RX-C]   0.00-2.01   sec  1.58 GBytes  6.75 Gbits/sec                  receiver
[SUM][RX-C]   0.00-2.00   sec  3.17 GBytes  13.6 Gbits/sec    1             sender
[SUM][RX-C]   0.00-2.01   sec  3.17 GBytes  13.6 Gbits/sec                  receiver

iperf Done.
)";

constexpr const char* k_datagrams = R"(Connecting to host 127.0.0.1, port 5299
[  5] local 127.0.0.1 port 54031 connected to 127.0.0.1 port 5299
[ ID] Interval           Transfer     Bitrate         Total Datagrams
[  5]   0.00-1.00   sec   119 MBytes   999 Mbits/sec  3812
[  5]   1.00-2.01   sec   119 MBytes   992 Mbits/sec  3811
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-2.01   sec   238 MBytes   996 Mbits/sec  0.000 ms  0/7623 (0%)  sender
[  5]   0.00-2.01   sec   227 MBytes   947 Mbits/sec  0.010 ms  373/7623 (4.9%)  receiver

iperf Done.
)";

constexpr const char* k_json =
    R"({"start":{"connected":[],"version":"iperf 3.12","tcp_mss_default":32768,"target_bitrate":0,
"test_start":{"protocol":"TCP","num_streams":4,"blksize":131072,"omit":0,"duration":1,"reverse":0,"target_bitrate":0}},
"intervals":[],"end":{"streams":[],"sum_sent":{"seconds":1.000776,"bytes":1797914624,"bits_per_second":14372164192.586552,
"retransmits":15,"sender":true},"sum_received":{"seconds":1.001477,"bytes":1792212939,
"bits_per_second":14316557955.899137,"sender":true}}}
)";

constexpr const char* k_ping_pong =
    "sockperf: \x1b[2;35m== version #3.7-no.git == \x1b[0m\n"
    "sockperf[CLIENT] send on:sockperf: using recvfrom() to block on socket(s)\n"
    "\n"
    "[ 0] IP = 127.0.0.1       PORT = 11199 # UDP\n"
    "sockperf: Warmup stage (sending a few dummy messages)...\n"
    "sockperf: Starting test...\n"
    "sockperf: Test end (interrupted by timer)\n"
    "sockperf: Test ended\n"
    "sockperf: [Total Run] RunTime=1.000 sec; Warm up time=400 msec; SentMessages=43606; ReceivedMessages=43605\n"
    "sockperf: ========= Printing statistics for Server No: 0\n"
    "sockperf: [Valid Duration] RunTime=0.550 sec; SentMessages=23593; ReceivedMessages=23593\n"
    "sockperf: \x1b[2;35m====> avg-latency=11.650 (std-dev=91.464)\x1b[0m\n"
    "sockperf: # dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0\n"
    "sockperf: Summary: Latency is 11.650 usec\n"
    "sockperf: \x1b[2;35mTotal 23593 observations\x1b[0m; each percentile contains 235.93 observations\n"
    "sockperf: ---> <MAX> observation = 2736.002\n"
    "sockperf: ---> percentile 99.999 = 2736.002\n"
    "sockperf: ---> percentile 99.990 = 2559.166\n"
    "sockperf: ---> percentile 99.900 = 1616.238\n"
    "sockperf: ---> percentile 99.000 =   17.505\n"
    "sockperf: ---> percentile 90.000 =    5.953\n"
    "sockperf: ---> percentile 75.000 =    5.828\n"
    "sockperf: ---> percentile 50.000 =    5.573\n"
    "sockperf: ---> percentile 25.000 =    5.543\n"
    "sockperf: ---> <MIN> observation =    5.448\n";
constexpr const char* k_round_trips =
    "sockperf: \x1b[2;35m== version #3.7-no.git == \x1b[0m\n"
    "sockperf[CLIENT] send on:sockperf: using recvfrom() to block on socket(s)\n"
    "\n"
    "[ 0] IP = 127.0.0.1       PORT = 11199 # UDP\n"
    "sockperf: Warmup stage (sending a few dummy messages)...\n"
    "sockperf: Starting test...\n"
    "sockperf: Test end (interrupted by timer)\n"
    "sockperf: Test ended\n"
    "sockperf: [Total Run] RunTime=1.000 sec; Warm up time=400 msec; SentMessages=39435; ReceivedMessages=39434\n"
    "sockperf: ========= Printing statistics for Server No: 0\n"
    "sockperf: [Valid Duration] RunTime=0.550 sec; SentMessages=23503; ReceivedMessages=23503\n"
    "sockperf: \x1b[2;35m====> avg-rtt=23.392 (std-dev=202.063)\x1b[0m\n"
    "sockperf: # dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0\n"
    "sockperf: Summary: Round trip is 23.392 usec\n"
    "sockperf: \x1b[2;35mTotal 23503 observations\x1b[0m; each percentile contains 235.03 observations\n"
    "sockperf: ---> <MAX> observation = 5442.352\n"
    "sockperf: ---> percentile 99.999 = 5442.352\n"
    "sockperf: ---> percentile 99.990 = 5422.392\n"
    "sockperf: ---> percentile 99.900 = 3718.174\n"
    "sockperf: ---> percentile 99.000 =   21.792\n"
    "sockperf: ---> percentile 90.000 =   11.907\n"
    "sockperf: ---> percentile 75.000 =   11.637\n"
    "sockperf: ---> percentile 50.000 =   11.136\n"
    "sockperf: ---> percentile 25.000 =   11.076\n"
    "sockperf: ---> <MIN> observation =   10.906\n";
constexpr const char* k_under_load =
    "sockperf: \x1b[2;35m== version #3.7-no.git == \x1b[0m\n"
    "sockperf[CLIENT] send on:sockperf: using recvfrom() to block on socket(s)\n"
    "\n"
    "[ 0] IP = 127.0.0.1       PORT = 11199 # UDP\n"
    "sockperf: Warmup stage (sending a few dummy messages)...\n"
    "sockperf: Starting test...\n"
    "sockperf: Test end (interrupted by timer)\n"
    "sockperf: Test ended\n"
    "sockperf: [Total Run] RunTime=1.002 sec; Warm up time=400 msec; SentMessages=19936; ReceivedMessages=1993\n"
    "sockperf: ========= Printing statistics for Server No: 0\n"
    "sockperf: Test end (interrupted by signal 2)\n"
    "sockperf: [Valid Duration] RunTime=0.541 sec; SentMessages=10911; ReceivedMessages=1092\n"
    "sockperf: \x1b[2;35m====> avg-latency=861.466 (std-dev=1463.987)\x1b[0m\n"
    "sockperf: # dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0\n"
    "sockperf: Summary: Latency is 861.466 usec\n"
    "sockperf: \x1b[2;35mTotal 1092 observations\x1b[0m; each percentile contains 10.92 observations\n"
    "sockperf: ---> <MAX> observation = 5249.404\n"
    "sockperf: ---> percentile 99.999 = 5249.404\n"
    "sockperf: ---> percentile 99.990 = 5249.404\n"
    "sockperf: ---> percentile 99.900 = 5000.167\n"
    "sockperf: ---> percentile 99.000 = 4041.494\n"
    "sockperf: ---> percentile 90.000 = 3794.105\n"
    "sockperf: ---> percentile 75.000 = 1902.853\n"
    "sockperf: ---> percentile 50.000 =    7.162\n"
    "sockperf: ---> percentile 25.000 =    6.149\n"
    "sockperf: ---> <MIN> observation =    5.615\n";
constexpr const char* k_throughput =
    "sockperf: \x1b[2;35m== version #3.7-no.git == \x1b[0m\n"
    "sockperf[CLIENT] send on:\n"
    "[ 0] IP = 127.0.0.1       PORT = 11199 # UDP\n"
    "sockperf: Warmup stage (sending a few dummy messages)...\n"
    "sockperf: Starting test...\n"
    "sockperf: Test end (interrupted by timer)\n"
    "sockperf: Test ended\n"
    "sockperf: Total of 88463 messages sent in 1.000 sec\n"
    "\n"
    "sockperf: Summary: Message Rate is 88420 [msg/sec]\n"
    "sockperf: Summary: BandWidth is 124.125 MBps (992.998 Mbps)\n";

Scenario scenario_of(Benchmark benchmark) {
  Scenario scenario;
  scenario.workloads.resize(1);
  scenario.workloads[0].benchmark = benchmark;
  return scenario;
}

MeasuredLog table_of(const std::string& text, Benchmark benchmark) {
  const auto tables = read_logs_text(text, "log.txt");
  REQUIRE_MESSAGE(tables, (tables ? "" : render(tables.error())));
  auto table = table_for(*tables, scenario_of(benchmark));
  REQUIRE(table);
  return *table;
}

MeasuredRow only_row(const std::string& text, Benchmark benchmark) {
  const auto table = table_of(text, benchmark);
  CAPTURE(table.refusal);
  REQUIRE(table.rows.size() == 1);
  return table.rows.front();
}

double gigabits(const std::string& text) { return only_row(text, Benchmark::iperf3).bandwidth->bytes_per_s * 8e-9; }

std::string without(std::string text, const std::string& part) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size() - 1);
    const auto line = text.substr(begin, end + 1 - begin);
    if (line.find(part) == std::string::npos) out += line;
    begin = end + 1;
  }
  return out;
}

bool warns_of(const MeasuredLog& table, const std::string& part) {
  return std::ranges::any_of(table.warnings,
                             [&](const Diagnostic& one) { return one.message.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("iperf3: all streams together, as the receiver counted them") {
  const auto table = table_of(k_four_streams, Benchmark::iperf3);
  CHECK(table.header.streams == 4);
  CHECK(table.warnings.empty());
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].size == 128_KiB);
  CHECK(gigabits(k_four_streams) == test::approx(21.7));
  CHECK(table.rows[0].time.us() == test::approx(131072 * 8 / 21.7e3));
}

TEST_CASE("iperf3: without SUM lines streams are added, without a summary intervals are averaged") {
  CHECK(gigabits(without(k_four_streams, "[SUM]")) == test::approx(5.47 + 5.42 + 5.41 + 5.38));
  CHECK(gigabits(without(k_four_streams, "receiver")) == test::approx(21.7));
  const auto cut = without(without(k_four_streams, "receiver"), "sender");
  CHECK(gigabits(cut) == test::approx((21.2 + 22.3) / 2));
  CHECK(warns_of(table_of(cut, Benchmark::iperf3), "no summary"));
  CHECK(gigabits("[SUM]   0.00-2.01   sec  5.07 GBytes  21.7 Gbits/sec                  receiver\n") ==
        test::approx(21.7));
  CHECK(gigabits("Thu Mar 13 10:04:33 2025 [SUM]   2.01-3.01   sec   283 MBytes  2370 Mbits/sec    \n") ==
        test::approx(2.37));
}

TEST_CASE("iperf3: bytes are of 1024, omitted intervals do not count, -V names blocks and release") {
  const auto table = table_of(k_two_streams_in_bytes, Benchmark::iperf3);
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].size == 64_KiB);
  CHECK(table.rows[0].bandwidth->bytes_per_s == test::approx(2444 * 0x1p20));
  CHECK(table.header.streams == 2);
  CHECK(table.header.tool_version == "3.12");
  CHECK(warns_of(table, "one thread"));
  const auto cut = without(without(k_two_streams_in_bytes, "receiver"), "sender");
  CHECK(gigabits(cut) == test::approx((2281 + 2606) / 2.0 * 0x1p23 * 1e-9));
}

TEST_CASE("iperf3: a command line names streams and blocks of the test below it, tests of a loop are repeats") {
  const std::string first = "$ iperf3 -c 10.0.0.2 -P 4 -l 1M\n" + std::string(k_four_streams);
  CHECK(only_row(first, Benchmark::iperf3).size == 1_MiB);
  const auto both = table_of(first + "$ iperf3 -c 10.0.0.2 -P 4 -l 32K\n" + k_four_streams, Benchmark::iperf3);
  REQUIRE(both.rows.size() == 2);
  CHECK(both.rows[0].size == 1_MiB);
  CHECK(both.rows[1].size == 32_KiB);
  const auto other = table_of(std::string(k_four_streams) + k_two_streams_in_bytes, Benchmark::iperf3);
  CHECK(other.rows.size() == 1);
  CHECK(warns_of(other, "differ in streams"));
}

TEST_CASE("iperf3: what is not forecast is refused and named") {
  CHECK(table_of(k_both_ways, Benchmark::iperf3).refusal.find("both ways") != std::string::npos);
  CHECK(table_of(k_datagrams, Benchmark::iperf3).refusal.find("UDP") != std::string::npos);
  const auto old =
      table_of("Client connecting to 10.0.0.2, TCP port 5001\n[  3]  0.0-10.0 sec  1.10 GBytes   941 Mbits/sec\n",
               Benchmark::iperf3);
  CHECK(old.refusal.find("iperf 2") != std::string::npos);
  const auto failed = table_of("iperf3: error - unable to connect to server: Connection refused\n", Benchmark::iperf3);
  CHECK(failed.rows.empty());
  CHECK(warns_of(failed, "Connection refused"));
}

TEST_CASE("iperf3: JSON has what the text has, also of several runs appended to one file") {
  const auto table = table_of(k_json, Benchmark::iperf3);
  CHECK(table.header.streams == 4);
  CHECK(gigabits(k_json) == test::approx(14.316557955899137));
  const auto twice = table_of(std::string(k_json) + k_json, Benchmark::iperf3);
  CHECK(twice.rows.size() == 2);
  auto both_ways = std::string(k_json);
  both_ways.replace(both_ways.find("\"sum_received\""), 14, "\"sum_sent_bidir_reverse\"");
  CHECK(table_of(both_ways, Benchmark::iperf3).refusal.find("both ways") != std::string::npos);
  auto datagrams = std::string(k_json);
  datagrams.replace(datagrams.find("\"TCP\""), 5, "\"UDP\"");
  CHECK(table_of(datagrams, Benchmark::iperf3).refusal.find("UDP") != std::string::npos);
}

TEST_CASE("sockperf: half a round trip, its percentiles, and the size that the command line names") {
  const auto plain = table_of(k_ping_pong, Benchmark::sockperf);
  REQUIRE(plain.rows.size() == 1);
  CHECK(plain.rows[0].size == 14_B);
  CHECK(warns_of(plain, "14 B"));
  CHECK(plain.rows[0].time.us() == test::approx(11.65));
  CHECK(plain.rows[0].min_time->us() == test::approx(5.448));
  CHECK(plain.rows[0].max_time->us() == test::approx(2736.002));
  CHECK(plain.rows[0].typical_time->us() == test::approx(5.573));
  CHECK(plain.rows[0].std_dev->us() == test::approx(91.464));
  CHECK(plain.rows[0].percentiles.size() == 8);
  for (const std::string option : {"-m 64", "-m64", "--msg-size=64", "--msg-size 64"}) {
    CAPTURE(option);
    const auto named = table_of("$ sockperf ping-pong -i 10.0.0.2 " + option + "\n" + k_ping_pong, Benchmark::sockperf);
    CHECK(named.rows.at(0).size == 64_B);
    CHECK(named.warnings.empty());
  }
}

TEST_CASE("sockperf: whole round trips are halved, several sizes of a loop are rows of one table") {
  const auto whole = only_row(k_round_trips, Benchmark::sockperf);
  CHECK(whole.time.us() == test::approx(23.392 / 2));
  CHECK(whole.typical_time->us() == test::approx(11.136 / 2));
  const auto both = table_of("$ sockperf pp -i 10.0.0.2 -m 64\n" + std::string(k_ping_pong) +
                                 "$ sockperf pp -i 10.0.0.2 -m 1024 --full-rtt\n" + k_round_trips,
                             Benchmark::sockperf);
  REQUIRE(both.rows.size() == 2);
  CHECK(both.rows[0].size == 64_B);
  CHECK(both.rows[1].size == 1_KiB);
  CHECK(both.rows[1].time.us() == test::approx(23.392 / 2));
}

TEST_CASE("sockperf: latencies under load and throughput are refused and named, a test without summary says so") {
  CHECK(table_of(k_under_load, Benchmark::sockperf).refusal.find("under-load") != std::string::npos);
  CHECK(table_of(k_throughput, Benchmark::sockperf).refusal.find("throughput") != std::string::npos);
  CHECK(warns_of(table_of(without(k_ping_pong, "Summary"), Benchmark::sockperf), "no summary"));
  auto tcp = std::string(k_ping_pong);
  tcp.replace(tcp.find("# UDP"), 5, "# TCP");
  CHECK(warns_of(table_of(tcp, Benchmark::sockperf), "TCP"));
}

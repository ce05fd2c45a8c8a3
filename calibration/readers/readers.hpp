// SPDX-License-Identifier: Apache-2.0
// The readers behind read_logs(). A log is cut into sections where a known table begins; each section goes to the
// reader of its format, which returns its tables and never fails: what it cannot read it reports as a warning with the
// line.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fabricast/measurement.hpp"
#include "readers/text.hpp"

namespace fabricast::readers {

using Lines = std::span<const Line>;

/// The start of a table, as one line shows it.
bool starts_nccl_tests(std::string_view line);
bool starts_osu(std::string_view line);
bool starts_perftest(std::string_view line);
bool starts_p2p_matrix(std::string_view line);
bool starts_cuda_bandwidth(std::string_view line);
bool starts_copies(std::string_view line);
bool starts_training(std::string_view line);
bool starts_communication_csv(std::string_view line);
bool starts_iperf3(std::string_view line);
bool starts_sockperf(std::string_view line);
bool starts_forecast(std::string_view line);

std::vector<MeasuredLog> read_nccl_tests(const LogText& log, Lines section);
std::vector<MeasuredLog> read_osu(const LogText& log, Lines section);
std::vector<MeasuredLog> read_perftest(const LogText& log, Lines section);
std::vector<MeasuredLog> read_p2p_matrix(const LogText& log, Lines section);
std::vector<MeasuredLog> read_cuda_bandwidth(const LogText& log, Lines section);
std::vector<MeasuredLog> read_copies(const LogText& log, Lines section);
std::vector<MeasuredLog> read_training(const LogText& log, Lines section);
std::vector<MeasuredLog> read_communication_csv(const LogText& log, Lines section);
std::vector<MeasuredLog> read_iperf3(const LogText& log, Lines section);
std::vector<MeasuredLog> read_sockperf(const LogText& log, Lines section);
std::vector<MeasuredLog> read_forecast(const LogText& log, Lines section);

/// Names the tables that stand below a title of `fabricast run`.
void name_workloads(const LogText& log, std::vector<MeasuredLog>& tables);

/// The lines of each test of a section: it starts where `begins` says so, or above, behind the last line that `belongs`
/// to the test before, where command lines stand.
std::vector<Lines> tests_of(Lines section, bool (*begins)(std::string_view), bool (*belongs)(std::string_view));

/// The steps of a training table that are the scenario's, as rows; nothing when either is not of training.
std::optional<MeasuredLog> training_rows(const MeasuredLog& log, const Scenario& scenario,
                                         const std::vector<std::string>& parts);

/// NCCL's TUNING lines anywhere in a log; nothing when there are none.
std::optional<MeasuredLog> read_nccl_tuning(const LogText& log);

/// JSON of nccl-tests (-J), perftest (--out_json), iperf3 (-J) and `fabricast run`, also several behind each other;
/// empty when the text is none of them.
std::vector<MeasuredLog> read_json(std::string_view text, const std::string& name);

/// Rows of host_copies: the entries of a log of copies that are of the workload's GPUs and direction.
std::optional<MeasuredLog> copy_rows(const MeasuredLog& log, const Scenario& scenario);

/// Why a table's rows cannot be compared with a benchmark's forecast: they are of another test, or were taken in a way
/// that is not forecast. Empty when they can, as far as the table says.
std::string refusal_of(const MeasuredLog& table, Benchmark wanted);
/// What two tables of one benchmark say of themselves that is not the same ("window, buffers"); empty for repeats.
std::string differences_of(const MeasuredLog& a, const MeasuredLog& b);

/// A title line of perftest: `RDMA_Write Bidirectional BW Test`.
struct PerftestTitle {
  std::string_view text;
  std::optional<Benchmark> benchmark;  ///< absent for tests that are not forecast (atomics, immediate data)
  bool is_bidirectional = false;
};
std::optional<PerftestTitle> perftest_title(std::string_view line);

/// How nccl-tests was started, from its threads and GPUs per thread.
LaunchMode launch_mode(const MeasuredHeader& header, bool is_graph);

/// A benchmark's name as a whole word of a command line, a path or a free text.
std::optional<Benchmark> benchmark_in(std::string_view text);
/// Names a table by its program of nccl-tests ("all_reduce_perf", "/opt/all_reduce_perf_mpi"); one that is not forecast
/// ("hypercube_perf") becomes `other_test`.
void name_program(std::string_view program, MeasuredLog& table);
/// Whether a program's table comes in this format.
bool is_of_format(Benchmark benchmark, LogFormat format);
/// `job-4gpu-all_reduce-ring.txt` -> all_reduce_perf.
std::optional<Benchmark> nccl_benchmark_of_file(std::string_view path);
bool is_nccl(const MeasuredLog& table);

/// Adds `NAME=value` settings of NCCL, UCX, MVAPICH and Open MPI found in a text; other names are passed over.
void add_settings(std::string_view text, std::map<std::string, std::string>& settings);
/// Adds what one of NCCL's own lines says that it used.
void note_nccl_line(std::string_view text, NcclSeen& seen);
/// Fills header.environment of a log's tables, in file order: what stands above a table and within it; exports last.
void add_environments(const LogText& log, std::vector<MeasuredLog>& tables);

/// Takes ranks, hosts and benchmark from the provenance lines where the log itself does not say.
void complete_from_provenance(const LogText& log, MeasuredLog& table);

/// Numbers of ranks that fit a table's printed busbw / algbw.
struct RankInterval {
  double low = 0, high = 0;
  /// The only whole number inside, if there is one.
  [[nodiscard]] std::optional<int> only() const;
};
RankInterval ranks_of_printed_bandwidths(const MeasuredLog& table);

/// A new table of `format` that begins at `line`.
MeasuredLog begin_table(const LogText& log, LogFormat format, int line);

/// A warning of a file that has no lines.
Diagnostic file_warning(const std::string& name, std::string message);
/// Adds a warning unless the table has very many already.
void add_warning(MeasuredLog& table, Diagnostic warning);

/// "2.28.9" from NCCL's version code 22809 (2.8 and earlier: 2708 -> "2.7.8").
std::string nccl_version_text(int code);

/// Fills bandwidth and busbw of nccl-tests rows from size and time.
void recompute_bandwidths(MeasuredLog& table);

/// A bandwidth and a message rate as printed, in base units.
struct PrintedRate {
  std::optional<Printed> bytes_per_s;
  std::optional<Printed> messages_per_s;
};
/// Fills time, bandwidth and message rate of a bandwidth row from whichever was printed with more digits. False when
/// the two contradict each other or neither is there: the row is damaged.
bool set_rates(MeasuredRow& row, const PrintedRate& rate);

Duration from_us(double us);

/// Counts hosts and ranks per host from `header.ranks`.
void summarize_ranks(MeasuredHeader& header);

}  // namespace fabricast::readers

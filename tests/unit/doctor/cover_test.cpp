// SPDX-License-Identifier: Apache-2.0
// Which healthy run serves which log.
#include "doctor/baselines.hpp"
#include "tests/support/approx.hpp"
#include "tests/unit/doctor/logs.hpp"

using namespace fabricast;
using namespace fabricast::test;

namespace {

/// One row of all-reduce, 0.1 ms for 1 MiB.
doctor::Patient one_row() {
  doctor::Patient out;
  out.base = case_of_text(
      fmt::format("schema: fabricast/scenario/1\nname: s\ntopology: \"{}\"\nworkload: {{benchmark: all_reduce_perf, "
                  "sizes: [1 MiB]}}\n",
                  topology_file("dgx-a100-pair.yaml")),
      out.sizes);
  out.log.file = "log";
  out.log.benchmark = Benchmark::all_reduce_perf;
  out.log.rows.push_back({});
  out.log.rows.front().size = out.sizes.front();
  out.log.rows.front().time = from_seconds(1e-4);
  return out;
}

}  // namespace

TEST_CASE("a healthy run serves logs of runs that were taken alike, whatever their release and forced settings") {
  auto patient = one_row();
  auto& header = patient.log.header;
  header.num_ranks = 16;
  header.num_hosts = 2;
  header.ranks_per_host = 8;
  header.send_buffer = header.receive_buffer = BufferPlace::device;
  header.launch = LaunchMode::process_per_gpu;
  header.pairs = header.window = header.queue_pairs = header.tx_depth = 4;
  const auto serves = [&](const auto& change) {
    auto healthy = patient;
    healthy.log.file = "healthy";
    change(healthy.log);
    std::vector<doctor::Patient> patients{patient};
    const auto faults = doctor::cover(patients, {healthy}, {"healthy"});
    CHECK(faults.empty() != patients.front().expected.front().baseline.empty());
    return faults.empty();
  };
  using Log = MeasuredLog;
  CHECK(serves([](Log&) {}));
  CHECK(serves([](Log& log) { log.header = {}; }));  // says nothing of it
  CHECK(serves([](Log& log) { log.header.nccl_version = "2.4.8"; }));
  CHECK(serves([](Log& log) { log.header.environment["NCCL_P2P_DISABLE"] = "1"; }));
  CHECK(serves([](Log& log) { log.header.hosts = {"renamed"}; }));
  CHECK(!serves([](Log& log) { log.benchmark = Benchmark::alltoall_perf; }));
  CHECK(!serves([](Log& log) { log.header.num_ranks = 8; }));
  CHECK(!serves([](Log& log) { log.header.num_hosts = 1; }));
  CHECK(!serves([](Log& log) { log.header.ranks_per_host = 4; }));
  CHECK(!serves([](Log& log) { log.header.send_buffer = BufferPlace::host; }));
  CHECK(!serves([](Log& log) { log.header.receive_buffer = BufferPlace::host; }));
  CHECK(!serves([](Log& log) { log.header.launch = LaunchMode::one_thread; }));
  CHECK(!serves([](Log& log) { log.header.pairs = 1; }));
  CHECK(!serves([](Log& log) { log.header.window = 1; }));
  CHECK(!serves([](Log& log) { log.header.queue_pairs = 1; }));
  CHECK(!serves([](Log& log) { log.header.tx_depth = 1; }));
  CHECK(!serves([](Log& log) { log.header.is_bidirectional = true; }));
  CHECK(!serves([](Log& log) { log.header.is_managed_memory = true; }));
  CHECK(!serves([](Log& log) { log.rows.front().size = Bytes{1 << 21}; }));
}

TEST_CASE("of two healthy runs that of the log's own hosts counts") {
  auto patient = one_row();
  patient.log.header.hosts = {"dgx1"};
  auto own = patient, other = patient;
  own.log.file = "own";
  own.log.rows.front().time = from_seconds(2e-4);
  other.log.file = "other";
  other.log.header.hosts = {"dgx0"};
  std::vector<doctor::Patient> patients{patient};
  const auto faults = doctor::cover(patients, {other, own}, {"own"});
  CHECK(faults.empty());
  const auto& row = patients.front().expected.front();
  CHECK(row.baseline == "own:0");
  const auto forecast = doctor::forecast(patient.base, patient.sizes);
  CHECK(forecast.front().seconds() * row.over_forecast == test::approx(2e-4));
}

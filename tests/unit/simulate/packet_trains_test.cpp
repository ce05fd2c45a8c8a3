// SPDX-License-Identifier: Apache-2.0
// Trains of packets behind scenarios: every file that a run writes has the same bytes as packet by packet, but for the
// lines that say what the run took.
#include "report/report.hpp"

#include <memory>

#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

struct Outputs {
  std::vector<std::string> texts;
  EngineWork work;  ///< of all rows
};

Outputs outputs(const LoadedScenario& loaded, SimulateOptions options, bool shortcuts) {
  options.fidelity = Fidelity::packet;
  options.packet_shortcuts = shortcuts;
  auto prediction = test::run(loaded, options);
  Outputs out;
  for (auto& workload : prediction.workloads)
    for (auto& row : workload.rows) {
      out.work.events += row.fabric->engine.events;
      out.work.trains += row.fabric->engine.trains;
      out.work.train_packets += row.fabric->engine.train_packets;
      auto report = *row.fabric;
      report.engine = {};
      row.fabric = std::make_shared<const FabricReport>(std::move(report));
    }
  const report::Provenance provenance;
  const report::Document document{prediction, loaded.scenario, provenance};
  out.texts = {report::text(document), report::json(document), report::csv(document), report::html(document),
               report::trace(document)};
  for (const auto& table : report::fabric_csv(document)) out.texts.push_back(table.text);
  return out;
}

}  // namespace

TEST_CASE("every output of a packet run has the same bytes with trains and packet by packet") {
  struct Example {
    std::string scenario;
    std::vector<Setting> settings;
    Duration sample_interval;
    bool has_trains = true;
  };
  const std::vector<Example> examples{
      {"traffic-ring-all-reduce-64.yaml", {{"workload.sizes", "[64 MiB]"}}, {}},
      {"traffic-ring-all-reduce-64.yaml", {{"workload.sizes", "[256 MiB]"}}, 100_us},
      {"traffic-flows-two-classes.yaml", {{"workload.sizes", "[20 MB]"}}, {}},
      {"traffic-victim-pfc.yaml", {{"workload.sizes", "[4 MB]"}}, 50_us, false},
      // Its host is slower than the fabric: a stage in it hands packets over at its own rate.
      {"osu-bw-fdr-gpudirect.yaml", {{"workload.sizes", "[1 MiB]"}}, {}},
  };
  for (const auto& example : examples) {
    const auto& [name, settings, interval, has_trains] = example;
    const auto loaded = test::shipped(name, settings);
    for (const bool wants_pauses : {false, true}) {
      CAPTURE(example.scenario);
      CAPTURE(wants_pauses);
      SimulateOptions options;
      options.sample_interval = interval;
      options.record_pauses = wants_pauses;
      const auto fast = outputs(loaded, options, true);
      const auto plain = outputs(loaded, options, false);
      CHECK((fast.texts == plain.texts));
      CHECK((fast.work.trains > 0) == has_trains);
      CHECK(plain.work.trains == 0);
      CHECK(plain.work.train_packets == 0);
      CHECK(fast.work.events < plain.work.events);
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Where the doctor says to run its next test, on clusters whose hosts differ.
#include "doctor/next_tests.hpp"
#include "tests/unit/doctor/logs.hpp"

using namespace fabricast;

namespace {

/// Two hosts with GPUs; where `with_heads`, hosts without any stand before and between them.
doctor::Case cluster(bool with_heads) {
  const std::string head =
      ", host: {processor: epyc-rome, devices: [{name: hca0, type: connectx-6-hdr, below: socket0}]}}, ";
  const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-next-{}.yaml", getpid());
  std::ofstream(path) << "schema: fabricast/topology/1\nname: next\nhosts: [" +
                             (with_heads ? "{name: head" + head : std::string()) + "{name: first, type: dgx-a100}, " +
                             (with_heads ? "{name: login" + head : std::string()) +
                             "{name: second, type: dgx-a100}]\nfabric: {single_switch: {switch: qm8700}}\n";
  std::vector<Bytes> sizes;
  auto out = test::case_of_text(fmt::format("schema: fabricast/scenario/1\nname: s\ntopology: \"{}\"\nworkload: "
                                            "{{benchmark: all_reduce_perf, sizes: [8 B]}}\n",
                                            path.string()),
                                sizes);
  std::filesystem::remove(path);
  return out;
}

/// The next test that tells the cause from health.
std::string next_for(const doctor::Case& base, const std::string& cause) {
  for (const auto& one : doctor::causes_for(base, false)) {
    if (one.id != cause) continue;
    const auto test = doctor::next_test(base, &one, nullptr);
    return test ? test->command : "none";
  }
  return "no such cause";
}

}  // namespace

TEST_CASE("the next test runs on hosts that can run it, whatever hosts without GPUs stand before and between them") {
  for (const bool with_heads : {false, true}) {
    CAPTURE(with_heads);
    const auto base = cluster(with_heads);
    CHECK(next_for(base, "acs-redirect") == "ib_write_bw --use_cuda=0, between first and second");
    CHECK(next_for(base, "p2p-off") == "all_reduce_perf on first");
  }
}

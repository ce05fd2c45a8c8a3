// SPDX-License-Identifier: Apache-2.0
// What messages propose for a wrong name, a wrong kind and a key in the wrong place.
#include "config/names.hpp"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

/// The messages of a scenario on two hosts, with these lines at its end.
std::string told_of(const std::string& lines, const std::string& host = "type: dgx-a100",
                    const std::string& fabric = "single_switch: {switch: qm8700}") {
  const auto loaded = load_scenario(test::write_file(
      "s.yaml",
      "schema: fabricast/scenario/1\nname: s\ntopology: {schema: fabricast/topology/1, name: t, hosts: [{name: "
      "n, count: 2, " +
          host + "}], fabric: {" + fabric + "}}\n" + lines));
  return loaded ? "" : test::shown(loaded.error());
}

const std::string k_all_reduce = "workload: {benchmark: all_reduce_perf}\n";

}  // namespace

TEST_CASE("names that hold the letters of a wrong one come before those that differ in a few") {
  using Names = std::vector<std::string>;
  const Names hosts{"a10", "gh200", "server-2h100-pcie-bridge", "hgx-h100-8"};
  CHECK(config::meant_names("H100", hosts) == Names{"hgx-h100-8", "server-2h100-pcie-bridge"});
  CHECK(config::meant_names("allreduce", {"osu_allreduce", "all_reduce_perf", "osu_reduce"}) ==
        Names{"osu_allreduce", "all_reduce_perf"});
  CHECK(config::meant_names("gh20", {"gh200", "a10"}) == Names{"gh200"});
  CHECK(config::meant_names("hgx-h10-8", hosts) == Names{"hgx-h100-8"});
  CHECK(config::meant_names("a1", {"a100", "a1"}) == Names{"a1", "a100"});  // too short to be held by others
  CHECK(config::meant_names("quite else", hosts).empty());
  CHECK(config::meant_hint({}).empty());
  CHECK(config::meant_hint({"a", "b"}) == "did you mean 'a' or 'b'?");
}

TEST_CASE("a wrong name of a device is answered with devices of the kind that is expected") {
  for (const auto& one : std::vector<std::pair<std::string, std::string>>{
           {"type: H100", "did you mean 'hgx-h100-8' or 'server-2h100-pcie-bridge'?"},
           {"type: Standard_ND96asr_v4", "did you mean 'azure-nd-a100-v4'?"},
           {"type: p4d.24xlarge", "did you mean 'aws-p4d'?"},
           {"type: h100-sxm", "'h100-sxm' is a gpu, a host is expected here"},
           {"type: h100-sxm", "hosts with it: "},
           {"type: qm8700", "`fabricast list devices host` prints those there are"},
           {"host: {processor: EPYC 7742}", "`fabricast list devices processor` prints those there are"},
           {"host: {processor: epyc-rome, devices: [{name: h, type: ConnectX-6, below: socket0}]}",
            "did you mean 'connectx-6-hdr' or "}}) {
    const auto told = told_of(k_all_reduce, one.first);
    INFO(one.first, ": ", told);
    CHECK(told.find(one.second) != std::string::npos);
  }
}

TEST_CASE("a value of the wrong kind is answered with how to write it") {
  for (const auto& one : std::vector<std::pair<std::string, std::string>>{
           {"workload: all_reduce_perf\n", "write 'benchmark: all_reduce_perf' in it"},
           {"workload:\n", "write 'benchmark: ...' in it"},
           {"workloads: {benchmark: all_reduce_perf}\n",
            "write '- benchmark: ...', each element with a '-' of its own"},
           {"workload: {benchmark: all_reduce_perf, sizes: 1 MiB}\n", "write [1 MiB]"},
           {"software: {nccl: 2.18}\n" + k_all_reduce, "its keys: version, "},
           {"workload: {benchmark: allreduce}\n", "did you mean 'osu_allreduce' or 'all_reduce_perf'?"},
           {"workload: {benchmark: nccl-tests}\n", "known: osu_latency, "}}) {
    const auto told = told_of(one.first);
    INFO(one.first, ": ", told);
    CHECK(told.find(one.second) != std::string::npos);
  }
}

TEST_CASE("a key on the wrong level is told its own") {
  CHECK(told_of("gpus: 8\n" + k_all_reduce).find("'gpus' is a key of `workload`") != std::string::npos);
  CHECK(told_of("hosts: 4\n" + k_all_reduce).find("'hosts' is a key of `topology`") != std::string::npos);
}

TEST_CASE("what is misspelt is not missing, too") {
  for (const auto& told :
       {told_of("workloa: {benchmark: all_reduce_perf}\n"), told_of("workload: {benchmrk: gpu_step}\n"),
        told_of(k_all_reduce, "type: dgx-a100", "fat-tree: {switch: qm8700}")}) {
    CAPTURE(told);
    CHECK(told.find("did you mean") != std::string::npos);
    CHECK(told.find("needs") == std::string::npos);
  }
}

TEST_CASE("a file that cannot be read is told where it is named") {
  const auto loaded = load_scenario(test::write_file(
      "s.yaml",
      "schema: fabricast/scenario/1\nname: s\ntopology: none.yaml\nworkload: {benchmark: all_reduce_perf}\n"));
  REQUIRE(!loaded);
  const auto told = test::shown(loaded.error());
  CAPTURE(told);
  CHECK(told.find("s.yaml:3:11: note: the file is named here") != std::string::npos);
}

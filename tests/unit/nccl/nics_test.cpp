// SPDX-License-Identifier: Apache-2.0
// Which HCA a send or a receive takes, and which GPU hands over its data, by release.
#include "nccl/nics.hpp"

#include <fstream>
#include <iterator>
#include <set>

#include "tests/support/approx.hpp"
#include "tests/unit/nccl/hosts.hpp"

using namespace fabricast;
using namespace fabricast::models;
using namespace fabricast::models::nccl;
using test::beside_gpus;
using test::cluster_of;
using test::PairedHost;
using test::Setup;

namespace {

std::vector<std::size_t> local_hcas(const HostNics& nics, int turn) {
  std::vector<std::size_t> out;
  for (std::size_t g = 0; g < nics.gpus().size(); ++g) out.push_back(nics.local_hca(g, turn));
  return out;
}

HostNics nics_of(const Setup& setup) { return {setup.context, setup.gpus()}; }

using Numbers = std::vector<std::size_t>;

}  // namespace

TEST_CASE("two GPUs and two HCAs below one switch: each GPU has its own, from 2.12 on by NVML's number") {
  const PairedHost host{.hcas = beside_gpus("connectx-7-ndr", 8)};
  for (const char* version : {"2.12", "2.18", "2.28"}) {
    CAPTURE(version);
    const Setup setup(cluster_of(host, 2, std::string("{version: \"") + version + "\"}"));
    CHECK(local_hcas(nics_of(setup), 0) == Numbers{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(local_hcas(nics_of(setup), 1) == Numbers{0, 1, 2, 3, 4, 5, 6, 7});
  }
}

TEST_CASE("before 2.12 connections of one GPU take the HCAs beside it in turn") {
  const Setup setup(cluster_of({.hcas = beside_gpus("connectx-7-ndr", 8)}, 2, "{version: \"2.11\"}"));
  const auto nics = nics_of(setup);
  CHECK(local_hcas(nics, 0) == Numbers{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(local_hcas(nics, 1) == Numbers{1, 0, 3, 2, 5, 4, 7, 6});
  CHECK(nics.spread(0) == 2);
}

TEST_CASE("with more HCAs than GPUs below a switch the channels of a GPU spread over them, from 2.18 on") {
  // Switch 0 has GPUs 0 and 1 and four HCAs: numbers mirrored over four, 0 -> 0 and 1 -> 2, plus channel mod 2.
  std::vector<test::HcaAt> hcas(4, {"connectx-5-edr", "sw0"});
  const PairedHost host{.gpus = 2, .hcas = hcas};
  const Setup late(cluster_of(host, 2, "{version: \"2.18\"}"));
  CHECK(nics_of(late).spread(0) == 2);
  CHECK(local_hcas(nics_of(late), 0) == Numbers{0, 2});
  CHECK(local_hcas(nics_of(late), 1) == Numbers{1, 3});
  CHECK(local_hcas(nics_of(late), 2) == Numbers{0, 2});
  const Setup early(cluster_of(host, 2, "{version: \"2.17\"}"));
  CHECK(nics_of(early).spread(0) == 1);
  CHECK(local_hcas(nics_of(early), 1) == Numbers{0, 1});
}

TEST_CASE("three HCAs for two GPUs: numbers are not mirrored, the second of each GPU's two follows the first") {
  const Setup setup(cluster_of({.gpus = 2, .hcas = {3, {"connectx-5-edr", "sw0"}}}, 2));
  const auto nics = nics_of(setup);
  CHECK(nics.spread(0) == 2);
  CHECK(local_hcas(nics, 0) == Numbers{0, 1});
  CHECK(local_hcas(nics, 1) == Numbers{1, 2});
}

TEST_CASE("a GPU takes the widest path first and the nearest of those") {
  // HDR (25 GB/s) beside GPU 0 and 1, NDR (50 GB/s, 48 by its slot) on a root port: without NVLink GPU 0's path to it
  // is wider.
  PairedHost host{.gpus = 2, .hcas = {{"connectx-6-hdr", "sw0"}, {"connectx-7-ndr", "socket0"}}, .has_nvswitch = false};
  CHECK(local_hcas(nics_of(Setup(cluster_of(host, 2))), 0) == Numbers{1, 1});
  host.hcas[1].type = "connectx-6-hdr";
  CHECK(local_hcas(nics_of(Setup(cluster_of(host, 2))), 0) == Numbers{0, 0});
}

TEST_CASE("level 2: a send leaves by the HCA of the peer's counterpart, handed over by the GPU beside it") {
  const Setup setup(cluster_of({.hcas = beside_gpus("connectx-7-ndr", 8)}, 2));
  const auto nics = nics_of(setup);
  for (std::size_t g = 0; g < 8; ++g) {
    for (int peer = 0; peer < 8; ++peer) {
      CAPTURE(g);
      CAPTURE(peer);
      const auto sender = nics.sender(g, peer, 0);
      CHECK(sender.hca == static_cast<std::size_t>(peer));
      CHECK(sender.gpu == static_cast<std::size_t>(peer));
    }
  }
  CHECK(nics.has_relays());
}

TEST_CASE("no counterpart among the ranks of this host: a send leaves by the GPU's own HCA") {
  const Setup setup(cluster_of({.hcas = beside_gpus("connectx-7-ndr", 8)}, 2));
  const HostNics nics(setup.context, {setup.gpus()[0], setup.gpus()[3]});
  CHECK(nics.sender(0, 5, 0).hca == nics.local_hca(0, 0));
  CHECK(nics.sender(0, 5, 0).gpu == 0);
  CHECK(nics.sender(0, 3, 0).gpu == 1);  // by position: GPU 3
}

TEST_CASE(
    "channels of one GPU of each host try the adapter of its number first, from 2.10 on, those of all GPUs the first") {
  const PairedHost host{.hcas = beside_gpus("connectx-7-ndr", 8)};
  for (const char* version : {"2.9", "2.10", "2.12", "2.18", "2.28"}) {
    const Setup setup(cluster_of(host, 2, std::string("{version: \"") + version + "\"}"));
    CHECK(nics_of(setup).search_order() == Numbers{0, 1, 2, 3, 4, 5, 6, 7});
    for (std::size_t gpu = 0; gpu < 8; ++gpu) {
      CAPTURE(version);
      CAPTURE(gpu);
      const HostNics nics(setup.context, {setup.gpus()[gpu]});
      const auto order = nics.search_order();
      CHECK(order.size() == 8);
      CHECK(order.front() == (std::string(version) == "2.9" ? 0 : gpu));
      CHECK(Numbers(order).size() == std::set<std::size_t>(order.begin(), order.end()).size());
    }
  }
}

TEST_CASE("PXN needs 2.12, NVLink, its switch, and an HCA below the PCIe switches of the GPU that hands over") {
  const PairedHost host{.hcas = beside_gpus("connectx-7-ndr", 8)};
  const auto hands_over = [](const PairedHost& one, const std::string& nccl) {
    const Setup setup(cluster_of(one, 2, nccl));
    const auto nics = nics_of(setup);
    const auto sender = nics.sender(0, 7, 0);
    CHECK((sender.gpu != 0) == (sender.hca != nics.local_hca(0, 0)));
    return sender.gpu != 0;
  };
  CHECK(hands_over(host, "{version: \"2.12\"}"));
  CHECK_FALSE(hands_over(host, "{version: \"2.11\"}"));
  CHECK_FALSE(hands_over(host, "{pxn: off}"));
  CHECK_FALSE(hands_over(host, "{p2p_pxn_level: 0}"));
  CHECK_FALSE(hands_over(host, "{p2p: off}"));
  auto without = host;
  without.has_nvswitch = false;
  CHECK_FALSE(hands_over(without, "{}"));
  auto on_root_ports = host;
  for (std::size_t h = 0; h < 8; ++h) on_root_ports.hcas[h].below = h < 4 ? "socket0" : "socket1";
  CHECK_FALSE(hands_over(on_root_ports, "{}"));
}

TEST_CASE("level 1: the counterpart's HCA, by the GPU itself where it is near and over NVLink where it is not") {
  const Setup setup(cluster_of({.hcas = beside_gpus("connectx-7-ndr", 8)}, 2, "{p2p_pxn_level: 1}"));
  const auto nics = nics_of(setup);
  CHECK(nics.sender(0, 1, 0).hca == 1);
  CHECK(nics.sender(0, 1, 0).gpu == 0);  // HCA 1 hangs below GPU 0's switch
  CHECK(nics.sender(0, 6, 0).hca == 6);
  CHECK(nics.sender(0, 6, 0).gpu == 6);
}

TEST_CASE("paths: one switch is PIX, others of the socket PHB, across sockets SYS, over NVLink PXN when sending") {
  const Setup setup(cluster_of({.hcas = beside_gpus("connectx-7-ndr", 8)}, 2));
  const auto nics = nics_of(setup);
  CHECK(nics.receiving_path(0, 1) == NicPath::pix);
  CHECK(nics.receiving_path(0, 2) == NicPath::phb);
  CHECK(nics.receiving_path(0, 4) == NicPath::sys);
  CHECK(nics.sending_path(0, 1) == NicPath::pix);
  CHECK(nics.sending_path(0, 2) == NicPath::pxn);
  CHECK(nics.sending_path(0, 4) == NicPath::pxn);
  CHECK(nics.ring_sender(0, 4) == 4);
  CHECK(nics.ring_sender(0, 1) == 0);
  CHECK(nics.slot_gb_per_s(0) == test::approx(48));  // gen5 x16: 16 x 240 / 80
  CHECK(nics.rate_gb_per_s(0) == test::approx(48));  // 50 GB/s in such a slot
}

TEST_CASE("between sockets NCCL counts 10, 22 or 40 GB/s on Intel by processor and release, 16 on AMD from 2.19 on") {
  const auto far_gb_per_s = [](const std::string& processor, const std::string& version) {
    PairedHost host{.gpus = 2, .hcas = {{"connectx-7-ndr", "sw3"}}, .processor = processor, .has_nvswitch = false};
    const Setup setup(cluster_of(host, 2, "{version: \"" + version + "\"}"));
    return nics_of(setup).path_gb_per_s(0, 0);
  };
  CHECK(far_gb_per_s("xeon-sapphirerapids", "2.28") == test::approx(22));
  CHECK(far_gb_per_s("xeon-sapphirerapids", "2.25") == test::approx(10));
  CHECK(far_gb_per_s("xeon-emeraldrapids", "2.28") == test::approx(40));
  CHECK(far_gb_per_s("xeon-skylake", "2.17") == test::approx(9));
  CHECK(far_gb_per_s("xeon-broadwell", "2.28") == test::approx(6));
  CHECK(far_gb_per_s("epyc-rome", "2.28") == test::approx(16));
  CHECK(far_gb_per_s("epyc-rome", "2.18") == test::approx(48));  // no limit: the slots
}

TEST_CASE("a processor's vendor and microarchitecture decide what NCCL counts, not its name") {
  const auto far_gb_per_s = [](const std::string& shipped) {
    std::ifstream in(std::string(FABRICAST_SOURCE_DIR) + "/models/catalogue/processors/" + shipped + ".yaml");
    std::string text{std::istreambuf_iterator<char>(in), {}};
    text.replace(text.find("name: " + shipped), 6 + shipped.size(), "name: our-cores");
    PairedHost host{.gpus = 2, .hcas = {{"connectx-7-ndr", "sw3"}}, .processor = "our-cores", .has_nvswitch = false};
    const Setup setup(cluster_of(host, 2, "{version: \"2.28\"}", "{benchmark: all_reduce_perf}",
                                 "single_switch: {switch: qm9700}", test::write_file("our-cores.yaml", text)));
    return nics_of(setup).path_gb_per_s(0, 0);
  };
  CHECK(far_gb_per_s("epyc-rome") == test::approx(16));
  CHECK(far_gb_per_s("xeon-broadwell") == test::approx(6));
  CHECK(far_gb_per_s("xeon-emeraldrapids") == test::approx(40));
}

TEST_CASE("adapters without RDMA are left out where one has it") {
  const Setup both(cluster_of({.gpus = 2, .hcas = {{"connectx-6-hdr", "sw0"}, {"ethernet-25g", "sw0"}}}, 2));
  CHECK(nics_of(both).hcas().size() == 1);
  CHECK(both.loaded->topology.device(nics_of(both).hcas()[0]).type == "connectx-6-hdr");
}

TEST_CASE("GPUs of a virtual machine count from 0 in each") {
  auto loaded = cluster_of({.hcas = beside_gpus("connectx-7-ndr", 8)}, 2);
  CHECK(nvml_index(loaded.topology, loaded.topology.devices(DeviceKind::gpu, 1)[5]) == 5);
  const auto split = test::shipped("allreduce-rail-optimized-512.yaml",
                                   {{"virtualization", "{mode: passthrough, hypervisor: kvm, vms_per_host: 2}"}});
  CHECK(nvml_index(split.topology, split.topology.devices(DeviceKind::gpu, 0)[3]) == 3);
  CHECK(nvml_index(split.topology, split.topology.devices(DeviceKind::gpu, 0)[4]) == 0);
  CHECK(nvml_index(split.topology, split.topology.devices(DeviceKind::gpu, 0)[7]) == 3);
}

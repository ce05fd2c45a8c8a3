// SPDX-License-Identifier: Apache-2.0
// Reading `virtualization:`: words, mappings, what a scenario replaces, and every fault with its place.
#include "tests/support/clusters.hpp"

#include "tests/support/approx.hpp"

using namespace fabricast;

namespace {

std::string topology_of(const std::string& virtualization) {
  return "schema: fabricast/topology/1\nname: t\nhosts:\n  - name: n\n    host: {processor: xeon-skylake, devices: "
         "[{name: gpu0, type: t4, below: socket0}, {name: hca0, type: connectx-5-edr, below: socket0}]}\n    "
         "virtualization: " +
         virtualization + "\n";
}

Virtualization read(const std::string& virtualization) {
  return test::topology(topology_of(virtualization)).topology.virtualization(0);
}

std::string faults(const std::string& virtualization) {
  const auto loaded = load_topology(test::write_file("faulty.yaml", topology_of(virtualization)));
  return loaded ? std::string() : test::shown(loaded.error());
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("one word sets the devices' modes, no word is bare metal") {
  CHECK_FALSE(read("bare-metal").is_virtual());
  const auto sr_iov = read("sr-iov");
  CHECK(sr_iov.gpu == GpuMode::passthrough);
  CHECK(sr_iov.nic == NicMode::sr_iov);
  CHECK(sr_iov.hypervisor == Hypervisor::esxi);
  CHECK(read("vgpu").gpu == GpuMode::vgpu);
  CHECK(read("tcp").nic == NicMode::vmxnet3);
  CHECK(read("{mode: tcp, hypervisor: kvm}").nic == NicMode::virtio);
  CHECK(read("remote-gpu").gpu == GpuMode::remote);
}

TEST_CASE("a mapping changes single settings and single devices") {
  const auto guest = read(
      "{mode: passthrough, version: \"6.7 U1\", vms_per_host: 2, vcpus: 16, pinning: off, memory_reservation: none, "
      "mmio: "
      "{use_64bit: on, size: 64 GiB}, acs: redirect, ats: off, guest_topology: injected, devices: [{name: hca0, mode: "
      "vmxnet3}], rate_limit: 10 Gb/s, mtu: 1500, profile: [t4-8q, t4-8q], needs: [ha]}");
  CHECK(guest.version == ReleaseNumber{6, 7, 1});
  CHECK(guest.vms_per_host == 2);
  CHECK(guest.vcpus == 16);
  CHECK_FALSE(guest.is_pinned);
  CHECK(guest.reserved_share == 0);
  CHECK(guest.mmio_size->value == std::int64_t{64} << 30);
  CHECK(guest.acs == AcsMode::redirect);
  CHECK_FALSE(guest.has_ats);
  CHECK(guest.guest_topology == GuestTopology::injected);
  CHECK(guest.nic_mode("hca0") == NicMode::vmxnet3);
  CHECK(guest.nic_mode("hca1") == NicMode::passthrough);
  CHECK(guest.rate_limit->bytes_per_s == test::approx(1.25e9));
  CHECK(guest.mtu == 1500);
  CHECK(guest.profiles.size() == 2);
  CHECK(guest.needs == std::vector<std::string>{"ha"});
}

TEST_CASE("releases are read as people write them and compare by update") {
  CHECK(release_from("6.7 U1") == ReleaseNumber{6, 7, 1});
  CHECK(release_from("6.7u3") == ReleaseNumber{6, 7, 3});
  CHECK(release_from("7.0") == ReleaseNumber{7, 0, 0});
  CHECK(release_from("7.0 Update 3") == ReleaseNumber{7, 0, 3});
  CHECK(release_from("7.0 U3f") == ReleaseNumber{7, 0, 3});
  CHECK_FALSE(release_from("7.0 U").has_value());
  CHECK_FALSE(release_from("7.0 f").has_value());
  CHECK_FALSE(release_from("7.0 U3fg").has_value());
  CHECK_FALSE(release_from("seven").has_value());
  CHECK_FALSE(release_from("6.7 Ux").has_value());
  CHECK(*release_from("6.7 U3") > *release_from("6.7"));
  CHECK(to_string(ReleaseNumber{6, 7, 1}) == "6.7 U1");
}

TEST_CASE("faults name the place, what was found and what to write") {
  CHECK(says(faults("pass-through"), "did you mean 'passthrough'?"));
  CHECK(says(faults("{mode: passthrough, version: six}"), "'version' must be a release, found 'six'"));
  CHECK(says(faults("{mode: passthrough, devices: [{name: hca1, mode: sr-iov}]}"), "the host has no device 'hca1'"));
  CHECK(says(faults("{mode: passthrough, devices: [{name: gpu0, mode: pvrdma}]}"),
             "'gpu0' is a GPU, which cannot be handed over by pvrdma"));
  CHECK(says(faults("{mode: passthrough, mtu: 100}"), "'mtu' must be 576 to 65536 bytes, found '100'"));
  CHECK(says(faults("{mode: bare-metal, vcpus: 4}"), "bare metal has no 'vcpus'"));
  CHECK(says(faults("{hypervisor: kvm}"), "'mode'"));
  CHECK(faults("{mode: bare-metal, acs: redirect}").empty());
}

TEST_CASE("no rate, no memory and no time of 0: each is refused once, with its place") {
  for (const auto* setting :
       {"rate_limit: 0 Gb/s", "memory: 0 B", "host_memory: 0 GiB", "gpu_memory: 0 B", "time_slice: 0 ms"}) {
    CAPTURE(setting);
    const std::string text(setting);
    const auto key = text.substr(0, text.find(':'));
    const auto said =
        faults("{mode: " + std::string(key == "gpu_memory" ? "remote-gpu" : "sr-iov") + ", " + text + "}");
    CHECK(says(said, "'" + key + "' is " + text.substr(text.find(": ") + 2)));
    CHECK(says(said, "give more than 0, or leave it out"));
  }
  auto vms = topology_of("{hypervisor: kvm}");
  vms += "    vms: [{name: a, count: 4, devices: {hca0: {vf: 1, rate_limit: 0 Gb/s}}}]\n";
  const auto loaded = load_topology(test::write_file("faulty.yaml", vms));
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().size() == 1);
  CHECK(says(test::shown(loaded.error()), "'rate_limit' is 0 Gb/s"));
}

TEST_CASE("a scenario's virtualization replaces that of every host group, and --set replaces the scenario's") {
  const auto scenario = [](const std::string& line, const std::vector<Setting>& settings) {
    return test::scenario(
               "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
               "    - {name: a, host: {processor: xeon-skylake, devices: [{name: hca0, type: connectx-5-edr, below: "
               "socket0}]}, virtualization: sr-iov}\n    - {name: b, host: {processor: xeon-skylake, devices: [{name: "
               "hca0, type: connectx-5-edr, below: socket0}]}}\n  fabric:\n    single_switch: {switch: sb7800}\n" +
                   line + "workload: {benchmark: osu_latency}\n",
               settings)
        .topology;
  };
  const auto as_written = scenario("", {});
  CHECK(as_written.virtualization(0).mode == VirtualMode::sr_iov);
  CHECK(as_written.virtualization(1).mode == VirtualMode::bare_metal);
  const auto replaced = scenario("virtualization: passthrough\n", {});
  CHECK(replaced.virtualization(0).mode == VirtualMode::passthrough);
  CHECK(replaced.virtualization(1).mode == VirtualMode::passthrough);
  const auto set = scenario("virtualization: passthrough\n", {{"virtualization", "{mode: tcp, mtu: 1500}"}});
  CHECK(set.virtualization(1).mode == VirtualMode::tcp);
  CHECK(set.virtualization(1).mtu == 1500);
}

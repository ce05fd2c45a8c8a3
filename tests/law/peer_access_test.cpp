// SPDX-License-Identifier: Apache-2.0
// A detour is never a short cut: without peer access, or without GPUDirect RDMA, nothing gets faster. Random hosts,
// sizes beside every threshold of the libraries, MPI, NCCL and plain copies.
#include <algorithm>
#include <set>

#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using test::Random;

namespace {

/// Eager limits, segments, staging chunks, GPUDirect limits and what lies around them.
const std::string k_sizes = [] {
  std::set<std::int64_t> sizes{1, 100, 1'000, 3'000'000, 64 << 20};
  for (const std::int64_t limit :
       {8'192, 8'256, 12'288, 16'384, 30'000, 32'767, 65'536, 131'072, 262'144, 524'288, 1'048'576, 4'194'304}) {
    for (const int offset : {-1, 0, 1}) sizes.insert(limit + offset);
  }
  std::string out;
  for (const auto size : sizes) out += (out.empty() ? "" : ", ") + std::to_string(size) + " B";
  return "[" + out + "]";
}();

struct Case {
  int hosts = 1;
  std::string host, fabric, workload, mpi;
  std::string parameters;  ///< of the topology

  /// `guest`: settings of a VM that has all GPUs and adapters, or nothing.
  [[nodiscard]] std::vector<Row> rows(const std::string& software, const std::string& guest = "") const {
    return test::run(test::scenario("schema: fabricast/scenario/1\nname: law\ntopology:\n  schema: "
                                    "fabricast/topology/1\n  name: law\n  hosts:\n    - {name: n, count: " +
                                    std::to_string(hosts) + ", host: {" + host + "}" + guest + "}\n" +
                                    (hosts > 1 ? "  fabric: {" + fabric + "}\n" : "") + parameters +
                                    "software: {mpi: " + mpi + (software.empty() ? "" : ", ") + software +
                                    "}\nworkload: {" + workload + ", sizes: " + k_sizes + "}\n"))
        .workloads[0]
        .rows;
  }
};

const std::vector<std::string> k_processors{
    "xeon-sandybridge", "xeon-ivybridge", "xeon-haswell", "xeon-broadwell", "xeon-skylake",       "xeon-icelake",
    "epyc-naples",      "epyc-rome",      "epyc-milan",   "epyc-genoa",     "xeon-sapphirerapids"};

std::string random_host(Random& random, int gpus) {
  const auto processor = random.pick(k_processors);
  const auto gpu = random.pick<std::string>({"p100-pcie-16", "v100-sxm2-16", "a100-pcie-40", "h100-sxm", "k80"});
  const auto hca = random.pick<std::string>({"connectx-4-edr", "connectx-5-edr", "connectx-6-hdr", "connectx-7-ndr"});
  const bool has_switch = random.next(2) == 0;
  const bool has_nvlinks = gpu.find("sxm") != std::string::npos && random.next(2) == 0;
  const auto slot = random.pick<std::string>({"gen3 x16", "gen3 x8", "gen4 x16"});
  std::string out = "processor: " + processor + ", devices: [";
  if (has_switch) out += "{name: sw, kind: pcie_switch, below: socket0, pcie: " + slot + "}, ";
  for (int g = 0; g < gpus; ++g) {
    const auto socket = "socket" + std::to_string(random.next(2));
    out += "{name: gpu" + std::to_string(g) + ", type: " + gpu +
           ", below: " + (has_switch && random.next(3) > 0 ? "sw" : socket) + "}, ";
  }
  out += "{name: hca0, type: " + hca + ", below: " + (has_switch ? "sw" : "socket0") + "}";
  if (has_nvlinks) out += ", {name: nvs, type: nvswitch-2}], nvlinks: [{from: gpus, to: nvs, links: 4}";
  return out + "]";
}

Case random_case(std::uint64_t seed, int hosts, const std::vector<std::string>& workloads) {
  Random random(seed);
  Case out;
  out.hosts = hosts;
  out.host = random_host(random, 2 + static_cast<int>(random.next(3)));
  out.fabric = "single_switch: {switch: qm9700}";
  out.workload = random.pick(workloads);
  out.mpi =
      random.pick<std::string>({"open-mpi-openib", "open-mpi-ucx", "mvapich2-gdr", "cray-mpich", "mpich", "intel-mpi"});
  return out;
}

/// Where the GPUs of a host hang.
std::multiset<std::string> places_of_gpus(const std::string& host) {
  std::multiset<std::string> places;
  for (std::size_t at = host.find("name: gpu"); at != host.npos; at = host.find("name: gpu", at + 1)) {
    const auto gpu = host.substr(at, host.find('}', at) - at);
    places.insert(gpu.substr(gpu.rfind(' ') + 1));
  }
  return places;
}

/// Whether some GPUs are as near to the HCA as can be and some are not: with GPUDirect RDMA NCCL's rings begin and end
/// at the near ones and pass the others between them; without it all are equally far, and the order may cross the
/// switch less often.
bool is_order_by_hca(const std::string& host) {
  const auto places = places_of_gpus(host);
  const auto near = places.count("sw");
  return near > 0 && near < places.size();
}

/// What of its time an exchange of all with all keeps at least without peers. Where only some GPUs are peers, their
/// copies take the links first, and a GPU that has no peer idles until the others send to it.
double least_of_exchange(const Case& one) {
  const auto places = places_of_gpus(one.host);
  if (places.count(*places.begin()) == places.size()) return 1;
  if (one.workload.find("alltoall") != std::string::npos) return 0.9;
  return one.workload.find("allgather") != std::string::npos ? 0.98 : 1;
}

/// Whether NCCL, whose tuner estimates by tables of its own and may choose what is slower, chose the same; MPI has no
/// channels.
bool is_same_choice(const Row& a, const Row& b) {
  return a.channels == 0 || (a.algorithm == b.algorithm && a.protocol == b.protocol && a.channels == b.channels);
}

/// ps of a row but for the lines of LL that a proxy checks: with GPUDirect RDMA the GPU near the HCA may send those of
/// all channels, which one core checks.
double ps_but_for_lines(const Row& row) {
  double ps = static_cast<double>(row.time.ps);
  for (const auto& term : row.terms)
    if (term.parameter == "nccl.line_check_bandwidth") ps -= static_cast<double>(term.time.ps);
  return ps;
}

/// `least`: the share of the other's time below which a row counts as faster.
void check_never_faster(const std::vector<Row>& without, const std::vector<Row>& with, double least = 1) {
  REQUIRE(without.size() == with.size());
  for (std::size_t i = 0; i < with.size(); ++i) {
    if (!is_same_choice(with[i], without[i])) continue;
    if (with[i].bottleneck == "lines that one proxy checks") continue;
    // UCX sends at once up to 256 KiB by a core that copies into the GPU: a pipeline of copy engines passes it.
    if (with[i].protocol == "eager gdr" && with[i].size >= Bytes{64 << 10} - Bytes{1}) continue;
    CAPTURE(with[i].size.value);
    CAPTURE(with[i].protocol);
    CAPTURE(without[i].protocol);
    CAPTURE(without[i].bottleneck);
    CAPTURE(with[i].bottleneck);
    CHECK(ps_but_for_lines(without[i]) >= least * ps_but_for_lines(with[i]));
  }
}

}  // namespace

TEST_CASE("losing peer access inside a host is never faster") {
  for (std::uint64_t seed = 0; seed < test::draws(120); ++seed) {
    CAPTURE(seed);
    const auto one =
        random_case(seed, 1,
                    {"benchmark: osu_latency, buffers: device, devices: [n.gpu0, n.gpu1]",
                     "benchmark: osu_bw, buffers: device, devices: [n.gpu0, n.gpu1]",
                     "benchmark: osu_bibw, buffers: device, devices: [n.gpu0, n.gpu1]",
                     "benchmark: osu_latency, buffers: [device, host], devices: [n.gpu0, n.memory0]",
                     "benchmark: osu_alltoall, buffers: device", "benchmark: osu_allgather, buffers: device",
                     "benchmark: osu_bcast, buffers: device", "benchmark: host_copies, gpus: 2, direction: to_peer",
                     "benchmark: host_copies, gpus: 2, direction: to_peer, bidirectional: on"});
    CAPTURE(one.host);
    CAPTURE(one.workload);
    CAPTURE(one.mpi);
    check_never_faster(one.rows("nccl: {p2p: off}"), one.rows("nccl: {p2p: on}"), least_of_exchange(one));
  }
}

TEST_CASE("losing peer access is never faster with NCCL's rings of Simple of 4 MiB and more, channel by channel") {
  for (std::uint64_t seed = 0; seed < test::draws(60); ++seed) {
    CAPTURE(seed);
    auto one =
        random_case(seed, 1,
                    {"benchmark: all_reduce_perf, algorithm: ring, protocol: simple",
                     "benchmark: all_gather_perf, protocol: simple", "benchmark: broadcast_perf, protocol: simple"});
    CAPTURE(one.host);
    CAPTURE(one.workload);
    auto without = one.rows("nccl: {p2p: off, version: \"2.18\"}");
    auto with = one.rows("nccl: {p2p: on, version: \"2.18\"}");
    for (std::size_t i = with.size(); i-- > 0;) {
      // Through root complexes peers are slower than host memory: NCCL has them there on AMD (from 2.23 on for two
      // GPUs only).
      const bool is_through_processor = with[i].bottleneck.find("peer") != std::string::npos;
      if (with[i].channels == without[i].channels && with[i].size.value >= 4'194'303 && !is_through_processor) continue;
      with.erase(with.begin() + static_cast<std::ptrdiff_t>(i));
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    }
    check_never_faster(without, with);
  }
}

namespace {

/// Old processors forward peer requests slower than a network, and so do root complexes that translate them.
std::string free_processors() {
  std::string out = "  parameters:\n";
  for (const auto& processor : k_processors) {
    for (const auto* field : {"p2p_read", "p2p_write", "p2p_cross_read", "p2p_cross_write", "translated_peer"})
      out += "    " + processor + "." + field + "_bandwidth: {value: 1 TB/s, source: law}\n";
  }
  return out;
}

/// The group's key for VMs whose devices reach each other, or not: the same VM but for what closes the gate.
std::string guest_of(Random& random, bool is_open) {
  const auto nic = random.pick<std::string>({"passthrough", "sr-iov"});
  if (random.next(2) == 0)
    return ", virtualization: {mode: " + nic +
           ", hypervisor: esxi, guest_topology: injected, allow_p2p: " + (is_open ? "on}" : "off}");
  return ", virtualization: {mode: " + nic + ", hypervisor: kvm, guest_topology: " + (is_open ? "shown}" : "hidden}");
}

}  // namespace

TEST_CASE("in a VM copies staged by the host are never faster than peer copies on the same slots") {
  for (std::uint64_t seed = 0; seed < test::draws(100); ++seed) {
    CAPTURE(seed);
    auto one = random_case(
        1000 + seed, 1,
        {"benchmark: osu_latency, buffers: device, devices: [n.gpu0, n.gpu1]",
         "benchmark: osu_bw, buffers: device, devices: [n.gpu0, n.gpu1]",
         "benchmark: osu_bibw, buffers: device, devices: [n.gpu0, n.gpu1]", "benchmark: osu_alltoall, buffers: device",
         "benchmark: osu_allgather, buffers: device", "benchmark: host_copies, gpus: 2, direction: to_peer",
         "benchmark: host_copies, gpus: 2, direction: to_peer, bidirectional: on"});
    one.parameters = free_processors();
    CAPTURE(one.host);
    CAPTURE(one.workload);
    CAPTURE(one.mpi);
    Random closed(seed);
    Random open(seed);
    check_never_faster(one.rows("", guest_of(closed, false)), one.rows("", guest_of(open, true)),
                       least_of_exchange(one));
  }
}

TEST_CASE("between VMs staging by the host is never faster than GPUDirect RDMA on the same slots") {
  for (std::uint64_t seed = 0; seed < test::draws(80); ++seed) {
    CAPTURE(seed);
    auto one = random_case(2000 + seed, 2,
                           {"benchmark: osu_latency, buffers: device", "benchmark: osu_bw, buffers: device",
                            "benchmark: osu_bibw, buffers: device", "benchmark: osu_allgather, buffers: device",
                            "benchmark: sendrecv_perf", "benchmark: all_reduce_perf, algorithm: ring, protocol: simple",
                            "benchmark: all_gather_perf, protocol: simple"});
    one.parameters = free_processors();
    CAPTURE(one.host);
    CAPTURE(one.workload);
    CAPTURE(one.mpi);
    const std::string settings = ", virtualization: {mode: sr-iov, guest_topology: injected, allow_p2p: ";
    // Where neither way reaches the adapter directly, NCCL differs in its hop inside the host alone. What a thread
    // block does per byte there counts as bytes of the ring even where the network limits it, and shared memory's share
    // (`nccl.shm_local_work` 0.40) is fitted a little below Ampere's (0.41).
    // PXN sends by the GPU near the HCA, one hop more.
    const bool is_of_nccl = one.workload.find("perf") != std::string::npos;
    const double least = one.workload.find("sendrecv_perf") != std::string::npos ? 0.95 : is_of_nccl ? 0.997 : 1;
    check_never_faster(one.rows("", settings + "off}"), one.rows("", settings + "on}"),
                       std::min(least, least_of_exchange(one)));
  }
}

TEST_CASE("losing GPUDirect RDMA is never faster where the processor passes peer traffic on freely") {
  // Libraries limit GPUDirect for that reason: without those limits nothing may get faster.
  for (std::uint64_t seed = 0; seed < test::draws(120); ++seed) {
    CAPTURE(seed);
    auto one = random_case(seed, 2,
                           {"benchmark: osu_latency, buffers: device", "benchmark: osu_bw, buffers: device",
                            "benchmark: osu_bibw, buffers: device", "benchmark: osu_allgather, buffers: device",
                            "benchmark: sendrecv_perf", "benchmark: all_reduce_perf, algorithm: ring"});
    one.parameters = free_processors();
    CAPTURE(one.host);
    CAPTURE(one.workload);
    CAPTURE(one.mpi);
    if (one.workload.find("all_reduce_perf") != std::string::npos && is_order_by_hca(one.host)) continue;
    // PXN sends by the GPU near the HCA, one hop more.
    const bool has_pxn = one.workload.find("sendrecv_perf") != std::string::npos;
    check_never_faster(one.rows("gpudirect_rdma: off"), one.rows("gpudirect_rdma: on"),
                       std::min(has_pxn ? 0.95 : 1, least_of_exchange(one)));
  }
}

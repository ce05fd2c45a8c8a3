// SPDX-License-Identifier: Apache-2.0
// The key tables of all file kinds. A new key is one line here.
#include <map>

#include "base/assert.hpp"
#include "config/schema.hpp"
#include "fabricast/scenario.hpp"

namespace fabricast::config {

namespace {

using T = Schema::Type;

SchemaPtr make(Schema schema) { return std::make_shared<const Schema>(std::move(schema)); }
SchemaPtr text() { return make({.type = T::text}); }
SchemaPtr flag() { return make({.type = T::flag}); }
SchemaPtr slot() { return make({.type = T::slot}); }
SchemaPtr length() { return make({.type = T::length}); }
SchemaPtr integer(double low, double high) { return make({.type = T::integer, .low = low, .high = high}); }
SchemaPtr number(double low, double high) { return make({.type = T::number, .low = low, .high = high}); }
SchemaPtr quantity(Dimension dimension) { return make({.type = T::quantity, .dimension = dimension}); }
SchemaPtr size() { return quantity(Dimension::bytes); }
SchemaPtr choice(std::vector<std::string> names) { return make({.type = T::choice, .choices = std::move(names)}); }
SchemaPtr list(SchemaPtr items) { return make({.type = T::list, .items = std::move(items)}); }
SchemaPtr any_of(std::vector<SchemaPtr> all) { return make({.type = T::any_of, .alternatives = std::move(all)}); }
SchemaPtr mapping(std::string what, std::vector<Field> fields, std::vector<std::vector<std::string>> exactly_one = {}) {
  return make({.type = T::mapping,
               .fields = std::move(fields),
               .exactly_one = std::move(exactly_one),
               .what = std::move(what)});
}
SchemaPtr free_mapping(SchemaPtr items) { return make({.type = T::free_mapping, .items = std::move(items)}); }
SchemaPtr mtu() { return make({.type = T::number_or_quantity}); }

std::vector<Field> value_fields() {
  const auto value = make({.type = T::number_or_quantity});
  return {{"value", value, "the value, with its unit unless it is a count or a ratio", true},
          {"low", value, "lower end of the 80 % interval"},
          {"high", value, "upper end of the 80 % interval"},
          {"source", text(), "page, paper, log or fit the value comes from", true},
          {"confidence", choice({"high", "medium", "low", "assumed", "fitted"}),
           "high: read in the source; medium: second-hand or one measurement; low: recall; assumed: not published; "
           "fitted: from measurements"}};
}

SchemaPtr parameter_map() { return free_mapping(mapping("a parameter", value_fields())); }

// ---- topology -----------------------------------------------------------------------------------------------------

SchemaPtr device_list() {
  return list(mapping(
      "a device",
      {{"name", text(), "unique in the host, e.g. gpu0", true},
       {"kind", choice({"gpu", "hca", "pcie_switch", "root_complex", "nvswitch"}), "needed for devices without a type"},
       {"type", text(), "catalogue name, e.g. v100-sxm2-16"},
       {"below", text(), "what it is plugged into: socketN, a root complex or a PCIe switch"},
       {"pcie", slot(), "slot above the device: generation and lanes; default: the device's own"},
       {"trained", slot(), "what the link came up with, when that is less than the slot"}}));
}

SchemaPtr nvlink_list() {
  return list(mapping("an NVLink", {{"from", text(), "a GPU, or `gpus` for every GPU of the host", true},
                                    {"to", text(), "a GPU or an NVSwitch", true},
                                    {"links", integer(1, 36), "number of NVLinks between the two"}}));
}

SchemaPtr host_body(const std::string& what) {
  return mapping(what, {{"processor", text(), "catalogue name of the processor in every socket", true},
                        {"sockets", integer(1, 8), "number of sockets; default 2"},
                        {"devices", device_list(), "GPUs, HCAs, PCIe switches, root complexes and NVSwitches"},
                        {"nvlinks", nvlink_list(), "NVLinks between GPUs, or to NVSwitches"}});
}

SchemaPtr switch_list() {
  return list(mapping("a switch", {{"name", text(), "unique name", true}, {"type", text(), "catalogue name", true}}));
}
SchemaPtr cable_list() {
  return list(
      mapping("a cable", {{"from", text(), "host.hca or a switch", true},
                          {"to", text(), "host.hca or a switch", true},
                          {"count", integer(1, 1024), "parallel cables; default 1"},
                          {"rate", quantity(Dimension::bandwidth), "per cable and direction; default: the slower end"},
                          {"length", length(), "default 3 m"}}));
}

SchemaPtr dcqcn() {
  return mapping(
      "the DCQCN settings",
      {{"g", number(1e-6, 1), "weight of a new mark in alpha"},
       {"initial_alpha", number(0, 1), "alpha of a new flow"},
       {"alpha_interval", quantity(Dimension::time), "alpha decays when no CNP came for so long"},
       {"decrease_interval", quantity(Dimension::time), "least time between two rate cuts"},
       {"increase_interval", quantity(Dimension::time), "timer of rate increases"},
       {"byte_counter", size(), "bytes sent per byte-counter increase"},
       {"fast_recovery", integer(1, 1000), "increases before additive increase starts"},
       {"clamp_target", flag(), "every cut lowers the target rate too; default: only the first of a series"},
       {"additive_increase", quantity(Dimension::bandwidth), "rate step of additive increase"},
       {"hyper_increase", quantity(Dimension::bandwidth), "rate step of hyper increase"},
       {"minimum_rate", quantity(Dimension::bandwidth), "a flow is never slower"},
       {"cnp_interval", quantity(Dimension::time), "least time between two CNPs of a receiver for one flow"}});
}

SchemaPtr lossless() {
  const auto ecn = mapping("the ECN settings", {{"min", size(), "marking starts at this queue"},
                                                {"max", size(), "above it every packet is marked"},
                                                {"probability", number(0, 1), "share marked at `max`; default 1"}});
  return mapping(
      "the lossless settings",
      {{"preset", text(), "ASIC of the catalogue: spectrum-1 to -4, trident-2, tomahawk, htsim-like, hpcc-ns3-like"},
       {"flow_control", choice({"pfc", "credits", "drop"}), "default: credits for InfiniBand switches, else pfc"},
       {"trust", choice({"dscp", "pcp"}), "what gives a packet its priority: layer 3 or the VLAN tag; default dscp"},
       {"pfc", list(integer(0, 7)), "lossless priorities; default [3]"},
       {"headroom", make({.type = T::size_or_auto}),
        "bytes per port and lossless priority behind XOFF, or auto: the vendor's formula; default: preset, else auto"},
       {"xoff", size(), "static threshold of a port and priority, instead of alpha"},
       {"xon", size(), "a static threshold's port resumes below it"},
       {"resume_offset", size(), "resume so far below a dynamic threshold"},
       {"alpha", number(1e-4, 1024), "dynamic threshold = alpha x free shared memory"},
       {"reserved", size(), "per port and priority"},
       {"shared_buffer", size(), "lossless pool; default: pool_share of the packet memory"},
       {"pool_share", number(0, 1), "share of the packet memory in the lossless pool; default 0.5"},
       {"cell", size(), "memory is given out in cells"},
       {"port_mtu", size(), "largest frame of any class; default 9100 B"},
       {"lossless_mtu", size(), "largest lossless frame in the headroom formula; default 1500 B"},
       {"pause_time", quantity(Dimension::time), "how long one PAUSE stops the peer; default 336 us"},
       {"weights", free_mapping(make({.type = T::weight})),
        "share of each priority 0 to 7, or strict; default: the CNP priority strict, the others equal"},
       {"ecn", any_of({flag(), ecn}), "marking: off, or thresholds; default 150 kB to 1500 kB with pfc"},
       {"cnp_priority", integer(0, 7), "priority of congestion notifications; default 6"},
       {"virtual_lanes", integer(1, 15), "InfiniBand data lanes; default 1"},
       {"vl_buffer", size(), "input buffer of one lane of a port; default 64 KiB"},
       {"credit_update", quantity(Dimension::time), "least time between credit updates; default 256 ns"},
       {"dcqcn", dcqcn(), "rate control of the HCAs; default: the HCA's"}});
}

SchemaPtr fabric_kind(const std::string& what, std::vector<Field> own) {
  std::vector<Field> fields{{"switch", text(), "catalogue name of the switches", true},
                            {"rate", quantity(Dimension::bandwidth), "per port; default: the slower of HCA and switch"},
                            {"hop_latency", quantity(Dimension::time), "per switch; default: the switch type's"},
                            {"cable", length(), "length of every cable; default 3 m"},
                            {"switch_cable", length(), "length of cables between switches; default: `cable`"},
                            {"routing", choice({"minimal", "dimension_order", "up_down"}),
                             "default: dimension_order on a torus, minimal elsewhere"},
                            {"lossless", lossless(), "flow control, buffers, marking and congestion control"},
                            {"mtu", mtu(), "payload bytes per packet; default 4096"}};
  fields.insert(fields.end(), own.begin(), own.end());
  fields.push_back({"switches", switch_list(), "further switches by hand"});
  fields.push_back({"cables", cable_list(), "further cables by hand"});
  return mapping(what, std::move(fields));
}

SchemaPtr fabric() {
  const auto over = Field{"oversubscription", number(1, 64), "capacity down / capacity up of a leaf; default 1"};
  const auto ports = Field{"leaf_ports", integer(2, 4096), "ports of a leaf switch; default: the switch type's"};
  const auto listed =
      mapping("a fabric list", {{"switches", switch_list(), "all switches"},
                                {"cables", cable_list(), "all cables", true},
                                {"mtu", mtu(), "payload bytes per packet; default 4096"},
                                {"routing", choice({"minimal", "up_down"}), "default minimal"},
                                {"lossless", lossless(), "flow control, buffers, marking and congestion control"},
                                {"hop_latency", quantity(Dimension::time), "per switch; default: the switch type's"}});
  return mapping(
      "the fabric",
      {{"single_switch", fabric_kind("a single switch", {ports}), "one switch for all HCAs"},
       {"leaf_spine",
        fabric_kind(
            "a leaf-spine fabric",
            {over,
             ports,
             {"spines", integer(1, 4096), "number of spine switches; default: as many as the leaves' ports up fill"}}),
        "two tiers"},
       {"fat_tree", fabric_kind("a fat tree", {over, ports, {"tiers", integer(2, 3), "2 or 3; default 2"}}),
        "folded Clos"},
       {"rail_optimized",
        fabric_kind("a rail-optimized fabric",
                    {over,
                     ports,
                     {"rails", integer(1, 64), "HCA i of every host goes to rail i; default: HCAs per host"},
                     {"spines", integer(1, 4096), "spines above the rails"}}),
        "one leaf group per rail"},
       {"dragonfly",
        fabric_kind("a dragonfly", {{"groups", integer(1, 1024), "number of groups; default: enough"},
                                    {"routers_per_group", integer(1, 1024), "fully connected inside a group", true},
                                    {"hosts_per_router", integer(1, 1024), "HCAs per router", true},
                                    {"global_links", integer(1, 64), "links to other groups per router; default 1"}}),
        "groups of routers, minimal routing"},
       {"torus", fabric_kind("a torus", {{"dimensions", list(integer(1, 1024)), "routers per dimension", true}}),
        "dimension-order routing"},
       {"list", listed, "switches and cables one by one"}},
      {{"single_switch", "leaf_spine", "fat_tree", "rail_optimized", "dragonfly", "torus", "list"}});
}

SchemaPtr topology() {
  const auto group = mapping("a host group",
                             {{"name", text(), "hosts are called name0, name1, ...; just name when count is 1", true},
                              {"count", integer(1, 1'000'000), "number of equal hosts; default 1"},
                              {"type", text(), "catalogue name of the host"},
                              {"host", host_body("a host"), "the host written out, instead of a type"},
                              {"processor", text(), "replaces the processor of the type"},
                              {"sockets", integer(1, 8), "replaces the number of sockets"},
                              {"devices", device_list(), "devices to add, or to change by name"},
                              {"nvlinks", nvlink_list(), "NVLinks to add"},
                              {"remove", list(text()), "names of devices to take out"}},
                             {{"type", "host"}});
  return mapping("a topology", {{"schema", choice({"fabricast/topology/1"}), "file kind and version", true},
                                {"name", text(), "name of the cluster", true},
                                {"description", text(), "one line"},
                                {"hosts", list(group), "host groups", true},
                                {"fabric", fabric(), "the network between hosts; leave out for one host"},
                                {"devices", list(text()), "your own device files, relative to this file"},
                                {"parameters", parameter_map(), "parameter values that replace the shipped ones"}});
}

// ---- scenario -----------------------------------------------------------------------------------------------------

SchemaPtr flow_list() {
  return list(mapping("a flow", {{"name", text(), "default: from -> to"},
                                 {"from", text(), "a host, or host.hcaN", true},
                                 {"to", text(), "a host, or host.hcaN", true},
                                 {"bytes", size(), "default: the size of the row"},
                                 {"start", quantity(Dimension::time), "default 0 s"},
                                 {"priority", integer(0, 7), "default: the workload's"}}));
}

SchemaPtr transport() {
  return mapping(
      "the transport",
      {{"verb", choice({"write", "send", "read"}), "RDMA operation; default write"},
       {"congestion_control", choice({"auto", "none", "dcqcn"}), "default auto: dcqcn where PFC switches mark"},
       {"routing", choice({"ecmp", "spray", "adaptive"}),
        "per flow by hash, per packet in turn, or per packet to the shortest queue; default ecmp"},
       {"priority", integer(0, 7), "default: the fabric's first lossless priority, lane 0 with credits"},
       {"window", size(), "unacknowledged bytes per queue pair; default: no limit"}});
}

SchemaPtr workload() {
  const auto place = choice({"host", "device"});
  const auto sizes =
      any_of({list(size()), mapping("a size range", {{"from", size(), "first size", true},
                                                     {"to", size(), "last size", true},
                                                     {"factor", integer(2, 1024), "step factor; default 2"}})});
  return mapping(
      "a workload",
      {{"name", text(), "default: the benchmark's name"},
       {"benchmark", choice(benchmark_names()), "program whose table is forecast", true},
       {"gpus", integer(1, 1'000'000), "GPUs that take part, in host order; default: all"},
       {"ranks", integer(1, 1'000'000), "MPI ranks; default: one per GPU"},
       {"ranks_per_host", integer(1, 1024), "default: GPUs of a host"},
       {"devices", list(text()), "devices by name (host.gpuN) instead of a count"},
       {"sizes", sizes, "message sizes; default: the benchmark's own sweep"},
       {"buffers", any_of({place, list(place)}),
        "host or device, or one for each side; default device for nccl-tests, host elsewhere"},
       {"algorithm",
        choice({"auto", "ring", "tree", "nvls", "nvls_tree", "recursive_doubling", "rabenseifner", "binomial",
                "scatter_allgather", "bruck", "pairwise", "linear", "dissemination"}),
        "default auto: the library's choice"},
       {"protocol", choice({"auto", "ll", "ll128", "simple"}), "NCCL protocol; default auto"},
       {"channels", integer(1, 64), "NCCL channels; default: NCCL's choice"},
       {"launch", choice({"one_thread", "thread_per_gpu", "process_per_gpu", "graph"}),
        "how nccl-tests starts operations; default process_per_gpu"},
       {"window", integer(1, 100000), "messages in flight of bandwidth tests; default 64 (OSU), 128 (perftest)"},
       {"pairs", integer(1, 4096), "pairs of osu_multi_lat and osu_mbw_mr; default 1"},
       {"queue_pairs", integer(1, 4096), "connections per pair (perftest -q); default 1"},
       {"bidirectional", flag(), "perftest -b; default off"},
       {"root", integer(0, 1'000'000), "root rank; default 0"},
       {"start", quantity(Dimension::time), "when the job starts beside others; default 0 s"},
       {"pattern", choice({"flows", "incast", "permutation", "parking_lot", "victim", "ring_all_reduce"}),
        "traffic: which hosts send to which; default flows"},
       {"senders", integer(1, 1'000'000), "traffic: senders of incast (default all) and behind the victim's trunk"},
       {"local_senders", integer(1, 1'000'000),
        "traffic: senders of the victim pattern beside the receiver; default 1"},
       {"flows", flow_list(), "traffic: flows one by one"},
       {"transport", transport(), "verb, congestion control, routing and priority; packet engine only"}});
}

SchemaPtr scenario() {
  const auto nccl =
      mapping("the NCCL settings", {{"version", text(), "major.minor[.patch]; default 2.28"},
                                    {"p2p", flag(), "peer-to-peer between GPUs (NCCL_P2P_DISABLE=0); default on"},
                                    {"shm", flag(), "shared memory (NCCL_SHM_DISABLE=0); default on"},
                                    {"nvls", flag(), "NVLink SHARP; default off"}});
  const auto software =
      mapping("the software",
              {{"mpi", choice({"open-mpi-openib", "open-mpi-ucx", "open-mpi-ofi", "mvapich2-gdr", "cray-mpich"}),
                "MPI profile; default open-mpi-ucx"},
               {"gpudirect_limit", size(), "largest message sent by GPUDirect RDMA; default: the profile's"},
               {"eager_limit", size(), "default: the profile's"},
               {"staging_chunk", size(), "chunk of copies through host memory; default: the profile's"},
               {"gpudirect_rdma", flag(), "default on"},
               {"nv_peer_mem", choice({"loaded", "not loaded"}), "kernel module of GPUDirect RDMA; default loaded"},
               {"gdrcopy", flag(), "default on"},
               {"nccl", nccl, "NCCL version and switches"},
               {"transport", choice({"auto", "rdma", "tcp"}), "default auto"}});
  const auto one = workload();
  return mapping("a scenario",
                 {{"schema", choice({"fabricast/scenario/1"}), "file kind and version", true},
                  {"name", text(), "name of the scenario", true},
                  {"description", text(), "one line"},
                  {"topology", any_of({text(), topology()}),
                   "topology file, relative to this file, or a topology written out", true},
                  {"software", software, "versions and switches of the software"},
                  {"parameters", list(text()), "parameter files, relative to this file"},
                  {"workload", one, "the benchmark to forecast"},
                  {"workloads", list(one), "several at once"}},
                 {{"workload", "workloads"}});
}

// ---- devices and parameters ---------------------------------------------------------------------------------------

SchemaPtr device() {
  auto values = value_fields();
  return mapping("a device file",
                 {{"schema", choice({"fabricast/device/1"}), "file kind and version", true},
                  {"name", text(), "name by which topologies use it", true},
                  {"kind", choice(device_kinds()), "what it is", true},
                  {"description", text(), "one line"},
                  {"source", text(), "where a host's description comes from"},
                  {"attributes", free_mapping(text()), "words rather than numbers: architecture, vendor, protocol"},
                  {"values", free_mapping(mapping("a value", std::move(values))), "data-sheet values"},
                  {"host", host_body("a host"), "devices of a host"}});
}

SchemaPtr parameters() {
  return mapping("a parameter file", {{"schema", choice({"fabricast/parameters/1"}), "file kind and version", true},
                                      {"name", text(), "name of the set"},
                                      {"description", text(), "one line"},
                                      {"parameters", parameter_map(), "values by name", true}});
}

constexpr auto k_bytes = Dimension::bytes;
constexpr auto k_time = Dimension::time;
constexpr auto k_rate = Dimension::bandwidth;
constexpr auto k_number = Dimension::number;

}  // namespace

const std::vector<DeviceField>& device_fields(const std::string& kind) {
  static const std::map<std::string, std::vector<DeviceField>> all{
      {"gpu",
       {{"memory", k_bytes, "device memory"},
        {"memory_bandwidth", k_rate, "of the device memory"},
        {"compute_capability", k_number, "10 x major + minor"},
        {"sms", k_number, "streaming multiprocessors"},
        {"fp32_tflops", k_number, "peak"},
        {"fp64_tflops", k_number, "peak"},
        {"fp16_tflops", k_number, "peak without tensor cores"},
        {"tensor_tflops", k_number, "peak of tensor cores, dense"},
        {"pcie_generation", k_number, "of the host link"},
        {"pcie_width", k_number, "lanes"},
        {"nvlink_links", k_number, "NVLinks of one GPU"},
        {"nvlink_link_bandwidth", k_rate, "per link and direction"},
        {"nvlink_efficiency", k_number, "share a large peer copy reaches"},
        {"nvlink_latency", k_time, "of one link"},
        {"copy_engines", k_number, "usable at once"},
        {"bar1", k_bytes, "aperture"},
        {"tdp_watts", k_number, "power"},
        {"host_copy_efficiency", k_number, "share of the host link a pinned copy reaches"}}},
      {"hca",
       {{"rate", k_rate, "data rate of one port"},
        {"ports", k_number, "ports in use"},
        {"pcie_generation", k_number, "of the host link"},
        {"pcie_width", k_number, "lanes"},
        {"latency", k_time, "one way, sending and receiving side together"},
        {"message_rate", k_number, "messages per second"},
        {"mtu", k_number, "largest payload of a packet, bytes"},
        {"packet_header", k_number, "bytes around the payload"},
        {"payload_efficiency", k_number,
         "share of the data rate that large messages were seen to reach; default: packet headers only"},
        {"rdma", k_number, "1 with RDMA, 0 for TCP only"},
        {"dcqcn_g", k_number, "weight of a new mark in alpha"},
        {"dcqcn_initial_alpha", k_number, "alpha of a new flow"},
        {"dcqcn_alpha_interval", k_time, "alpha decays when no CNP came for so long"},
        {"dcqcn_decrease_interval", k_time, "least time between two rate cuts"},
        {"dcqcn_increase_interval", k_time, "timer of rate increases"},
        {"dcqcn_byte_counter", k_bytes, "bytes sent per byte-counter increase"},
        {"dcqcn_fast_recovery", k_number, "increases before additive increase starts"},
        {"dcqcn_clamp_target", k_number, "1: every cut lowers the target rate too"},
        {"dcqcn_additive_increase", k_rate, "rate step of additive increase"},
        {"dcqcn_hyper_increase", k_rate, "rate step of hyper increase"},
        {"dcqcn_minimum_rate", k_rate, "a flow is never slower"},
        {"dcqcn_cnp_interval", k_time, "least time between two CNPs of a receiver for one flow"}}},
      {"network_switch",
       {{"ports", k_number, "ports"},
        {"rate", k_rate, "per port"},
        {"latency", k_time, "port to port"},
        {"buffer", k_bytes, "packet memory"},
        {"vl_buffer", k_bytes, "InfiniBand input buffer of one virtual lane of a port"},
        {"credit_update", k_time, "InfiniBand: least time between two credit updates"}}},
      {"switch_asic",
       {{"buffer", k_bytes, "packet memory that one port can use"},
        {"cell", k_bytes, "memory is given out in cells"},
        {"pool_share", k_number, "share of the memory in the lossless pool"},
        {"alpha", k_number, "dynamic threshold = alpha x free shared memory"},
        {"reserved", k_bytes, "per port and priority"},
        {"resume_offset", k_bytes, "resume so far below the dynamic threshold"},
        {"xoff", k_bytes, "static threshold instead of alpha; 0 = none"},
        {"xon", k_bytes, "resume below it, static thresholds"},
        {"headroom", k_bytes, "per port and lossless priority; 0 = the vendor's formula"},
        {"headroom_delays", k_number, "headroom = this x rate x cable delay; 0 = not so"},
        {"port_mtu", k_bytes, "largest frame of any class"},
        {"lossless_mtu", k_bytes, "largest lossless frame in the headroom formula"},
        {"mac_phy", k_bytes, "data inside MAC and PHY of both ends"},
        {"peer_response", k_bytes, "what the peer sends until it obeys a PAUSE"},
        {"pipeline", k_bytes, "what the switch takes in before it can resume"},
        {"pause_time", k_time, "how long one PAUSE stops the peer"},
        {"ecn_min", k_bytes, "marking starts at this queue"},
        {"ecn_max", k_bytes, "above it every packet is marked"},
        {"ecn_probability", k_number, "share marked at ecn_max"},
        {"ecn_reference_rate", k_rate, "thresholds are for this port rate and grow with it; 0 = fixed"},
        {"dcqcn_g", k_number, "weight of a new mark in alpha"},
        {"dcqcn_initial_alpha", k_number, "alpha of a new flow"},
        {"dcqcn_alpha_interval", k_time, "alpha decays when no CNP came for so long"},
        {"dcqcn_decrease_interval", k_time, "least time between two rate cuts"},
        {"dcqcn_increase_interval", k_time, "timer of rate increases"},
        {"dcqcn_byte_counter", k_bytes, "bytes sent per byte-counter increase"},
        {"dcqcn_fast_recovery", k_number, "increases before additive increase starts"},
        {"dcqcn_clamp_target", k_number, "1: every cut lowers the target rate too"},
        {"dcqcn_additive_increase", k_rate, "rate step of additive increase"},
        {"dcqcn_hyper_increase", k_rate, "rate step of hyper increase"},
        {"dcqcn_minimum_rate", k_rate, "a flow is never slower"},
        {"dcqcn_cnp_interval", k_time, "least time between two CNPs of a receiver for one flow"}}},
      {"nvswitch",
       {{"ports", k_number, "NVLink ports"},
        {"port_bandwidth", k_rate, "per port and direction"},
        {"latency", k_time, "port to port"}}},
      {"processor",
       {{"cores", k_number, "per socket"},
        {"memory_bandwidth", k_rate, "sustained, per socket"},
        {"memory_latency", k_time, "from a core"},
        {"socket_bandwidth", k_rate, "between two sockets, per direction"},
        {"socket_latency", k_time, "extra of the other socket, one way"},
        {"pcie_generation", k_number, "of the slots"},
        {"root_complex_bandwidth", k_rate, "one root complex to the mesh, per direction"},
        {"root_complex_latency", k_time, "one pass"},
        {"p2p_read_bandwidth", k_rate, "peer reads through the processor"},
        {"p2p_write_bandwidth", k_rate, "peer writes through the processor"},
        {"p2p_cross_read_bandwidth", k_rate, "peer reads across sockets"},
        {"p2p_cross_write_bandwidth", k_rate, "peer writes across sockets"},
        {"max_payload", k_number, "PCIe payload per packet, bytes"},
        {"launch_interval", k_time, "one kernel launch of one thread"}}},
      {"host", {}},
  };
  const auto it = all.find(kind);
  FABRICAST_ASSERT(it != all.end(), "device kind '{}'", kind);
  return it->second;
}

const std::vector<std::string>& device_kinds() {
  static const std::vector<std::string> kinds{"gpu",       "hca", "network_switch", "switch_asic", "nvswitch",
                                              "processor", "host"};
  return kinds;
}

const Schema& schema_of(const std::string& file_kind) {
  static const std::map<std::string, SchemaPtr> all{
      {"topology", topology()}, {"scenario", scenario()}, {"device", device()}, {"parameters", parameters()}};
  const auto it = all.find(file_kind);
  FABRICAST_ASSERT(it != all.end(), "file kind '{}'", file_kind);
  return *it->second;
}

}  // namespace fabricast::config

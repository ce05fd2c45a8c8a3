// SPDX-License-Identifier: Apache-2.0
// The key tables of all file kinds. A new key is one line here.
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "config/lossless_schema.hpp"
#include "config/nccl_schema.hpp"
#include "config/network.hpp"
#include "config/plan.hpp"
#include "config/schema.hpp"
#include "config/schema_parts.hpp"
#include "config/sharing.hpp"
#include "config/training.hpp"
#include "config/virtualization.hpp"
#include "fabricast/scenario.hpp"

namespace fabricast::config {

namespace {

/// GPUs, ranks and hosts: 1,048,576 and its double.
constexpr std::int64_t k_most_ranks = std::int64_t{1} << 21;

using T = Schema::Type;
using namespace parts;

std::vector<Field> value_fields() {
  const auto value = make({.type = T::number_or_quantity});
  return {{"value", value, "the value, with its unit unless it is a count or a ratio", true},
          {"low", value, "lower end of the 80 % interval"},
          {"high", value, "upper end of the 80 % interval"},
          {"source", text(), "page, paper, log or fit the value comes from", true},
          {"confidence", choice({"high", "medium", "low", "assumed", "fitted", "read_off"}),
           "high: read in the source; medium: second-hand or one measurement; low: recall; assumed: not published; "
           "fitted: from measurements by a fit; read_off: taken from one system's log"}};
}

SchemaPtr parameter_map() {
  return make({.type = T::free_mapping, .items = mapping("a parameter", value_fields()), .has_parameters = true});
}

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
                        {"sockets", integer(1, 64), "number of sockets; default 2"},
                        {"acs", choice({"redirect", "off"}),
                         "what access control of the bare host's PCIe switches does with peer requests; default off"},
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

SchemaPtr fabric_kind(const std::string& what, std::vector<Field> own) {
  std::vector<Field> fields{
      {"switch", text(), "catalogue name of the switches", true},
      {"rate", quantity(Dimension::bandwidth), "per port; default: the slower of HCA and switch"},
      {"hop_latency", quantity(Dimension::time), "per switch; default: the switch type's"},
      {"cable", length(), "length of every cable; default 3 m"},
      {"switch_cable", length(), "length of cables between switches; default: `cable`"},
      {"routing", choice({"minimal", "dimension_order", "up_down", "adaptive"}),
       "default: dimension_order on a torus, adaptive on a dragonfly (on trees when asked for), minimal elsewhere"},
      {"lossless", lossless_schema(), "flow control, buffers, marking and congestion control"},
      {"mtu", mtu(), "payload bytes per packet; default: what its adapters send by themselves"}};
  fields.insert(fields.end(), own.begin(), own.end());
  fields.push_back({"switches", switch_list(), "further switches by hand"});
  fields.push_back({"cables", cable_list(), "further cables by hand"});
  return mapping(what, std::move(fields));
}

SchemaPtr fabric() {
  const auto over = Field{"oversubscription", number(1, 64), "capacity down / capacity up of a leaf; default 1"};
  const auto splitters =
      Field{"splitters", choice({"on", "off"}),
            "HCAs share ports of leaves by splitter cables as far as `port_split` of the switch goes; default off"};
  const auto ports = Field{"leaf_ports", integer(2, 4096), "ports of a leaf switch; default: the switch type's"};
  const auto listed = mapping(
      "a fabric list", {{"switches", switch_list(), "all switches"},
                        {"cables", cable_list(), "all cables", true},
                        {"mtu", mtu(), "payload bytes per packet; default: what its adapters send by themselves"},
                        {"routing", choice({"minimal", "up_down"}), "default minimal"},
                        {"lossless", lossless_schema(), "flow control, buffers, marking and congestion control"},
                        {"hop_latency", quantity(Dimension::time), "per switch; default: the switch type's"}});
  return mapping(
      "the fabric",
      {{"single_switch", fabric_kind("a single switch", {ports}), "one switch for all HCAs"},
       {"leaf_spine",
        fabric_kind(
            "a leaf-spine fabric",
            {over,
             ports,
             splitters,
             {"spines", integer(1, 4096), "number of spine switches; default: as many as the leaves' ports up fill"}}),
        "two tiers"},
       {"fat_tree", fabric_kind("a fat tree", {over, ports, splitters, {"tiers", integer(2, 3), "2 or 3; default 2"}}),
        "folded Clos"},
       {"rail_optimized",
        fabric_kind("a rail-optimized fabric",
                    {over,
                     ports,
                     splitters,
                     {"rails", integer(1, 64), "HCA i of every host goes to rail i; default: HCAs per host"},
                     {"spines", integer(1, 4096), "spines above the rails"}}),
        "one leaf group per rail"},
       {"dragonfly",
        fabric_kind("a dragonfly", {{"groups", integer(1, 1024), "number of groups; default: enough"},
                                    {"routers_per_group", integer(1, 1024), "fully connected inside a group", true},
                                    {"hosts_per_router", integer(1, 1024), "HCAs per router", true},
                                    {"global_links", integer(1, 64), "links to other groups per router; default 1"},
                                    {"local_links", integer(1, 64), "between each two routers of a group; default 1"}}),
        "groups of routers, adaptive routing"},
       {"torus", fabric_kind("a torus", {{"dimensions", list(integer(1, 1024)), "routers per dimension", true}}),
        "dimension-order routing"},
       {"list", listed, "switches and cables one by one"}},
      {{"single_switch", "leaf_spine", "fat_tree", "rail_optimized", "dragonfly", "torus", "list"}});
}

SchemaPtr topology() {
  const auto group = mapping("a host group",
                             {{"name", text(), "hosts are called name0, name1, ...; just name when count is 1", true},
                              {"count", integer(1, k_most_ranks), "number of equal hosts; default 1"},
                              {"type", text(), "catalogue name of the host"},
                              {"host", host_body("a host"), "the host written out, instead of a type"},
                              {"processor", text(), "replaces the processor of the type"},
                              {"sockets", integer(1, 64), "replaces the number of sockets"},
                              {"devices", device_list(), "devices to add, or to change by name"},
                              {"nvlinks", nvlink_list(), "NVLinks to add"},
                              {"remove", list(text()), "names of devices to take out"},
                              {"gpu_power_limit", number(1, 1e5),
                               "watts that each GPU may draw (nvidia-smi -pl); default: its board's own limit"},
                              {"virtualization", virtualization_schema(),
                               "what the hosts wear, as one word or with all settings; default bare-metal"},
                              {"vms", vms_schema(), "virtual machines of each host, one by one"}},
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

/// NCCL's, RCCL's and MPI's; `fabricast list algorithms` says which benchmark has which.
std::vector<std::string> algorithms() {
  std::istringstream words(
      "auto ring tree nvls nvls_tree collnet_direct pat msccl recursive_doubling rabenseifner "
      "reduce_broadcast reduce_scatter gather_broadcast binomial binary split_binary knomial sra_knomial sag_knomial "
      "chain linear linear_nb linear_sync scatter_allgather scatter_doubling bruck pairwise dissemination "
      "neighbor_exchange "
      "recursive_halving butterfly two_level");
  return {std::istream_iterator<std::string>(words), {}};
}

SchemaPtr workload() {
  const auto place = choice({"host", "device"});
  const auto sizes =
      any_of({list(size()), mapping("a size range", {{"from", size(), "first size", true},
                                                     {"to", size(), "last size", true},
                                                     {"factor", integer(2, 1024), "step factor; default 2"}})});
  std::vector<Field> fields{
      {"name", text(), "default: the benchmark's name"},
      {"benchmark", choice(benchmark_names()), "program whose table is forecast", true},
      {"gpus", any_of({integer(1, k_most_ranks), list(integer(1, k_most_ranks))}),
       "GPUs that take part, in host order; default: all. training: also a list, one row each"},
      {"ranks", integer(1, k_most_ranks), "MPI ranks; default: one per GPU"},
      {"ranks_per_host", integer(1, 1024), "default: GPUs of a host"},
      {"devices", list(text()), "devices (host.gpuN), hosts or VMs by name; of GPUs `gpus` takes the first"},
      {"sizes", sizes, "message sizes; default: the benchmark's own sweep"},
      {"buffers", any_of({place, list(place)}),
       "host or device, or one for each side; default device for nccl-tests, host elsewhere"},
      {"algorithm", choice(algorithms()), "default auto: the library's choice"},
      {"protocol", choice({"auto", "ll", "ll128", "simple"}), "NCCL protocol; default auto"},
      {"channels", integer(1, 64), "NCCL channels; default: NCCL's choice"},
      {"launch", choice({"one_thread", "thread_per_gpu", "process_per_gpu", "graph"}),
       "how nccl-tests starts operations; default process_per_gpu"},
      {"window", integer(1, 100000), "messages in flight of bandwidth tests; default 64 (OSU), 128 (perftest)"},
      {"pairs", integer(1, 4096), "pairs of osu_multi_lat and osu_mbw_mr; default half of `ranks` or `gpus`, else 1"},
      {"queue_pairs", integer(1, 4096), "connections per pair (perftest -q); default 1"},
      {"bidirectional", flag(), "perftest -b; default off"},
      {"root", integer(0, k_most_ranks), "root rank; default 0"},
      {"statistic", choice({"mean", "max"}),
       "MPI collectives: time of the mean rank (OSU's) or of the slowest one; default mean"},
      {"direction", choice({"to_host", "to_device", "both", "to_peer"}), "host_copies; default to_host"},
      {"streams", integer(1, 1024), "iperf3 -P; default 4"},
      {"compute", quantity(Dimension::time), "gpu_step: GPU time of one step on bare metal"},
      {"start", quantity(Dimension::time), "when the job starts beside others; default 0 s"},
      {"pattern", choice({"flows", "incast", "permutation", "parking_lot", "victim", "ring_all_reduce"}),
       "traffic: which hosts send to which; default flows"},
      {"senders", integer(1, 1'000'000), "traffic: senders of incast (default all) and behind the victim's trunk"},
      {"local_senders", integer(1, 1'000'000), "traffic: senders of the victim pattern beside the receiver; default 1"},
      {"flows", flow_list_schema(), "traffic: flows one by one"},
      {"transport", transport_schema(), "verb, congestion control, routing and priority; packet engine only"}};
  for (auto& field : sharing_fields()) fields.push_back(std::move(field));
  for (auto& field : training_fields()) fields.push_back(std::move(field));
  return mapping("a workload", std::move(fields));
}

SchemaPtr software() {
  return mapping(
      "the software",
      {{"mpi",
        choice({"open-mpi-openib", "open-mpi-ucx", "open-mpi-ofi", "mvapich2-gdr", "cray-mpich", "mpich", "intel-mpi"}),
        "MPI profile; default open-mpi-ucx, over EFA open-mpi-ofi, over Slingshot-11 and Aries cray-mpich, for host "
        "memory on hosts without adapters, and over TCP, Open MPI's own transports (open-mpi-ucx there: UCX over TCP); "
        "mpich and intel-mpi have rules of their own and messages between hosts as the adapters' usual library"},
       {"gpudirect_limit", size(), "largest message sent by GPUDirect RDMA; default: the profile's"},
       {"eager_limit", size(), "default: the profile's"},
       {"device_eager_limit", size(), "the same for device buffers; default: eager_limit, else the profile's"},
       {"ucx", text(),
        "UCX version, major.minor; before 1.8 the sender reads eager device data by gdrcopy, and copies through shared "
        "memory are slower; says from which size on device messages, and all over TCP, are announced; default a new "
        "one"},
       {"staging_chunk", size(), "chunk of copies through host memory; default: the profile's"},
       {"gpudirect_rdma", flag(), "default on"},
       {"nv_peer_mem", choice({"loaded", "not loaded"}), "kernel module of GPUDirect RDMA; default loaded"},
       {"gdrcopy", flag(), "default on"},
       {"cross_memory_attach", flag(),
        "ranks of a host may read each other's memory (process_vm_readv); off in containers apart from each other or "
        "without the right to trace, and for Open MPI's vader on kernels without Yama; default on"},
       {"cuda", text(), "CUDA version, major.minor; GPUDirect RDMA needs 5.0; default new enough"},
       {"ofed", text(), "MLNX_OFED version; GPUDirect RDMA needs 2.1, from ConnectX-4 on 3.1; default new enough"},
       {"mpi_version", text(),
        "of Open MPI or MPICH, major.minor[.patch]: whose rules pick algorithms (4.0, 4.1, 5.0; MPICH before and from "
        "3.4); GPUDirect RDMA needs Open MPI 1.7.4; default 4.1"},
       {"mpi_collectives", choice({"library", "ucc", "hcoll"}),
        "who runs collectives: the MPI library itself, or UCC or hcoll over UCX, to which Open MPI leaves them with "
        "coll_ucc_enable or coll_hcoll_enable (HPC-X sets them); default library"},
       {"nccl", nccl_settings(), "NCCL version and switches"},
       {"transport", choice({"auto", "rdma", "tcp"}), "default auto"}});
}

SchemaPtr scenario() {
  const auto one = workload();
  return mapping(
      "a scenario",
      {{"schema", choice({"fabricast/scenario/1"}), "file kind and version", true},
       {"name", text(), "name of the scenario", true},
       {"description", text(), "one line"},
       {"topology", any_of({text(), topology()}), "topology file, relative to this file, or a topology written out",
        true},
       {"virtualization", virtualization_schema(),
        "what all hosts wear, instead of what the topology says; compare scenarios that differ in this line"},
       {"software", software(), "versions and switches of the software"},
       {"parameters", list(text()), "parameter files, relative to this file"},
       {"host_neighbours", host_neighbours_schema(), "work of others on the hosts"},
       {"workload", one, "the benchmark to forecast"},
       {"workloads", list(one), "several at once"}},
      {{"workload", "workloads"}});
}

// ---- devices and parameters ---------------------------------------------------------------------------------------

SchemaPtr device() {
  auto values = value_fields();
  return mapping("a device file", {{"schema", choice({"fabricast/device/1"}), "file kind and version", true},
                                   {"name", text(), "name by which topologies use it", true},
                                   {"kind", choice(device_kinds()), "what it is", true},
                                   {"description", text(), "one line"},
                                   {"source", text(), "where a host's description comes from"},
                                   {"attributes", device_words_schema(), "words rather than numbers"},
                                   {"values", free_mapping(mapping("a value", std::move(values))), "data-sheet values"},
                                   {"host", host_body("a host"), "devices of a host"}});
}

SchemaPtr parameters() {
  return mapping("a parameter file", {{"schema", choice({"fabricast/parameters/1"}), "file kind and version", true},
                                      {"name", text(), "name of the set"},
                                      {"description", text(), "one line"},
                                      {"parameters", parameter_map(), "values by name", true}});
}

// ---- calibration --------------------------------------------------------------------------------------------------

SchemaPtr calibration() {
  const auto value = make({.type = T::number_or_quantity});
  const auto log = mapping(
      "a log",
      {{"file", text(), "measured log, relative to this file; $NAME/... begins with an environment variable", true},
       {"scenario", text(), "scenario it was measured under, relative to this file; or `workload`"},
       {"workload", workload(), "benchmark it is of, with the topology and software of this file"},
       {"software", software(), "versions and switches, instead of those of this file"},
       {"set", free_mapping(text()), "changes to the scenario, as with --set: path: value"},
       {"rows", list(text()), "of a training table: only rows that hold all of these texts"},
       {"hold_out", flag(), "compare, but do not fit; default off"},
       {"optional", flag(), "skip the log when the file is absent; default off"},
       {"weight", number(1e-6, 1e6), "counts like this many logs; default 1"}},
      {{"scenario", "workload"}});
  const auto fitted = mapping("a parameter to fit", {{"start", value, "default: the shipped value"},
                                                     {"low", value, "lower bound; default: a tenth of the start"},
                                                     {"high", value, "upper bound; default: ten times the start"},
                                                     {"prior", number(0, 100),
                                                      "relative standard deviation before the fit; 0 = none; default "
                                                      "by the interval or confidence of the value"}});
  const auto hold_out =
      mapping("the held-out part", {{"every", integer(2, 1000), "every n-th size of each log"},
                                    {"sizes", list(size()), "these sizes"},
                                    {"ranks", list(integer(1, k_most_ranks)), "logs of so many ranks"},
                                    {"hosts", list(integer(1, k_most_ranks)), "logs of so many hosts"}});
  return mapping("a calibration file",
                 {{"schema", choice({"fabricast/calibration/1"}), "file kind and version", true},
                  {"name", text(), "name of the calibration", true},
                  {"description", text(), "one line"},
                  {"topology", text(), "topology of logs that have a workload, relative to this file"},
                  {"software", software(), "versions and switches of logs that have a workload"},
                  {"parameters_before", list(text()), "parameter files read before the fit, relative to this file"},
                  {"logs", list(log), "measured logs", true},
                  {"fit", free_mapping(fitted), "parameters by name; * stands for any characters", true},
                  {"hold_out", hold_out, "points that are compared, but not fitted"},
                  {"noise", number(1e-4, 1), "relative standard deviation of one measured time; default 0.02"},
                  {"loss", choice({"squared", "soft_l1"}), "soft_l1 (default) keeps outliers from steering the fit"},
                  {"starts", integer(1, 100), "starting points; default 1"},
                  {"intervals", choice({"covariance", "bootstrap"}), "default covariance"},
                  {"bootstrap_samples", integer(10, 10000), "default 40"}});
}

}  // namespace

const Schema& schema_of(const std::string& file_kind) {
  static const std::map<std::string, SchemaPtr> all{{"topology", topology()},       {"scenario", scenario()},
                                                    {"device", device()},           {"parameters", parameters()},
                                                    {"calibration", calibration()}, {"network", network_schema()},
                                                    {"plan", plan_schema()},        {"cost", cost_schema()}};
  const auto it = all.find(file_kind);
  FABRICAST_ASSERT(it != all.end(), "file kind '{}'", file_kind);
  return *it->second;
}

}  // namespace fabricast::config

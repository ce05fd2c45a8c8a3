// SPDX-License-Identifier: Apache-2.0
// fabricast mpi TOPOLOGY -n N PROGRAM...: a program compiled with SimGrid's smpicc on the described cluster. The
// platform has the topology's hosts, cables and switches; what a message costs beyond them follows from the forecasts
// of osu_latency and osu_bw of the same topology, size by size:
//
//   os(s) = per-message time of osu_bw      lat-factor(s) = (T(s) - os(s) - s / B) / L
//
// with T the one-way time, B the rate of the largest message and L the platform's latency between the first two hosts.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "cli/command.hpp"

namespace fabricast::cli {

namespace {

struct MpiOptions : CommonOptions {
  std::string topology;
  int ranks = 2;
  int per_host = 0;
  std::string mpi;
  std::vector<std::string> program;
};

/// Times of a two-rank benchmark, host buffers.
std::vector<Row> rows_of(const MpiOptions& options, const char* benchmark, int& exit_code) {
  const auto path = std::filesystem::absolute(options.topology).lexically_normal().string();
  auto settings = parse_settings(options.settings);
  for (auto& one : settings) one.path = "topology." + one.path;
  auto loaded = load_scenario_text(
      "mpi",
      fmt::format("schema: fabricast/scenario/1\nname: mpi\ntopology: \"{}\"\n{}workload: {{benchmark: {}, sizes: "
                  "{{from: 1 B, to: 4 MiB}}}}\n",
                  path, options.mpi.empty() ? "" : fmt::format("software: {{mpi: {}}}\n", options.mpi), benchmark),
      options.parameter_files, settings);
  if (!loaded) {
    print_faults(loaded.error());
    exit_code = exit_input;
    return {};
  }
  SimulateOptions simulate_options;
  simulate_options.with_terms = false;
  auto prediction = simulate(loaded->topology, loaded->scenario, loaded->parameters, simulate_options);
  if (prediction) return prediction->workloads.front().rows;
  print_faults(prediction.error());
  exit_code = exit_input;
  return {};
}

struct Protocol {
  double latency_s = 0, rate = 0;  ///< of the platform, host to host
  std::string overhead, latency_factor;
};

Protocol protocol_of(const std::vector<Row>& latency, const std::vector<Row>& bandwidth) {
  constexpr double k_window = 64;
  Protocol out;
  out.rate = static_cast<double>(bandwidth.back().size.value) / bandwidth.back().time.seconds();
  out.latency_s = latency.front().time.seconds() / 2;
  for (std::size_t i = 0; i < latency.size() && i < bandwidth.size(); ++i) {
    const double size = static_cast<double>(latency[i].size.value);
    const double one_way = latency[i].time.seconds(), wire = size / out.rate;
    // A window's end waits for the last message and the answer: that is no cost of each message.
    const double window = k_window * bandwidth[i].time.seconds();
    const double gap = std::max(0.0, (window - one_way - latency.front().time.seconds()) / k_window);
    const double overhead = std::min(gap, 0.9 * std::max(0.0, one_way - wire));
    const double factor = std::max(0.0, (one_way - overhead - wire) / out.latency_s);
    const auto from = latency[i].size.value - 1;
    out.overhead += fmt::format("{}{}:{:.9g}:0", i == 0 ? "" : ";", from, overhead);
    out.latency_factor += fmt::format("{}{}:{:.9g}", i == 0 ? "" : ";", from, factor);
  }
  return out;
}

/// Hosts behind one link each, at the rate that one rank reaches; switches between them by what oversubscription
/// leaves.
std::string platform_of(const Topology& topology, const Protocol& protocol) {
  std::string hosts, links, routes;
  for (int host = 0; host < topology.num_hosts(); ++host) {
    const auto& name = topology.host_name(host);
    hosts += fmt::format("    <host id=\"{}\" speed=\"1Gf\" core=\"1024\"/>\n", name);
    for (const auto* way : {"up", "down"})
      links += fmt::format("    <link id=\"{}{}\" bandwidth=\"{:.0f}Bps\" latency=\"{:.12g}s\"/>\n", way, host,
                           protocol.rate, protocol.latency_s / 2);
    routes += fmt::format(
        "    <route src=\"{0}\" dst=\"network\" symmetrical=\"NO\"><link_ctn id=\"up{1}\"/></route>\n"
        "    <route src=\"network\" dst=\"{0}\" symmetrical=\"NO\"><link_ctn id=\"down{1}\"/></route>\n",
        name, host);
  }
  return "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
         "<platform version=\"4.1\">\n  <zone id=\"cluster\" routing=\"DijkstraCache\">\n" +
         hosts + "    <router id=\"network\"/>\n" + links + routes + "  </zone>\n</platform>\n";
}

constexpr int k_cannot_start = 127;

std::optional<int> spawn(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (auto& one : arguments) argv.push_back(one.data());
  argv.push_back(nullptr);
  // Not posix_spawn: it takes `environ`, and a program that names it has a copy of its own, which Open MPI's libraries
  // (loaded for sweeps) take for another environment and free.
  const pid_t child = fork();
  if (child == 0) {
    execvp(argv[0], argv.data());
    std::fprintf(stderr, "fabricast: cannot start %s: %s; SimGrid's smpirun is in libsimgrid-dev\n", argv[0],
                 std::strerror(errno));
    std::_Exit(k_cannot_start);
  }
  if (child < 0) {
    say(fmt::format("fabricast: cannot start {}: {}\n", arguments[0], std::strerror(errno)));
    return std::nullopt;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) == k_cannot_start) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int mpi_command(const MpiOptions& options) {
  int exit_code = exit_ok;
  const auto loaded = load_topology(options.topology, options.parameter_files, parse_settings(options.settings));
  if (!loaded) {
    print_faults(loaded.error());
    return exit_input;
  }
  if (loaded->topology.num_hosts() < 2) {
    say(fmt::format("{}: error: one host only: messages between hosts are what is simulated\n", options.topology));
    return exit_input;
  }
  const auto latency = rows_of(options, "osu_latency", exit_code);
  const auto bandwidth = rows_of(options, "osu_bw", exit_code);
  if (latency.empty() || bandwidth.empty()) return exit_code == exit_ok ? exit_input : exit_code;
  const auto protocol = protocol_of(latency, bandwidth);
  std::string pattern = (std::filesystem::temp_directory_path() / "fabricast-mpi-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    say(fmt::format("fabricast: cannot make a folder for temporary files: {}\n", std::strerror(errno)));
    return exit_input;
  }
  const auto per_host = options.per_host > 0
                            ? options.per_host
                            : (options.ranks + loaded->topology.num_hosts() - 1) / loaded->topology.num_hosts();
  std::string hosts;
  for (int rank = 0; rank < options.ranks; ++rank)
    hosts += loaded->topology.host_name(std::min(rank / per_host, loaded->topology.num_hosts() - 1)) + "\n";
  std::ofstream(pattern + "/platform.xml") << platform_of(loaded->topology, protocol);
  std::ofstream(pattern + "/hosts") << hosts;
  std::vector<std::string> arguments{"smpirun",
                                     "-np",
                                     std::to_string(options.ranks),
                                     "-platform",
                                     pattern + "/platform.xml",
                                     "-hostfile",
                                     pattern + "/hosts",
                                     "--log=root.thres:warning"};
  for (const auto* one :
       {"network/model:SMPI", "network/crosstraffic:0", "network/TCP-gamma:1e18", "network/weight-S:0",
        "smpi/bw-factor:0:1", "smpi/simulate-computation:no", "smpi/host-speed:1Gf", "smpi/coll-selector:ompi",
        "smpi/send-is-detached-thresh:1000000000", "surf/precision:1e-12"})
    arguments.push_back(fmt::format("--cfg={}", one));
  arguments.push_back("--cfg=smpi/lat-factor:" + protocol.latency_factor);
  for (const auto* one : {"os", "ois"}) arguments.push_back(fmt::format("--cfg=smpi/{}:{}", one, protocol.overhead));
  arguments.insert(arguments.end(), options.program.begin(), options.program.end());
  const auto status = spawn(std::move(arguments));
  std::error_code ignored;
  std::filesystem::remove_all(pattern, ignored);
  return status ? *status : exit_input;
}

}  // namespace

void add_mpi(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<MpiOptions>();
  auto* command = app.add_subcommand("mpi", "run a program compiled with SimGrid's smpicc on the described cluster");
  command->footer(
      "Needs smpirun (Debian: libsimgrid-dev). Computation takes no time unless the program says so (SMPI_SAMPLE); "
      "collectives are\nSimGrid's, made of messages: they lack what MPI libraries spend inside them (all-reduce 10 to "
      "50 % below the forecast).\n\nExamples:\n"
      "  smpicc -O2 scenarios/mpi/latency.c -o latency\n"
      "  fabricast mpi topologies/dgx-a100-pair.yaml -n 2 ./latency\n"
      "  fabricast mpi topologies/dgx-a100-16.yaml -n 16 --ranks-per-host 1 ./allreduce");
  command->add_option("TOPOLOGY", options->topology, "topology file")->required()->type_name("FILE");
  command->add_option("PROGRAM", options->program, "program and its arguments")->required()->type_name("PROGRAM...");
  command->add_option("-n,--np", options->ranks, "ranks; default 2")->check(whole_number(100'000, 1))->type_name("N");
  command->add_option("--ranks-per-host", options->per_host, "default: as even as possible")
      ->check(whole_number(1024, 1))
      ->type_name("N");
  command->add_option("--mpi", options->mpi, "profile (`fabricast list profiles`)")->type_name("NAME");
  add_what_if_options(*command, *options, "parameter file", "change one value of the topology");
  command->prefix_command(false);
  command->callback([options, &exit_code] { exit_code = mpi_command(*options); });
}

}  // namespace fabricast::cli

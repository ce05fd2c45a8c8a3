// SPDX-License-Identifier: Apache-2.0
// fabricast mpi TOPOLOGY -n N PROGRAM...: a program compiled with SimGrid's smpicc on the described cluster. The
// platform has the topology's hosts, cables and switches; what a message costs beyond them follows from the forecasts
// of osu_latency and osu_bw of the same topology, size by size:
//
//   T(s) = gap(s) + latency(s) + s / B
//
// with T the one-way time between two hosts, the gap from osu_bw and B the rate of the largest message. Pairs of hosts
// differ by the latency of the way between them, and messages share cables. A blocking send, and messages of both
// directions at once (the forecast's all-reduce of two ranks), take what they need beyond that. Ranks of one host
// exchange messages as osu_latency of two ranks in a host does. Collectives are the forecast's own schedules
// (sim/programs, loaded into SimGrid's smpimain).
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
#include "cli/mpi_platform.hpp"
#include "fabricast/models/plan.hpp"

namespace fabricast::cli {

namespace {

struct MpiOptions : CommonOptions {
  std::string topology;
  int ranks = 2;
  int per_host = 0;
  std::string mpi, release;
  std::vector<std::string> program;
};

/// Times of a two-rank benchmark, host buffers, and what it rests on.
struct Forecast {
  std::vector<Row> rows;
  std::string profile;
  double collective_entry_s = 0, control_messages = 0;
};

/// Powers of two, where protocols change, what comes right after, and between: segments.
std::string sizes_to_forecast() {
  std::string out = "1 B, 2 B";
  for (std::int64_t size = 4; size <= 4 << 20; size *= 2) {
    out += fmt::format(", {} B, {} B", size, size + 1);
    if (size >= 8) out += fmt::format(", {} B, {} B", size * 5 / 4, size * 3 / 2);
  }
  return out;
}

std::optional<Forecast> forecast_of(const MpiOptions& options, const std::string& workload) {
  const auto path = std::filesystem::absolute(options.topology).lexically_normal().string();
  auto settings = parse_settings(options.settings);
  for (auto& one : settings) one.path = "topology." + one.path;
  std::string software;
  if (!options.mpi.empty()) software += fmt::format("mpi: {}", options.mpi);
  if (!options.release.empty())
    software += fmt::format("{}mpi_version: \"{}\"", software.empty() ? "" : ", ", options.release);
  const auto loaded =
      load_scenario_text("mpi",
                         fmt::format("schema: fabricast/scenario/1\nname: mpi\ntopology: \"{}\"\nsoftware: "
                                     "{{{}}}\nworkload: {{{}, sizes: [{}]}}\n",
                                     path, software, workload, sizes_to_forecast()),
                         options.parameter_files, settings);
  if (!loaded) {
    print_faults(loaded.error());
    return std::nullopt;
  }
  auto prediction = simulate(loaded->topology, loaded->scenario, loaded->parameters);
  if (!prediction) {
    print_faults(prediction.error());
    return std::nullopt;
  }
  Forecast out;
  auto& first = prediction->workloads.front();
  for (const auto& setting : first.settings) {
    if (setting.setting == "profile") out.profile = setting.used;
  }
  out.rows = std::move(first.rows);
  out.control_messages = loaded->parameters.value_or(fmt::format("mpi.{}.rendezvous_messages", out.profile), 0);
  out.collective_entry_s = loaded->parameters.at("mpi.collective.overhead").value;
  return out;
}

struct Protocol {
  Platform platform;
  SimgridNetwork network;
  std::string settings;  ///< lines for sim/programs
};

std::optional<Forecast> one_way_forecast(const MpiOptions& options, const Topology& topology, int from, int to) {
  return forecast_of(options, fmt::format("benchmark: osu_latency, devices: [{}.memory0, {}.memory0]",
                                          topology.host_name(from), topology.host_name(to)));
}

template <typename Is>
double seconds_of(const Row& row, Is is_one) {
  Duration time;
  for (const auto& term : row.terms) {
    if (is_one(term)) time += term.time;
  }
  return time.seconds();
}

/// A core copies its rank's own part of an all-to-all, and to and from temporaries of an all-reduce: no messages.
double own_part_s(const Row& row) {
  return seconds_of(
      row, [](const Term& term) { return term.name == models::k_own_part || term.name == models::k_temporaries; });
}

/// Of an all-reduce: a core sums what it received.
double sums_s(const Row& row) {
  return seconds_of(row, [](const Term& term) { return term.parameter.starts_with("mpi.reduction_bandwidth"); });
}

/// The first two hosts: messages one way with blocking sends, both ways at once with such, and without blocking.
struct FirstPair {
  Forecast one_way, both, posted;
  static bool is_rendezvous(const Row& row) { return row.protocol.starts_with("rendezvous"); }
  /// What the i-th size takes more in `other`, beyond what cores sum and copy of their own, than one way, over a way
  /// that takes `further` than theirs: control messages pay it too.
  [[nodiscard]] double more(const Forecast& other, std::size_t i, double further_s) const {
    const auto& row = other.rows[i];
    const double open = row.time.seconds() - other.collective_entry_s - sums_s(row) - own_part_s(row);
    const bool has_control = is_rendezvous(other.rows[i]) && !is_rendezvous(one_way.rows[i]);
    return open - one_way.rows[i].time.seconds() + (has_control ? other.control_messages * further_s : 0);
  }
  [[nodiscard]] double more_both_ways(std::size_t i, double further_s) const { return more(both, i, further_s); }
  [[nodiscard]] double more_posted(std::size_t i, double further_s) const { return more(posted, i, further_s); }
};

/// Time of a rank's core per message: what a window of messages takes beyond its last message and the answer.
std::vector<double> gaps_of(const FirstPair& first, const std::vector<Row>& bandwidth, double rate) {
  constexpr double k_window = 64;
  std::vector<double> out;
  const auto& latency = first.one_way.rows;
  for (std::size_t i = 0; i < latency.size() && i < bandwidth.size(); ++i) {
    const double blocking = latency[i].time.seconds(), wire = static_cast<double>(latency[i].size.value) / rate;
    const double one_way = blocking + std::min({0.0, first.more_both_ways(i, 0), first.more_posted(i, 0)});
    const double window = k_window * bandwidth[i].time.seconds() - blocking - latency.front().time.seconds();
    out.push_back(std::clamp(window / k_window, 0.0, 0.9 * std::max(0.0, one_way - wire)));
  }
  return out;
}

/// Lines of the tables of one way through the network.
std::string tables_of(const std::vector<Row>& one_way, const FirstPair& first, const std::vector<double>& gaps,
                      double rate, Duration way, Duration first_way) {
  std::string out;
  for (std::size_t i = 0; i < one_way.size() && i < gaps.size() && i < first.both.rows.size(); ++i) {
    const double wire = static_cast<double>(one_way[i].size.value) / rate;
    const double further = (way - first_way).seconds(), blocking = one_way[i].time.seconds();
    const double both = blocking + first.more_both_ways(i, further), posted = blocking + first.more_posted(i, further);
    const double rest = std::max(0.0, std::min({blocking, both, posted}) - wire - gaps[i]);
    const double base = rest + wire + gaps[i];
    const auto line = [&](const char* table, double seconds) {
      out += fmt::format("{} {} {} {:.9g}\n", table, way.ps, one_way[i].size.value, std::max(0.0, seconds));
    };
    line("latency", rest);
    line("blocking", blocking - base);
    // Both ways at once eager messages wait no longer than one way; their copies lie beside the transfer.
    const bool is_held = FirstPair::is_rendezvous(first.both.rows[i]);
    line("both", (is_held ? both : std::min(both, blocking)) - base);
    line("least", is_held ? 0 : both);
    line("posted", posted - base);
  }
  return out;
}

/// Lines of the tables that all ways share.
std::string common_tables(const FirstPair& first, const std::vector<double>& gaps) {
  std::string out;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const auto from = first.one_way.rows[i].size.value;
    out += fmt::format("gap {0} {1:.9g}\nheld {0} {2}\nheld_posted {0} {3}\nown {0} {4:.9g}\nsums {0} {5:.9g}\n", from,
                       gaps[i], FirstPair::is_rendezvous(first.both.rows[i]) ? 1 : 0,
                       FirstPair::is_rendezvous(first.posted.rows[i]) ? 1 : 0, own_part_s(first.posted.rows[i]),
                       sums_s(first.both.rows[i]));
  }
  return out;
}

/// Messages that stay in a host: their bytes at the rate of the largest, the rest of their time at the sender.
void add_inside(Protocol& out, const std::vector<Row>& latency) {
  const auto& last = latency.back();
  const auto& before = latency[latency.size() - 2];
  out.platform.rate_inside =
      static_cast<double>((last.size - before.size).value) / std::max(1e-12, (last.time - before.time).seconds());
  for (const auto& row : latency)
    out.settings +=
        fmt::format("inside {} {:.9g}\n", row.size.value,
                    std::max(0.0, row.time.seconds() - static_cast<double>(row.size.value) / out.platform.rate_inside));
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

/// The library with the forecast's collectives, beside this program's folder.
std::optional<std::string> collectives_library() {
  std::error_code ignored;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
  for (const auto* place : {"/../lib/", "/../lib/fabricast/"}) {
    const auto path = folder + place + "libfabricast_smpi.so";
    if (std::filesystem::exists(path, ignored)) return std::filesystem::path(path).lexically_normal().string();
  }
  say("fabricast: libfabricast_smpi.so is not in ../lib beside this program: install both from one build\n");
  return std::nullopt;
}

std::optional<Protocol> forecast_protocol(const MpiOptions& options, const LoadedTopology& loaded, int per_host) {
  Protocol out;
  const auto bandwidth = forecast_of(options, "benchmark: osu_bw");
  auto one_way = bandwidth ? one_way_forecast(options, loaded.topology, 0, 1) : std::nullopt;
  auto both = one_way ? forecast_of(options,
                                    "benchmark: osu_allreduce, algorithm: recursive_doubling, ranks: 2, "
                                    "ranks_per_host: 1")
                      : std::nullopt;
  auto posted = both ? forecast_of(options, "benchmark: osu_alltoall, algorithm: linear, ranks: 2, ranks_per_host: 1")
                     : std::nullopt;
  if (!posted) return std::nullopt;
  const FirstPair first{std::move(*one_way), std::move(*both), std::move(*posted)};
  const auto& last = bandwidth->rows.back();
  const double rate = static_cast<double>(last.size.value) / last.time.seconds();
  out.platform.rate = rate;
  if (per_host > 1 && options.ranks > 1) {
    const auto inside = forecast_of(options, "benchmark: osu_latency, ranks: 2, ranks_per_host: 2");
    if (!inside) return std::nullopt;
    add_inside(out, inside->rows);
  }
  const auto gaps = gaps_of(first, bandwidth->rows, rate);
  out.settings += common_tables(first, gaps);
  out.network = simgrid_network(loaded.topology, loaded.parameters, options.ranks, per_host, out.platform);
  for (const auto& way : out.network.ways) {
    const auto pair = one_way_forecast(options, loaded.topology, way.from, way.to);
    if (!pair) return std::nullopt;
    out.settings += tables_of(pair->rows, first, gaps, rate, way.latency, out.network.ways.front().latency);
  }
  out.settings +=
      fmt::format("profile {}\nrelease {}\nentry {:.9g}\n", options.mpi.empty() ? first.one_way.profile : options.mpi,
                  options.release, first.both.collective_entry_s);
  return out;
}

std::vector<std::string> smpirun_arguments(const MpiOptions& options, const std::string& folder,
                                           const std::string& library) {
  std::vector<std::string> out{"smpirun",
                               "-np",
                               std::to_string(options.ranks),
                               "-platform",
                               folder + "/platform.xml",
                               "-hostfile",
                               folder + "/hosts",
                               "-wrapper",
                               fmt::format("env LD_PRELOAD={} FABRICAST_SMPI_SETTINGS={}/settings", library, folder),
                               "--log=root.thres:warning"};
  for (const auto* one : {"network/model:SMPI", "network/crosstraffic:0", "network/TCP-gamma:1e18",
                          "network/weight-S:0", "smpi/simulate-computation:no", "smpi/host-speed:1Gf",
                          "smpi/coll-selector:ompi", "smpi/send-is-detached-thresh:1000000000", "surf/precision:1e-12"})
    out.push_back(fmt::format("--cfg={}", one));
  out.insert(out.end(), options.program.begin(), options.program.end());
  return out;
}

int run_program(const MpiOptions& options, const Topology& topology, int per_host, const Protocol& protocol,
                const std::string& library) {
  std::string folder = (std::filesystem::temp_directory_path() / "fabricast-mpi-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    say(fmt::format("fabricast: cannot make a folder for temporary files: {}\n", std::strerror(errno)));
    return exit_input;
  }
  std::string names;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const int host = std::min(rank / per_host, topology.num_hosts() - 1);
    names += topology.host_name(host) + "\n";
  }
  auto hosts = names;
  std::replace(hosts.begin(), hosts.end(), '\n', ' ');
  std::ofstream(folder + "/platform.xml") << protocol.network.xml;
  std::ofstream(folder + "/hosts") << names;
  std::ofstream(folder + "/settings") << protocol.settings << "hosts " << hosts << "\n";
  const auto status = spawn(smpirun_arguments(options, folder, library));
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return status ? *status : exit_input;
}

int mpi_command(const MpiOptions& options) {
  int exit_code = exit_ok;
  const auto loaded =
      usable(load_topology(options.topology, options.parameter_files, parse_settings(options.settings)), exit_code);
  if (!loaded) return exit_code;
  const int num_hosts = loaded->topology.num_hosts();
  if (num_hosts < 2) {
    say(fmt::format("{}: error: one host only: messages between hosts are what is simulated\n", options.topology));
    return exit_input;
  }
  const int per_host = options.per_host > 0 ? options.per_host : (options.ranks + num_hosts - 1) / num_hosts;
  if (options.ranks > per_host * num_hosts) {
    say(fmt::format(
        "{}: error: {} ranks do not fit on {} hosts with {} each\n  = note: --ranks-per-host {} is enough\n",
        options.topology, options.ranks, num_hosts, per_host, (options.ranks + num_hosts - 1) / num_hosts));
    return exit_input;
  }
  const auto library = collectives_library();
  if (!library) return exit_input;
  const auto protocol = forecast_protocol(options, *loaded, per_host);
  return protocol ? run_program(options, loaded->topology, per_host, *protocol, *library) : exit_input;
}

}  // namespace

std::vector<std::string> like_mpirun(std::vector<std::string> arguments) {
  int num_files = 0;  // the topology, then the program
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    auto& word = arguments[i];
    if (word == "--") break;
    if (word == "-np") word = "--np";
    const bool is_option = word.size() > 1 && word[0] == '-';
    if (!is_option && ++num_files == 2) {
      arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(i), "--");
      break;
    }
    const bool has_value = is_option && (word.find('=') != std::string::npos || (word[1] != '-' && word.size() > 2));
    if (is_option && !has_value && word != "--help" && word != "-h") ++i;
  }
  return arguments;
}

void add_mpi(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<MpiOptions>();
  auto* command = app.add_subcommand("mpi", "run a program compiled with SimGrid's smpicc on the described cluster");
  command->footer(
      "Needs smpirun (Debian: libsimgrid-dev). Computation takes no time unless the program says so (SMPI_SAMPLE); "
      "collectives\nfollow the algorithm and the rounds that the MPI library picks.\n\nExamples:\n"
      "  smpicc -O2 scenarios/mpi/latency.c -o latency\n"
      "  fabricast mpi topologies/dgx-a100-pair.yaml -np 2 ./latency\n"
      "  fabricast mpi topologies/dgx-a100-16.yaml -n 16 --ranks-per-host 1 ./allreduce");
  command->add_option("TOPOLOGY", options->topology, "topology file")->required()->type_name("FILE");
  command->add_option("PROGRAM", options->program, "program; all that follows are its arguments")
      ->required()
      ->type_name("PROGRAM...");
  command->add_option("-n,--np", options->ranks, "ranks; default 2")->check(whole_number(100'000, 1))->type_name("N");
  command->add_option("--ranks-per-host", options->per_host, "default: as even as possible")
      ->check(whole_number(1024, 1))
      ->type_name("N");
  command->add_option("--mpi", options->mpi, "profile (`fabricast list profiles`)")->type_name("NAME");
  command->add_option("--mpi-release", options->release, "release of the MPI library: 5.0; default 4.1 of Open MPI")
      ->type_name("RELEASE");
  add_what_if_options(*command, *options, "parameter file", "change one value of the topology");
  command->prefix_command(false);
  command->callback([options, &exit_code] { exit_code = mpi_command(*options); });
}

}  // namespace fabricast::cli

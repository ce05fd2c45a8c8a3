// SPDX-License-Identifier: Apache-2.0
// What one rank does in a collective: the forecast's own choice of algorithm and its own rounds, seen from that rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "mpi/decisions.hpp"

namespace fabricast::programs {

/// How the library sends a message of a collective: it blocks, one way or while the ranks exchange others, or not.
enum class SendMode : std::uint8_t { one_way, exchange, posted };

struct Message {
  int peer = 0;
  std::size_t bytes = 0;
  SendMode mode = SendMode::exchange;
};

/// Ranks that end a round together.
struct Held {
  int round = 0;  ///< of all plans
  int num_ranks = 0;
};

/// What one rank sends and receives in a round.
struct RankRound {
  std::vector<Message> sends, receives;
  std::int64_t repeat = 1;
  double reduced_bytes = 0;  ///< combined after every repeat, when something was received
  bool is_pipeline = false;  ///< sends are waited for at the collective's end only
  std::optional<Held> held;
};

/// Seconds by size, straight lines between, beyond the first and the last as theirs.
using SizeTable = std::map<std::size_t, double>;
double at_size(const SizeTable& table, std::size_t bytes);

/// What `fabricast mpi` hands over: who computes what collectives cost beyond their messages.
struct Settings {
  models::mpi::Library mpi_library = models::mpi::Library::open_mpi_4_1;
  double entry_s = 0;     ///< entry into a collective
  SizeTable gap;          ///< a rank's core is busy with a message to another host
  SizeTable held;         ///< 1: the message keeps its sender, and the ranks of a round of it end together
  SizeTable held_posted;  ///< the same of one sent without blocking
  SizeTable own;          ///< a core copies its rank's own part of a collective
  SizeTable sums;         ///< a core sums what it received, of a vector of the size
  SizeTable inside;       ///< of a message to a rank of the same host, beyond its bytes
  // By the latency of the way between two hosts, ps:
  std::map<std::int64_t, SizeTable> latency;   ///< of a message beyond gap and bytes
  std::map<std::int64_t, SizeTable> blocking;  ///< more of a blocking send
  std::map<std::int64_t, SizeTable> both;      ///< more of blocking sends in both directions at once
  std::map<std::int64_t, SizeTable> least;     ///< such messages take at least: a core copies those of both ways
  std::map<std::int64_t, SizeTable> posted;    ///< more of sends that do not block
  std::vector<std::string> hosts;              ///< [rank]
};
/// Of the way with the nearest latency.
double at_way(const std::map<std::int64_t, SizeTable>& tables, double way_s, std::size_t bytes);

Settings read_settings(const std::string& path, std::string& fault);

/// A collective of a size.
struct Plan {
  std::vector<std::vector<RankRound>> ranks;
  double copied_bytes = 0;  ///< by a rank's core to and from temporaries of the call
};

/// Made once per collective and size.
class Plans {
 public:
  explicit Plans(const Settings& settings) : settings_(settings) {}
  const Plan& of(const models::mpi::Collective& asked);

 private:
  using Key = std::tuple<Benchmark, std::int64_t, int, std::vector<int>>;
  const Settings& settings_;
  std::map<Key, Plan> known_;
  int num_held_ = 0;  ///< rounds
};

}  // namespace fabricast::programs

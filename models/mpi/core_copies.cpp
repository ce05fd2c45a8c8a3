// SPDX-License-Identifier: Apache-2.0
#include "mpi/core_copies.hpp"

#include <algorithm>

#include "mpi/cache.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::mpi {

double Transfers::later_segments(const Message& message) const {
  if (message.protocol != "eager" || profile_.eager_bandwidth.bytes_per_s <= 0) return 0;
  return std::max(0.0, message.flow.bytes - static_cast<double>(profile_.eager_segment.value));
}

/// One way the copies of both sides overlap; a core that sends and receives makes one after the other.
void Transfers::share_core(Message& message, double bytes) const {
  if (bytes <= later_segments(message)) return;
  cap(message.flow, message.flow.bytes * profile_.eager_bandwidth.bytes_per_s / bytes,
      "copies of later segments, sent and received", own<"mpi.{}.eager_bandwidth">());
}

void Transfers::share_stream(Message& message, double seconds) const {
  cap(message.flow, message.flow.bytes / seconds, "TCP streams of one core", own<"mpi.{}.flow_bandwidth">());
}

namespace {

/// What comes over TCP to one rank its core takes in, by however many connections: no faster than one stream, which is
/// as fast as the core of its receiver. A sender's core does twice as much and is not limited [Cai et al.,
/// Understanding host network stack overheads, SIGCOMM 2021: 42 and 89 Gb/s].
void share_streams(const Transfers& transfers, const schedules::Round& round, std::vector<Message>& messages) {
  std::map<int, double> work;  // of the core of a receiver, s
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (messages[i].stream_rate > 0) work[round.steps[i].to] += messages[i].flow.bytes / messages[i].stream_rate;
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (messages[i].stream_rate > 0 && messages[i].flow.bytes > 0)
      transfers.share_stream(messages[i], work[round.steps[i].to]);
}

}  // namespace

std::map<int, Copies> share_cores(const Transfers& transfers, const schedules::Round& round,
                                  std::vector<Message>& messages) {
  share_streams(transfers, round, messages);
  std::map<int, Copies> copies;
  if (transfers.profile().eager_bandwidth.bytes_per_s <= 0) return copies;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].protocol != "eager") continue;
    const double later = transfers.later_segments(messages[i]);
    auto& sender = copies[round.steps[i].from];
    sender.sent += messages[i].flow.bytes;
    sender.later += later;
    auto& receiver = copies[round.steps[i].to];
    receiver.received += messages[i].flow.bytes;
    receiver.later += later;
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (transfers.later_segments(messages[i]) <= 0) continue;
    const auto& step = round.steps[i];
    transfers.share_core(messages[i], std::max(copies[step.from].later, copies[step.to].later));
  }
  return copies;
}

std::map<int, double> reads_in_turn(const std::vector<std::pair<int, int>>& ends,
                                    const std::vector<Message>& messages) {
  std::map<int, int> readers;
  for (std::size_t i = 0; i < messages.size(); ++i) readers[ends[i].first] += messages[i].is_read_from_sender() ? 1 : 0;
  std::map<int, double> seconds;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& message = messages[i];
    if (!message.is_read_from_sender()) continue;
    const bool is_alone = readers[ends[i].first] == 1;
    seconds[ends[i].first] += (is_alone ? message.receiver_copies : message.shared_read).seconds();
  }
  return seconds;
}

void share_copies_inside(const std::vector<std::pair<int, int>>& ends, std::vector<Message>& messages) {
  std::map<int, double> work;  // of a core
  auto read = reads_in_turn(ends, messages);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& message = messages[i];
    if (!message.is_copied_inside()) continue;
    work[ends[i].first] += message.sender_copies.seconds();
    work[ends[i].second] += message.receiver_copies.seconds();
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto& message = messages[i];
    if (!message.is_copied_inside()) continue;
    double busier = std::max(work[ends[i].first], work[ends[i].second]);
    if (message.is_rendezvous) busier = std::max(busier, read[ends[i].first]);
    if (busier <= 0) continue;
    const double rate = message.flow.bytes / busier;
    message.flow.rate_cap = std::min(message.flow.rate_cap, rate);
    if (message.window_rate > 0) message.window_rate = std::min(message.window_rate, rate);
  }
}

OwnCopy own_copy(const PlanContext& context, DeviceId memory, double bytes) {
  const auto& cache = of_processor(context, memory, "core_cache", "mpi.core_cache"_key);
  const double beyond = share_beyond_cache(2 * bytes, cache.value);
  const auto& copies = context.parameters.at("mpi.core_copy_bandwidth"_key);
  const auto& core = context.parameters.at("mpi.core_memory_bandwidth"_key);
  const double inside = bytes / copies.value;
  if (core.value <= 0) return {inside, &copies};
  const double in_cache = (1 - beyond) * inside;
  const double in_memory = beyond * (2 * bytes / core.value);
  return {in_cache + in_memory, in_memory > in_cache ? &core : &copies};
}

double beyond_core(const Transfers& transfers, double reduced, double sums, const std::map<int, Copies>& copies) {
  const auto& parameters = transfers.context().parameters;
  const double core = parameters.at("mpi.core_memory_bandwidth"_key).value;
  if (core <= 0) return 0;
  const auto in_cache = [](double bytes, double rate) { return rate > 0 ? bytes / rate : 0; };
  const double copy_rate = transfers.profile().eager_bandwidth.bytes_per_s;
  double copying = 0;
  for (const auto& [rank, of] : copies)
    copying = std::max(copying, (of.sent + 2 * of.received) / core - in_cache(of.sent + of.received, copy_rate));
  return std::max(0.0, 3 * reduced / core - sums) + copying;
}

}  // namespace fabricast::models::mpi

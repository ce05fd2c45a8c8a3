// SPDX-License-Identifier: Apache-2.0
// One point-to-point message between two end points, as terms (fixed times) and one flow (bytes over shared links).
//
// Between hosts the first packet pays every stage in turn (DMA read, each wire, DMA write), the rest follows at the
// rate of the slowest: time = overhead + latencies + min(S, MTU) x sum(1 / stage rates) + (S - MTU) / bottleneck, plus
// what the protocol adds: copies to bounce buffers (eager), control messages (rendezvous), or chunks staged through
// host memory. docs/MODELS.md, "Point to point".
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/parameter_name.hpp"
#include "mpi/profile.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::mpi {

/// Where a rank keeps its buffer and which HCAs it sends with, nearest first.
struct EndPoint {
  int host = 0;
  DeviceId memory;             ///< host memory of the rank
  DeviceId gpu;                ///< value -1 for host buffers
  std::vector<DeviceId> hcas;  ///< nearest first, already rotated for the rank
  DeviceId staged_gpu;         ///< whose data pass through `memory`; value -1 for none

  [[nodiscard]] bool is_device() const { return gpu.value >= 0; }
  /// What the end is known by: its GPU, else its memory.
  [[nodiscard]] DeviceId device() const { return is_device() ? gpu : memory; }
  /// The device that tells the end's VM.
  [[nodiscard]] DeviceId user() const { return staged_gpu.value >= 0 ? staged_gpu : device(); }
  /// The same end with its data in host memory.
  [[nodiscard]] EndPoint in_host_memory() const {
    EndPoint out = *this;
    if (is_device()) out.staged_gpu = gpu;
    out.gpu = DeviceId{};
    return out;
  }
};

struct Message {
  std::vector<Term> terms;  ///< fixed times, in order
  Flow flow;                ///< the bytes; its latency is part of `terms`, not repeated
  std::string
      protocol;  ///< eager, rendezvous, eager gdr, rendezvous gdr, staged, staged eager, gdrcopy, shared memory ...
  Duration gap;  ///< least time between messages of a pair
  Duration unpacking;              ///< part of `gap` that only the receiver's core takes
  std::string gap_parameter;       ///< what says most of `gap`; empty: the library's message gap
  Duration wire_gap;               ///< idle time of the connection between two messages of a window
  std::string wire_gap_parameter;  ///< what says so; empty: what says `gap`
  bool is_rendezvous = false;      ///< the sender is free when the receiver says that it has the data
  Duration round_trip;             ///< between hosts: of a packet and its acknowledgement, adapter to adapter
  Duration acknowledgement;        ///< a blocking send ends so long after the data have arrived
  Duration sender_copies;          ///< by the sender's core, of an eager message, beside `gap`
  Duration receiver_copies;        ///< by the receiver's; inside a host of a rendezvous too
  Duration shared_read;            ///< as `receiver_copies`, where others read the sender's memory at the same time
  Duration side;                   ///< host memory inside a host: each core's part of what `gap` has of both
  double stream_rate = 0;          ///< over TCP, bytes/s of `flow` that the receiver's core takes in; 0: adapters do
  double window_rate = 0;          ///< bytes/s of many in a row whose copies overlap; 0: as one by itself
  std::string reason;              ///< why this protocol, when it is not the first choice

  /// Least time between messages of this sender to several receivers.
  [[nodiscard]] Duration posting() const { return gap - unpacking; }
  /// What the sender's core takes for one of many, and the receiver's, when neither waits for the other. Who is the
  /// slower of both nobody measured: `gap` stands for either.
  [[nodiscard]] Duration of_sender() const {
    const bool is_copied_by_one = protocol.starts_with("cuda ipc");  // one of both starts the GPU's copy
    return is_copied_inside() || is_copied_by_one ? side : with_copies(posting(), sender_copies);
  }
  [[nodiscard]] Duration of_receiver() const { return is_copied_inside() ? side : with_copies(gap, receiver_copies); }
  /// Loads and stores of gdrcopy come after the core has handled the message; other copies hide its handling, or it
  /// them.
  [[nodiscard]] Duration with_copies(Duration handling, Duration copies) const {
    return protocol == "eager, gdrcopy" ? handling + copies : std::max(handling, copies);
  }
  /// Host memory to host memory of one host, copied by cores.
  [[nodiscard]] bool is_copied_inside() const { return protocol == "shared memory"; }
  [[nodiscard]] bool is_read_from_sender() const { return is_copied_inside() && is_rendezvous; }
  /// Not by the receiver's core.
  [[nodiscard]] bool is_written_by_adapter() const { return !is_copied_inside() && is_rendezvous; }
};

class Transfers {
 public:
  Transfers(const PlanContext& context, Profile profile) : context_(context), profile_(std::move(profile)) {}

  /// One message of `size` from one end point to the other; `is_kept`: nobody writes to what it is read from.
  [[nodiscard]] Message message(const EndPoint& from, const EndPoint& to, Bytes size, std::uint64_t flow = 0,
                                bool is_kept = false) const;

  /// From now on messages are part of a window: several in flight may use several HCAs.
  void assume_window() {
    profile_.eager_bandwidth = Bandwidth{};
    assume_posted();
  }

  /// From now on nobody writes to the buffers between messages, as in OSU's tests of pairs.
  void assume_kept_buffers() { profile_.keeps_buffers = true; }

  /// From now on every message is a blocking send.
  void assume_blocking() {
    profile_.eager_limit = profile_.blocking_eager_limit;
    profile_.device_eager_limit = profile_.blocking_device_eager_limit;
  }

  /// From now on no message is a blocking send.
  void assume_posted() { profile_.inside_eager_limit = profile_.posted_inside_eager_limit; }

  /// From now on data are fetched by the receiver: the DMA read at the far side is part of the request's latency.
  void assume_reads() { profile_.inline_limit = Bytes{std::int64_t{1} << 40}; }

  /// A window of `message` may be longer than what a connection of the adapter moves at its best: the mean of both
  /// rates.
  void slow_after_burst(Message& message, const EndPoint& from, const EndPoint& to, std::int64_t window) const;

  /// Turns `message` into a window of them on `connections` connections: each idles for the wire gap after a message.
  void repeat(Message& message, std::int64_t window, int connections) const;

  /// Bytes of an eager message between hosts that a core copies to or from bounce buffers beyond the first segment; 0
  /// of others.
  [[nodiscard]] double later_segments(const Message& message) const;

  /// `message` has later segments; the busier of both cores copies `bytes` of such for all its messages of the round.
  void share_core(Message& message, double bytes) const;

  /// `message` comes over TCP beside others: its receiver's core takes `seconds` for all of them.
  void share_stream(Message& message, double seconds) const;

  /// One control message between the two (eager, no payload): used for acknowledgements and rendezvous.
  [[nodiscard]] Duration control_latency(const EndPoint& from, const EndPoint& to) const;

  /// Software of one message in shared memory.
  [[nodiscard]] Term shared_memory_software(const EndPoint& from, bool is_of_host, Bytes size) const;

  /// Up to which size adapters read and write the GPUs of `ends` (those of several hosts), or why not.
  [[nodiscard]] GivenUsed gpudirect_setting(const std::vector<EndPoint>& ends) const;

  /// What says how closely messages like this one follow each other.
  [[nodiscard]] std::string gap_parameter_of(const Message& message) const {
    return message.gap_parameter.empty() ? named<"mpi.{}.message_gap">(profile_.name) : message.gap_parameter;
  }

  [[nodiscard]] const Profile& profile() const { return profile_; }
  [[nodiscard]] const PlanContext& context() const { return context_; }

 private:
  struct Stages;
  [[nodiscard]] Message within_host(const EndPoint& from, const EndPoint& to, Bytes size, bool is_kept) const;
  [[nodiscard]] Message over_network(const EndPoint& from, const EndPoint& to, Bytes size, std::uint64_t flow) const;
  [[nodiscard]] Message staged(const EndPoint& from, const EndPoint& to, Bytes size, std::uint64_t flow,
                               std::string reason) const;
  [[nodiscard]] Message host_or_direct(const EndPoint& from, const EndPoint& to, Bytes size, std::uint64_t flow,
                                       bool direct_from, bool direct_to) const;
  [[nodiscard]] std::string why_not_direct(const EndPoint& end, DeviceId hca, Bytes size) const;
  [[nodiscard]] std::size_t usable_rails(const EndPoint& end, bool is_direct) const;
  [[nodiscard]] const Parameter& on_processor(const std::string& usual, const EndPoint& end) const;
  [[nodiscard]] const Parameter& gdrcopy_read(const EndPoint& end) const;
  [[nodiscard]] const Parameter& gdrcopy_read_inside(const EndPoint& end) const;
  [[nodiscard]] const Parameter& gdrcopy_write(const EndPoint& end) const;
  /// Copies of an eager message through bounce buffers, and the rate they leave.
  void add_eager_copies(Message& message, const EndPoint& from, const EndPoint& to, Bytes size, bool direct_from,
                        bool direct_to) const;
  void add_rate_caps(Message& message, const EndPoint& from, const EndPoint& to, int rails) const;
  void set_gaps(Message& message, const EndPoint& from, const EndPoint& to, Bytes size, bool is_eager, bool direct_from,
                bool direct_to) const;
  [[nodiscard]] bool is_inline(Bytes size, bool direct_from) const;
  [[nodiscard]] double num_segments(Bytes size) const;
  void add_device_handling(Message& message, const EndPoint& end, bool is_eager) const;
  void cap(Flow& flow, double bytes_per_s, std::string name, std::string parameter) const;
  /// Its term where a core makes it, by gdrcopy; nothing where the GPU's engine does.
  std::optional<Term> add_bounce_copy(Message& message, const EndPoint& end, Bytes size, bool is_sender,
                                      double copy_rate) const;
  void add_eager_inside(Message& message, const EndPoint& from, const EndPoint& to, Bytes size) const;
  void add_eager_by_engines(Message& message, const EndPoint& from, Bytes size) const;
  void add_core_copies(Message& message, const EndPoint& from, Bytes size, bool is_kept) const;
  void add_copy_inside_gpu(Message& out, DeviceId gpu) const;
  void add_way_between_gpus(Message& out, const EndPoint& from, const EndPoint& to, Bytes size, Route& route) const;
  void add_staged_inside(Message& message, const EndPoint& from, const EndPoint& to, Bytes size, Route& route) const;
  [[nodiscard]] Route network_route(const EndPoint& from, const EndPoint& to, std::size_t rail, std::uint64_t flow,
                                    bool direct_from, bool direct_to) const;
  [[nodiscard]] Term term(std::string name, const std::string& parameter, double times = 1) const {
    return parameter_term(context_.parameters, std::move(name), parameter, times);
  }
  /// The name of a value of this library, with "{}" for its own.
  template <parameter_table::Literal Pattern>
  [[nodiscard]] auto own() const {
    return named<Pattern>(profile_.name);
  }

  PlanContext context_;
  Profile profile_;
};

}  // namespace fabricast::models::mpi

// SPDX-License-Identifier: Apache-2.0
// NVLink SHARP: the switch reduces and multicasts; between hosts (NVLSTree) every HCA carries its share up and down a
// tree.
#include "nccl/schedules/schedule.hpp"

namespace fabricast::models::nccl {

namespace {

class NvlinkSharp : public Schedule {
 public:
  using Schedule::Schedule;

  [[nodiscard]] Work work(const Cut&) const override {
    return {op_.size / (op_.group.gpus_of_host * (op_.is_in_one_host() ? 1.0 : 2.0 * op_.group.graph_channels)), 0, 1};
  }
  [[nodiscard]] bool polls_flags() const override { return false; }
  [[nodiscard]] bool is_limited_by_thread_block() const override { return false; }
  [[nodiscard]] std::string store_name() const override { return op_.is_in_one_host() ? "nvls" : "nvls_tree"; }
  [[nodiscard]] std::string slice_name() const override { return "nvls"; }
  [[nodiscard]] double redirected_share() const override { return 0; }

 protected:
  [[nodiscard]] double bytes_per_channel() const override { return op_.size; }
  [[nodiscard]] double bytes_per_step(double per_channel) const override { return per_channel / op_.num_ranks(); }
  [[nodiscard]] double largest_chunk(double) const override {
    return op_.is_in_one_host() ? buffer_chunk("ring") : tree_chunk();
  }

 private:
  /// NVLSTree: chunks of every GPU's share in every channel, smaller while they would not fill the pipeline, and from
  /// four hosts on at most half as large (NVIDIA/nccl src/enqueue.cc, calcCollChunking). In units of the flow, half a
  /// channel.
  [[nodiscard]] double tree_chunk() const {
    const double chunks_at_once = op_.channels * op_.group.gpus_of_host;
    const double largest = op_.parameter("nccl.chunk.nvls").value;
    double chunk = op_.group.num_hosts >= 4 ? largest / 2 : largest;
    const auto halve = [&](double passes, double above) {
      if (op_.size < passes * chunks_at_once * chunk && chunk > above) chunk /= 2;
    };
    halve(4, largest / 2);
    halve(1, largest / 4);
    return chunk * op_.channels / (2.0 * op_.group.graph_channels);
  }
};

}  // namespace

std::unique_ptr<Schedule> make_nvls(const Operation& operation) { return std::make_unique<NvlinkSharp>(operation); }

}  // namespace fabricast::models::nccl

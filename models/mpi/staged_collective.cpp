// SPDX-License-Identifier: Apache-2.0
#include "mpi/staged_collective.hpp"

#include <algorithm>
#include <utility>

#include "fabricast/models/planner.hpp"
#include "mpi/flow_rates.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::mpi {

namespace {

constexpr Bytes k_naive_all_to_all{262'144};    ///< rdma_cuda_alltoall_naive_limit, of a block; larger groups in parts
constexpr Bytes k_naive_all_gather{1'048'576};  ///< rdma_cuda_allgather_naive_limit, of all blocks
constexpr Bytes k_naive_broadcast{2'097'152};   ///< rdma_cuda_bcast_naive_limit
constexpr Bytes k_naive_gather{32'768};         ///< rdma_cuda_gather_naive_limit, of all blocks

/// Bytes that a rank copies out of its GPU and into it, one after the other.
std::pair<std::int64_t, std::int64_t> copied(Benchmark benchmark, int num_ranks, Bytes size) {
  const auto all = num_ranks * size.value;
  switch (benchmark) {
    case Benchmark::osu_alltoall:
      return {all, all};
    case Benchmark::osu_allgather:
    case Benchmark::osu_gather:
      return {size.value, all};
    default:
      return {size.value, size.value};
  }
}

class StagedCollective : public Planner {
 public:
  StagedCollective(const PlanContext& context, Bytes direct_limit, Benchmark benchmark, EndPoint end,
                   std::unique_ptr<Planner> on_devices, std::unique_ptr<Planner> on_host)
      : context_(context),
        direct_limit_(direct_limit),
        benchmark_(benchmark),
        end_(std::move(end)),
        on_devices_(std::move(on_devices)),
        on_host_(std::move(on_host)) {}

  [[nodiscard]] OperationPlan plan(Bytes size) const override {
    if (size <= direct_limit_ || !are_buffers_copied_whole(benchmark_, num_ranks(), size))
      return on_devices_->plan(size);
    auto plan = on_host_->plan(size);
    const auto [out, in] = copied(benchmark_, num_ranks(), size);
    plan.before.push_back(copy(out, true));
    plan.before.push_back(copy(in, false));
    plan.protocol = "staged";
    return plan;
  }
  [[nodiscard]] int num_ranks() const override { return on_devices_->num_ranks(); }
  [[nodiscard]] int num_hosts() const override { return on_devices_->num_hosts(); }
  [[nodiscard]] std::vector<std::string> devices() const override { return on_devices_->devices(); }
  [[nodiscard]] std::vector<GivenUsed> settings() const override { return on_devices_->settings(); }
  [[nodiscard]] std::vector<std::string> assumptions() const override {
    auto out = on_devices_->assumptions();
    out.emplace_back(
        "MVAPICH2 copies device buffers of some sizes to the host and back, whole, as its CUDA build does");
    std::sort(out.begin(), out.end());
    return out;
  }
  [[nodiscard]] std::vector<std::string> stand_ins() const override { return on_devices_->stand_ins(); }

 private:
  [[nodiscard]] Term copy(std::int64_t bytes, bool is_out) const {
    Route route;
    add_host_copy(context_, end_.gpu, end_.memory, is_out, route);
    const double rate = bottleneck(context_, route.crossings);
    const auto& start = context_.parameters.at("cuda.copy_overhead"_key);
    return {is_out ? "the buffer copied to the host" : "the buffer copied to the GPU",
            from_seconds(start.value + static_cast<double>(bytes) / rate), start.name, start.source};
  }

  PlanContext context_;
  Bytes direct_limit_;  ///< messages of up to this size go between GPUs
  Benchmark benchmark_;
  EndPoint end_;
  std::unique_ptr<Planner> on_devices_, on_host_;
};

}  // namespace

bool may_copy_buffers_whole(const Profile& profile, Benchmark benchmark) {
  return profile.implementation == "mvapich2-gdr" && are_buffers_copied_whole(benchmark, 1, Bytes{1});
}

bool are_buffers_copied_whole(Benchmark benchmark, int num_ranks, Bytes size) {
  switch (benchmark) {
    case Benchmark::osu_alltoall:
      return size <= k_naive_all_to_all;
    case Benchmark::osu_allgather:
      return num_ranks * size <= k_naive_all_gather;
    case Benchmark::osu_gather:
      return num_ranks * size <= k_naive_gather;
    case Benchmark::osu_bcast:
      return size <= k_naive_broadcast;
    default:
      return false;
  }
}

std::unique_ptr<Planner> make_staged_collective(const PlanContext& context, const Profile& profile, Benchmark benchmark,
                                                const EndPoint& end, std::unique_ptr<Planner> on_devices,
                                                std::unique_ptr<Planner> on_host) {
  return std::make_unique<StagedCollective>(context, profile.gpudirect_limit, benchmark, end, std::move(on_devices),
                                            std::move(on_host));
}

}  // namespace fabricast::models::mpi

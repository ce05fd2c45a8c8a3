// SPDX-License-Identifier: Apache-2.0
// Variables of UCX, Open MPI and MVAPICH2 that a job script sets: keys of the suggested entry, or what is said of them.
#include "fit/mpi_environment.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

using namespace fabricast;
using namespace fabricast::fit;

namespace {

using Environment = std::map<std::string, std::string>;

SuggestedLog of(const Environment& environment, Benchmark benchmark = Benchmark::osu_latency,
                BufferPlace place = BufferPlace::host) {
  MeasuredLog log;
  log.benchmark = benchmark;
  log.header.environment = environment;
  log.header.send_buffer = log.header.receive_buffer = place;
  SuggestedLog out;
  add_mpi_environment(log, out);
  return out;
}

std::string software(const Environment& environment, BufferPlace place = BufferPlace::host) {
  return flow_mapping(of(environment, Benchmark::osu_latency, place).software);
}

}  // namespace

TEST_CASE("UCX_TLS means TCP only where no transport over verbs is left, and says what ranks of a host do") {
  CHECK(software({{"UCX_TLS", "tcp,self,sm"}}) == "{transport: tcp}");
  CHECK(software({{"UCX_TLS", "^rc,ud,dc"}}) == "{transport: tcp}");
  CHECK(software({{"UCX_TLS", "^ib"}}) == "{transport: tcp}");
  for (const std::string list : {"rc,tcp,sm", "rc_x,tcp,sm", "all", "^tcp", "ib,sm,self", "dc_mlx5,sm", "^rc"}) {
    CAPTURE(list);
    CHECK(software({{"UCX_TLS", list}}) == "{}");
  }
  CHECK(software({{"UCX_TLS", "rc,posix,sysv,self"}}) == "{cross_memory_attach: off}");
  CHECK(software({{"UCX_TLS", "^cma"}}) == "{cross_memory_attach: off}");
  CHECK(software({{"UCX_TLS", "rc,sm,cuda_copy,cuda_ipc"}}, BufferPlace::device) == "{gdrcopy: off}");
  CHECK(software({{"UCX_TLS", "rc,sm,cuda"}}, BufferPlace::device) == "{}");
  CHECK(of({{"UCX_TLS", "ib"}}).comments.size() == 1);
  CHECK(of({{"UCX_TLS", "ib"}}).read.contains("UCX_TLS"));
}

TEST_CASE("limits, switches and libraries of the environment become keys with the sizes that the libraries mean") {
  CHECK(software({{"UCX_RNDV_THRESH", "8k"}}) == "{eager_limit: 8191 B}");
  CHECK(software({{"UCX_RNDV_THRESH", "65536"}}) == "{eager_limit: 65535 B}");
  CHECK(software({{"UCX_RNDV_FRAG_SIZE", "host:1M,cuda:4M"}}) == "{staging_chunk: 1048576 B}");
  for (const std::string text : {"auto", "intra:8k,inter:16k", "cuda:8k", "much", "0"}) {
    CAPTURE(text);
    CHECK(software({{"UCX_RNDV_THRESH", text}}) == "{}");
    CHECK(of({{"UCX_RNDV_THRESH", text}}).read.contains("UCX_RNDV_THRESH") == (text == "auto"));
  }
  CHECK(software({{"UCX_IB_GPU_DIRECT_RDMA", "no"}}) == "{gpudirect_rdma: off}");
  CHECK(software({{"UCX_IB_GPU_DIRECT_RDMA", "try"}}) == "{}");
  CHECK(software({{"MV2_GPUDIRECT_LIMIT", "8192"}, {"MV2_USE_GDRCOPY", "0"}}) ==
        "{gpudirect_limit: 8192 B, gdrcopy: off}");
  CHECK(software({{"OMPI_MCA_pml", "ucx"}, {"OMPI_MCA_btl", "^openib"}}) == "{mpi: open-mpi-ucx}");
  CHECK(software({{"OMPI_MCA_pml", "ob1"}, {"OMPI_MCA_btl", "tcp,self,vader"}}) ==
        "{mpi: open-mpi-openib, transport: tcp}");
  CHECK(software({{"OMPI_MCA_btl", "openib,tcp,self"}}) == "{mpi: open-mpi-openib}");
  CHECK(software({{"OMPI_MCA_btl", "^openib"}}) == "{}");
  CHECK(software({{"OMPI_MCA_coll_ucc_enable", "1"}, {"OMPI_MCA_coll_hcoll_enable", "0"}}) == "{mpi_collectives: ucc}");
}

TEST_CASE("a forced algorithm counts where its collective ran and Open MPI was told to read it") {
  const Environment forced{{"OMPI_MCA_coll_tuned_allreduce_algorithm", "4"},
                           {"OMPI_MCA_coll_tuned_use_dynamic_rules", "1"}};
  CHECK(flow_mapping(of(forced, Benchmark::osu_allreduce).workload) == "{algorithm: ring}");
  CHECK(of(forced, Benchmark::osu_bcast).workload.empty());
  const auto unread = of({{"OMPI_MCA_coll_tuned_allreduce_algorithm", "4"}}, Benchmark::osu_allreduce);
  CHECK(unread.workload.empty());
  CHECK(unread.comments.size() == 1);
  const Environment segmented{{"OMPI_MCA_coll_tuned_allreduce_algorithm", "5"},
                              {"OMPI_MCA_coll_tuned_use_dynamic_rules", "true"}};
  CHECK(of(segmented, Benchmark::osu_allreduce).workload.empty());
  CHECK_FALSE(of(segmented, Benchmark::osu_allreduce).read.contains("OMPI_MCA_coll_tuned_allreduce_algorithm"));
}

TEST_CASE("of other variables some change no time, for some something else stands") {
  CHECK(mpi_variable_hint("UCX_LOG_LEVEL") == std::string());
  CHECK(mpi_variable_hint("OMPI_MCA_orte_base_help_aggregate") == std::string());
  CHECK(mpi_variable_hint("UCX_NET_DEVICES").value_or("").find("adapters") != std::string::npos);
  CHECK(mpi_variable_hint("UCX_MAX_RNDV_RAILS").value_or("").find("mpi.open-mpi-ucx.max_rails") != std::string::npos);
  CHECK_FALSE(mpi_variable_hint("OMPI_MCA_btl_tcp_links").has_value());
}

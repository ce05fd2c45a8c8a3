// SPDX-License-Identifier: Apache-2.0
// UCX's threshold of a rendezvous between hosts.
#include "mpi/ucx_threshold.hpp"

#include <doctest/doctest.h>

#include <cstdint>

#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::models::mpi;

namespace {

PlannedPort infiniband(double gigabits) { return {gigabits * 1e9 / 8, 0.993, false}; }
PlannedPort ethernet(double gigabits) { return {gigabits * 1e9 / 8, 0.98, true}; }

std::int64_t longest(const PlannedPort& port, int num_ports = 1, bool is_amd = false) {
  return longest_eager_of_ucx(port, num_ports, is_amd).value;
}

}  // namespace

TEST_CASE("the size at which two processes with one port gain by a rendezvous, computed apart") {
  // EDR: 4 latencies of 0.6 us and three overheads of 40 ns, against 1 / 5800 MiB/s - 0.99 / 12.41 GB/s a byte.
  const double rate = 12.5e9 * 0.993, copy = 5800 * 1048576.0;
  const double gain = 0.99 * (90e-9 + 4 * 0.6e-6 + 3 * 40e-9) - 90e-9 - 40e-9;
  CHECK(longest(infiniband(100)) == static_cast<std::int64_t>(gain / (1 / copy - 0.99 / rate)) - 1);
}

TEST_CASE("published tables switch where UCX's plan does") {
  // osu_mbw_mr of hosts with two EDR and with four HDR ports (Xeon): one port up to 16 KiB, several from 32 KiB on.
  for (const auto& port : {infiniband(100), infiniband(200)}) {
    CHECK(longest(port, 2) >= 16 << 10);
    CHECK(longest(port, 2) < 32 << 10);
  }
}

TEST_CASE("slow ports leave messages eager longer, RoCE longer than InfiniBand, AMD's slower copies less long") {
  CHECK(longest(ethernet(25)) > 512 << 10);
  CHECK(longest(infiniband(54.5)) > 128 << 10);
  CHECK(longest(ethernet(100)) > longest(infiniband(100)));
  CHECK(longest(infiniband(100)) > longest(infiniband(100), 1, true));
  // Two slow ports are read by together.
  CHECK(longest(infiniband(54.5), 2) < longest(infiniband(54.5)) / 2);
}

TEST_CASE("from 100 Gb/s on a faster port never raises the threshold, and nothing that fits a buffer is announced") {
  for (std::uint64_t seed = 0; seed < test::draws(200); ++seed) {
    test::Random random(seed);
    CAPTURE(seed);
    const double gigabits = 100 + static_cast<double>(random.next(700));
    const int ports = 1 + static_cast<int>(random.next(4));
    const bool is_amd = random.next(2) == 1, is_roce = random.next(2) == 1;
    const auto of = [&](double speed) {
      return longest_eager_of_ucx({speed * 1e9 / 8, 0.98, is_roce}, ports, is_amd).value;
    };
    CHECK(of(1.5 * gigabits) <= of(gigabits));
    CHECK(of(1000 * gigabits) >= 8'255);
  }
}

TEST_CASE("over TCP UCX plans with 50 us of software at each end, so that little is announced before 1.16") {
  // 25 Gb/s: 4 latencies of 5.2 us and three overheads of 50 us less one, against 1 % of the planned rate.
  const double rate = 2200 * 1048576.0, gain = 0.99 * (4 * (5.2e-6 + 576 / 25e9) + 150e-6) - 50e-6;
  const auto of = [](const PlannedPort& port, std::int64_t segment, bool is_capped = true) {
    return longest_eager_of_ucx_over_tcp(port, Bytes{segment}, is_capped, false).value;
  };
  CHECK(of(ethernet(25), 0) == static_cast<std::int64_t>(gain / (0.01 / rate)) - 1);
  CHECK(of(ethernet(25), 65536) == static_cast<std::int64_t>(gain / (0.01 / rate + 50e-6 / 65536)) - 1);
  // Pieces of 8 KiB make copies dear; without the cap a port of 100 Gb/s is planned faster than a core copies.
  CHECK(of(ethernet(25), 8192) < of(ethernet(25), 65536) / 4);
  CHECK(of(ethernet(100), 0, false) < of(ethernet(100), 0) / 10);
  CHECK(of(ethernet(400), 0) > 8'255);
}

TEST_CASE("GPU memory is planned by the distance to its adapter: tables of two sites switch where it says") {
  const auto of = [](const PlannedPort& port, bool has_one_root, bool is_amd) {
    return longest_eager_of_ucx(port, planned_gpu_rate_of_ucx(has_one_root, is_amd)).value;
  };
  // osu_bw of V100 below one root complex: 128 KiB by copies, 256 KiB not.
  CHECK(of(infiniband(100), true, false) >= 128 << 10);
  CHECK(of(infiniband(100), true, false) < 256 << 10);
  // osu_latency of A100 across the roots of an EPYC: 256 KiB by copies, 512 KiB not.
  CHECK(of(infiniband(200), false, true) >= 256 << 10);
  CHECK(of(infiniband(200), false, true) < 512 << 10);
  // Across Intel's roots UCX expects so little of the adapter that copies lose early.
  CHECK(of(infiniband(200), false, false) < of(infiniband(200), true, false) / 4);
  // What a slow port limits the distance does not.
  CHECK(of(ethernet(10), true, false) == of(ethernet(10), false, true));
}

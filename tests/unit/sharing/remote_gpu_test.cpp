// SPDX-License-Identifier: Apache-2.0
// Limits and laws of calls to a remote GPU.
#include <doctest/doctest.h>

#include "fabricast/load.hpp"
#include "fabricast/models/virtualization.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using namespace fabricast::models;

namespace {

const ParameterSet& parameters() {
  static const auto all = load_shipped_parameters();
  return *all;
}

/// ResNet-50 on a V100, 128 images of 224 x 224 per step.
RemoteGpuStep step() {
  RemoteGpuStep out;
  out.compute = 350_ms;
  out.calls = 1500;
  out.to_gpu = 77_MiB;
  return out;
}

RemotePath rdma() { return {true, 3_us, Bandwidth{11.5e9}, Bandwidth{12e9}}; }
RemotePath tcp(Bytes mtu, Bandwidth link = 10_Gbps) {
  return {false, 25_us, tcp_stream_rate(parameters(), link, mtu), Bandwidth{12e9}};
}

double overhead(const RemotePath& path, const RemoteGpuStep& of = step()) {
  const auto one = remote_gpu_step(parameters(), of, path);
  return one.remote.seconds() / one.local.seconds() - 1;
}

}  // namespace

TEST_CASE("large batches lose little over RDMA and much over 10 Gb/s TCP") {
  CHECK(overhead(rdma()) < 0.10);
  CHECK(overhead(tcp(Bytes{1500})) > 0.15);
  CHECK(overhead(tcp(Bytes{1500})) > 3 * overhead(rdma()));
}

TEST_CASE("packets of 1500 bytes cost more than jumbo frames, most on a fast link") {
  CHECK(tcp_stream_rate(parameters(), 10_Gbps, Bytes{9000}) > tcp_stream_rate(parameters(), 10_Gbps, Bytes{1500}));
  // 10 GbE: 1448 of 1538 bytes on the wire are payload.
  CHECK(tcp_stream_rate(parameters(), 10_Gbps, Bytes{1500}).bytes_per_s == test::approx(1.25e9 * 1448 / 1538));
  const double fast = overhead(tcp(Bytes{1500}, 100_Gbps)) - overhead(tcp(Bytes{9000}, 100_Gbps));
  CHECK(fast > 0);
  CHECK(tcp_stream_rate(parameters(), 100_Gbps, Bytes{9000}).bytes_per_s >
        2 * tcp_stream_rate(parameters(), 100_Gbps, Bytes{1500}).bytes_per_s);
}

TEST_CASE("half a GPU takes twice the compute time, and a call more never less time") {
  auto half = step();
  half.share = 0.5;
  const auto whole = remote_gpu_step(parameters(), step(), rdma());
  const auto part = remote_gpu_step(parameters(), half, rdma());
  CHECK(part.remote - whole.remote == 350_ms);
  auto more = step();
  more.calls *= 2;
  CHECK(remote_gpu_step(parameters(), more, rdma()).remote > whole.remote);
}

TEST_CASE("without calls and data a remote GPU is as fast as a local one") {
  RemoteGpuStep pure;
  pure.compute = 1_ms;
  const auto one = remote_gpu_step(parameters(), pure, tcp(Bytes{1500}));
  CHECK(one.remote == one.local);
  CHECK(one.remote == 1_ms);
}

TEST_CASE("terms of a remote step add up, and assumed values give a wide interval") {
  const auto one = remote_gpu_step(parameters(), step(), tcp(Bytes{9000}));
  Duration sum;
  for (const auto& term : one.terms) sum += term.time;
  CHECK(sum == one.remote);
  CHECK(one.low < one.remote);
  CHECK(one.high > one.remote);
  for (const auto* name : {"remote_gpu.waiting_share", "remote_gpu.rdma_call_time", "remote_gpu.tcp_call_time"}) {
    CHECK(parameters().at(name).confidence == Confidence::assumed);
    CHECK(parameters().at(name).high >= 3 * parameters().at(name).low);
  }
}

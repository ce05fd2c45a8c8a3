// SPDX-License-Identifier: Apache-2.0
// Channels between the sizes at which NCCL opens one more.
#include "nccl/filling.hpp"

#include <doctest/doctest.h>

#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using namespace fabricast::models::nccl;

namespace {

/// LL of a ring of eight: a channel for every 8 ranks x 8 B x 512 threads = 32 KiB.
CommunicatorFacts eight_ranks() {
  CommunicatorFacts facts;
  facts.num_ranks = 8;
  facts.compute_capability = 90;
  facts.graph_channels = 12;
  facts.channel_gb_per_s = 30;
  return facts;
}

const Choice k_ll{Algorithm::ring, Protocol::ll};

}  // namespace

TEST_CASE("at the sizes at which NCCL opens a channel there are as many as it opens") {
  for (int channels = 1; channels <= 24; ++channels) {
    const Bytes size{channels * 32768};
    CHECK(filled_channels(eight_ranks(), k_ll, size, 24) == test::approx(channels));
    CHECK(filled_use(eight_ranks(), k_ll, size, 24).channels == channels);
  }
}

TEST_CASE("in between the next channel opens early and fills, below the first size there is one, at the end all") {
  CHECK(filled_channels(eight_ranks(), k_ll, 48_KiB, 24) == test::approx(1.5));
  CHECK(filled_use(eight_ranks(), k_ll, 48_KiB, 24).channels == 2);
  CHECK(filled_use(eight_ranks(), k_ll, 48_KiB, 24).filled == test::approx(1.5));
  CHECK(filled_channels(eight_ranks(), k_ll, 112_KiB, 24) == test::approx(3.5));
  CHECK(filled_channels(eight_ranks(), k_ll, 1_KiB, 24) == 1);
  CHECK(filled_channels(eight_ranks(), k_ll, 31_KiB, 24) == 1);
  CHECK(filled_channels(eight_ranks(), k_ll, 1_GiB, 24) == 24);
  CHECK(filled_channels(eight_ranks(), k_ll, 1_GiB, 5) == 5);
}

TEST_CASE("with more bytes a channel never has less, and there are never fewer") {
  for (const auto& choice : {k_ll, Choice{Algorithm::ring, Protocol::ll128}, Choice{Algorithm::ring, Protocol::simple},
                             Choice{Algorithm::tree, Protocol::simple}}) {
    double channels = 0;
    double each = 0;
    for (std::int64_t size = 8; size < 4'000'000; size += 1 + size / 97) {
      CAPTURE(size);
      const double filled = filled_channels(eight_ranks(), choice, Bytes{size}, 24);
      CHECK(filled >= channels - 1e-9);
      CHECK(static_cast<double>(size) / filled >= each - 1e-6);
      channels = filled;
      each = static_cast<double>(size) / filled;
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
#include "training/buckets.hpp"

#include <algorithm>

namespace fabricast::models::training {

namespace {

constexpr Bytes k_first_cap{1 << 20};
constexpr Bytes k_other_cap{25 << 20};

}  // namespace

std::vector<Bucket> ddp_buckets(std::span<const GradientTensor> tensors, std::optional<Bytes> cap) {
  std::vector<Bucket> buckets;
  Bucket open;
  for (const auto& tensor : tensors) {
    open.bytes += tensor.bytes;
    ++open.tensors;
    open.ready = std::max(open.ready, tensor.ready);
    const auto limit = cap.value_or(buckets.empty() ? k_first_cap : k_other_cap);
    if (open.bytes < limit) continue;
    buckets.push_back(open);
    open = {};
  }
  if (open.tensors > 0) buckets.push_back(open);
  // A bucket is sent after the ones before it.
  for (std::size_t b = 1; b < buckets.size(); ++b) buckets[b].ready = std::max(buckets[b].ready, buckets[b - 1].ready);
  return buckets;
}

std::vector<Bucket> horovod_buffers(std::span<const GradientTensor> tensors, Bytes fusion, Duration cycle) {
  std::vector<Bucket> buffers;
  for (const auto& tensor : tensors) {
    // Cycles are not in step with the backward pass: a tensor waits half of one in the mean.
    const auto found = cycle.ps > 0 ? Duration{tensor.ready.ps / cycle.ps * cycle.ps + cycle.ps / 2} : Duration{};
    const auto seen = std::max(found, tensor.ready);
    const bool fits = !buffers.empty() && buffers.back().ready == seen && buffers.back().bytes + tensor.bytes <= fusion;
    if (!fits) buffers.push_back({{}, 0, seen});
    buffers.back().bytes += tensor.bytes;
    ++buffers.back().tensors;
  }
  return buffers;
}

}  // namespace fabricast::models::training

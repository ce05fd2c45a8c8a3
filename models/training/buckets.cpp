// SPDX-License-Identifier: Apache-2.0
#include "training/buckets.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace fabricast::models::training {

namespace {

constexpr Bytes k_first_cap{1 << 20};
constexpr Bytes k_other_cap{25 << 20};
constexpr int k_double_bytes = 8;

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

std::vector<Bucket> horovod_buffers(std::span<const GradientTensor> tensors, Bytes fusion, Duration cycle,
                                    const std::function<Duration(const Bucket&)>& busy) {
  std::vector<Bucket> buffers;
  std::size_t first = 0;  // buffer of the round that is being filled
  Duration round, free;   // when the round was found, and when those before it leave the thread
  Duration last;
  for (const auto& tensor : tensors) last = std::max(last, tensor.ready);
  for (const auto& tensor : tensors) {
    // Cycles are not in step with the backward pass: its last gradient waits half of one in the mean.
    const auto before_last = last.ps + cycle.ps / 2 - tensor.ready.ps;
    const auto seen = cycle.ps > 0 ? tensor.ready + Duration{before_last % cycle.ps} : tensor.ready;
    const bool is_same_round = !buffers.empty() && std::max(seen, free) == round;
    if (!is_same_round) {
      if (busy && !buffers.empty()) {
        free = round;
        for (std::size_t b = first; b < buffers.size(); ++b) free += busy(buffers[b]);
      }
      first = buffers.size();
      round = std::max(seen, free);
    }
    const bool fits = is_same_round && buffers.back().bytes + tensor.bytes <= fusion;
    if (!fits) buffers.push_back({});
    auto& open = buffers.back();
    open.bytes += tensor.bytes;
    ++open.tensors;
    open.ready = std::max(open.ready, seen);
  }
  return buffers;
}

Bytes fusion_threshold(Bytes asked, int local_size) {
  const std::int64_t whole = std::int64_t{k_atomic_unit} * k_double_bytes * local_size;
  if (asked.value > std::numeric_limits<std::int64_t>::max() - whole) return asked;
  return Bytes{(asked.value + whole - 1) / whole * whole};
}

}  // namespace fabricast::models::training

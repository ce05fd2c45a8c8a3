// SPDX-License-Identifier: Apache-2.0
#include "nccl/pair_channels.hpp"

#include <algorithm>

namespace fabricast::models::nccl {

PairChannels channels_of_pair(const Software& software, const Communicator& group, const Pattern& pattern) {
  const int release = release_number(software.nccl_version);
  const double limit = group.library == Library::rccl ? 64 : 32;
  PairChannels out;
  while (out.all < static_cast<double>(group.channels) && out.all < limit) out.all *= 2;
  const double ranks = group.num_ranks;
  out.most = std::min<double>(out.all, pattern.pair_channels);
  while (release >= 208 && release < 220 && out.most > 1 && out.most * ranks > 4 * out.all) out.most /= 2;
  out.least = out.most;
  while (release >= 208 && out.least > 1 && out.least * ranks > out.all) out.least /= 2;
  return out;
}

bool cuts_lines_apart(const Software& software, Library library) {
  const int release = release_number(software.nccl_version);
  return library == Library::nccl && release >= 222 && release < 229;
}

double largest_ll_of_pair(const Software& software, const Communicator& group, const Pattern& pattern, double limit) {
  if (!cuts_lines_apart(software, group.library)) return limit;
  return limit * channels_of_pair(software, group, pattern).most;
}

}  // namespace fabricast::models::nccl

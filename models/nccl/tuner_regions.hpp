// SPDX-License-Identifier: Apache-2.0
// The tuner of aws-ofi-nccl, on by default from 1.16 on: for three and more hosts it gives algorithm and protocol by
// regions over bytes and ranks, found by measurement on P5, P5e and P5en; elsewhere NCCL's own tables choose.
//
// Source: aws/aws-ofi-nccl src/tuner/nccl_ofi_regions.cpp, its newest form; earlier ones since 1.16 may draw them
// otherwise. Not taken: P6, and collectives of one GPU per host that it gives to PAT.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

/// `type`: "p5" (P5 and P5e) or "p5en"; `bytes` as NCCL counts them; `is_allowed`: what NCCL could take at all, regions
/// of anything else are passed over. Nothing where no region holds the point, below three hosts and for other numbers
/// of ranks per host than the regions were made for.
std::optional<Choice> region_choice(std::string_view type, Collective collective, double bytes, int ranks, int hosts,
                                    const std::function<bool(const Choice&)>& is_allowed);

/// The tuner's choice, else that of NCCL's own tables; `type` empty: no tuner. What is forced stays so.
Choice choose_with_tuner(std::string_view type, const CommunicatorFacts& facts, Collective collective, Bytes size,
                         std::optional<Algorithm> algorithm, std::optional<Protocol> protocol);

}  // namespace fabricast::models::nccl

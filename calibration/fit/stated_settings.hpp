// SPDX-License-Identifier: Apache-2.0
// What a log itself says of how it was taken: its header, settings of its environment and its collector's lines.
#pragma once

#include <string>
#include <string_view>

#include "fabricast/nccl_variables.hpp"
#include "fit/suggest_log.hpp"

namespace fabricast::fit {

/// NCCL in the middle of the years whose nccl-tests print a column `error`, 2019 to 2022 (2.4 to 2.12).
inline constexpr const char* k_release_of_old_columns = "2.8";

/// A setting of the environment, empty when the log does not name it.
std::string setting(const MeasuredLog& log, const char* name);
/// A line of the log's collector, empty when there is none.
std::string provenance(const MeasuredLog& log, const char* key);
/// "2.8.4" behind `name` in a text ("CUDA 11, NCCL 2.8.4-1"); empty for ranges ("2.4-2.8").
std::string version_after(std::string_view text, std::string_view name);

/// "[device, host]": `workload.buffers`.
std::string buffers_text(BufferPlace send, BufferPlace receive);
/// The release that the log or its collector names.
std::string stated_nccl_version(const MeasuredLog& log);
/// Whether the release of NCCL that the log names does not read a variable yet.
bool is_too_new(const NcclVariable& variable, const SuggestedLog& log);
/// Forced settings that the environment names, of the release that `out` has.
void add_nccl_environment(const MeasuredLog& log, SuggestedLog& out);
void add_osu_settings(const MeasuredLog& log, SuggestedLog& out);
void add_perftest_settings(const MeasuredLog& log, SuggestedLog& out);

/// "the log is of 'NVIDIA H100 80GB HBM3', the topology has a100-sxm4-40"; empty where its GPUs and adapters may be
/// those.
std::string other_devices(const MeasuredLog& log, const Topology& topology);
/// "the log's packets carry 1024 B (Mtu), the topology's 4096 B: `mtu` of its fabric"; empty where they agree or
/// perftest does not say.
std::string other_packets(const MeasuredLog& log, const Topology& topology, const ParameterSet& parameters);

/// All of these of one table, and how its operations were started: not its file name, not its ranks.
SuggestedLog stated_settings(const MeasuredLog& table);

}  // namespace fabricast::fit

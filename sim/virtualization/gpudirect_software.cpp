// SPDX-License-Identifier: Apache-2.0
#include "fabricast/gpudirect_software.hpp"

#include <fmt/format.h>

#include "base/version.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast {

namespace {

/// Libraries write 1.7.4, hypervisors 6.7 U1.
std::string words(const ReleaseNumber& release) {
  const auto plain = fmt::format("{}.{}", release.major, release.minor);
  return release.update > 0 ? fmt::format("{}.{}", plain, release.update) : plain;
}

bool is_below(const std::string& version, const ReleaseNumber& floor) {
  return fabricast::is_older(version, floor.major, floor.minor, floor.update);
}

}  // namespace

std::string adapter_family(const std::string& type) {
  const auto dash = type.find('-');
  return dash == std::string::npos ? type : type.substr(0, type.find('-', dash + 1));
}

std::optional<OldSoftware> too_old_for_gpudirect(const ParameterSet& parameters, const GpudirectSoftware& software,
                                                 const std::string& adapter) {
  const auto old = [&](const char* key, const char* what, const std::string& version,
                       const std::string& cell) -> std::optional<OldSoftware> {
    const auto* floor = version.empty() ? nullptr : parameters.find("support." + cell);
    if (floor == nullptr || !is_below(version, release_of_code(floor->value))) return std::nullopt;
    return OldSoftware{key, what, version, words(release_of_code(floor->value))};
  };
  if (auto found = old("cuda", "CUDA", software.cuda, "gpudirect.cuda_first")) return found;
  if (auto found = old("mpi_version", "Open MPI", software.open_mpi, "gpudirect.open_mpi_first")) return found;
  return old("ofed", "MLNX_OFED", software.ofed, adapter_family(adapter) + ".ofed_first");
}

}  // namespace fabricast

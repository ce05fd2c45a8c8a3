// SPDX-License-Identifier: Apache-2.0
#include "fabricast/gpudirect_software.hpp"

#include <fmt/format.h>

#include <tuple>

#include "base/version.hpp"

namespace fabricast {

namespace {

using Release = std::tuple<int, int, int>;

/// 174 of Open MPI 1.7.4, 310 of MLNX_OFED 3.1.
Release release_of(double code) {
  const int number = static_cast<int>(code + 0.5);
  return {number / 100, number / 10 % 10, number % 10};
}

std::string words(const Release& release) {
  const auto [major, minor, patch] = release;
  return patch > 0 ? fmt::format("{}.{}.{}", major, minor, patch) : fmt::format("{}.{}", major, minor);
}

bool is_below(const std::string& version, const Release& floor) {
  const auto [major, minor, patch] = floor;
  return fabricast::is_older(version, major, minor, patch);
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
    if (floor == nullptr || !is_below(version, release_of(floor->value))) return std::nullopt;
    return OldSoftware{key, what, version, words(release_of(floor->value))};
  };
  if (auto found = old("cuda", "CUDA", software.cuda, "gpudirect.cuda_first")) return found;
  if (auto found = old("mpi_version", "Open MPI", software.open_mpi, "gpudirect.open_mpi_first")) return found;
  return old("ofed", "MLNX_OFED", software.ofed, adapter_family(adapter) + ".ofed_first");
}

}  // namespace fabricast

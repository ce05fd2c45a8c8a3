// SPDX-License-Identifier: Apache-2.0
// Software that GPUDirect RDMA needs: floors of CUDA, Open MPI and MLNX_OFED by adapter, from the compatibility matrix
// (models/params/compatibility.yaml). What plans messages and what checks settings ask here.
#pragma once

#include <optional>
#include <string>

#include "fabricast/parameters.hpp"

namespace fabricast {

/// Releases as people write them, major.minor[.patch]; empty = new enough.
struct GpudirectSoftware {
  std::string cuda, open_mpi, ofed;
};

struct OldSoftware {
  std::string key;      ///< of `software:`
  std::string what;     ///< MLNX_OFED
  std::string version;  ///< given
  std::string floor;    ///< needed
};

/// The first that is too old for GPUDirect RDMA over an adapter of this catalogue name.
std::optional<OldSoftware> too_old_for_gpudirect(const ParameterSet& parameters, const GpudirectSoftware& software,
                                                 const std::string& adapter);

/// Model of an adapter as the matrix calls it: connectx-6 of connectx-6-dx-100g.
std::string adapter_family(const std::string& type);

}  // namespace fabricast

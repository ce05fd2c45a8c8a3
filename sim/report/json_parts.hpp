// SPDX-License-Identifier: Apache-2.0
// Pieces of JSON documents that several of them share. For .cpp files of sim/report only.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/report.hpp"

namespace fabricast::report {

using Json = nlohmann::ordered_json;

nlohmann::ordered_json row_json(const Row& row);
nlohmann::ordered_json summary_json(const ValidationSummary& summary);
nlohmann::ordered_json provenance_json(const Provenance& provenance);

}  // namespace fabricast::report

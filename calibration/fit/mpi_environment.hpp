// SPDX-License-Identifier: Apache-2.0
// Variables of UCX, Open MPI and MVAPICH2 in the environment of a log or job script: which are keys, which change no
// time, what stands for others.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fit/suggest_log.hpp"

namespace fabricast::fit {

/// Takes what the environment of an OSU table says of its library, transports, limits and algorithm.
void add_mpi_environment(const MeasuredLog& log, SuggestedLog& out);

/// What is to be said of a variable of an MPI library that became no key: empty where it changes no time, nothing where
/// it is not known.
std::optional<std::string> mpi_variable_hint(std::string_view variable);

}  // namespace fabricast::fit

// SPDX-License-Identifier: Apache-2.0
// The protocol that the table of a collective names.
#pragma once

#include <string>

#include "mpi/transfer.hpp"

namespace fabricast::models::mpi {

/// That of the last messages between hosts, else of GPUs of a host, else of processes.
struct ShownProtocol {
  std::string name;
  int place = -1;

  void see(const Message& message, bool is_between_hosts) {
    const int found = is_between_hosts ? 2 : message.is_copied_inside() ? 0 : 1;
    if (found < place) return;
    name = message.protocol;
    place = found;
  }
};

}  // namespace fabricast::models::mpi

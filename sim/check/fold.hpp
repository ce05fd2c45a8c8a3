// SPDX-License-Identifier: Apache-2.0
// One message for devices that are alike: a server of the catalogue has eight adapters on one line of the file.
#pragma once

#include "fabricast/diagnostic.hpp"

namespace fabricast::check {

/// Messages of one place that differ in the number of a device alone ("hca0", "hca1") become the first of them, with
/// the other devices as a note.
Diagnostics folded(const Diagnostics& found);

}  // namespace fabricast::check

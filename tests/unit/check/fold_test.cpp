// SPDX-License-Identifier: Apache-2.0
// Messages for devices that are alike: said once, with the others named; what differs in more is said apart.
#include "check/fold.hpp"

#include <doctest/doctest.h>

using namespace fabricast;

namespace {

Diagnostic fault(const std::string& message, const std::string& hint = "take another", int line = 4) {
  return make_error_at({"t.yaml", line, 5}, message, hint);
}

}  // namespace

TEST_CASE("messages of one place that differ in a device's number are one, with the others named") {
  const auto folded =
      check::folded({fault("PVRDMA over hca0 (connectx-7-ndr)", "set hca0 to Ethernet"), fault("no switch"),
                     fault("PVRDMA over hca1 (connectx-7-ndr)", "set hca1 to Ethernet"),
                     fault("PVRDMA over hca12 (connectx-7-ndr)", "set hca12 to Ethernet")});
  REQUIRE(folded.size() == 2);
  CHECK(folded[0].message == "PVRDMA over hca0 (connectx-7-ndr)");
  CHECK(folded[0].notes.back().text == "the same of hca1, hca12");
  CHECK(folded[1].message == "no switch");
  CHECK(folded[1].notes.size() == 1);
}

TEST_CASE("messages of other places, severities, kinds of device or with other numbers stay apart") {
  const auto first = fault("'hca0' can do gen5 x16, its slot gives gen4 x8");
  auto warning = fault("'hca1' can do gen5 x16, its slot gives gen4 x8");
  warning.severity = Severity::warning;
  for (const auto& other : {fault("'hca1' can do gen5 x16, its slot gives gen4 x8", "take another", 5), warning,
                            fault("'gpu0' can do gen5 x16, its slot gives gen4 x8"),
                            fault("'hca1' can do gen5 x16, its slot gives gen3 x8"),
                            fault("'hca1' can do gen5 x16, its slot gives gen4 x8", "another fix"), first})
    CHECK(check::folded({first, other}).size() == 2);
  CHECK(check::folded({}).empty());
}

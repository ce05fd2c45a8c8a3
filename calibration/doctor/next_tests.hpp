// SPDX-License-Identifier: Apache-2.0
// Which test to run next: from cheap to dear, the first whose forecasts differ clearly.
#pragma once

#include "doctor/case.hpp"

namespace fabricast::doctor {

/// What tells two causes apart; null = a healthy cluster. The test is run where the causes are placed.
std::optional<NextTest> next_test(const Case& base, const Cause* a, const Cause* b);

/// Causes that change nothing that was measured, each with the first test that would show it.
std::vector<HiddenCause> hidden_causes(const Case& base, const std::vector<const Cause*>& causes);

}  // namespace fabricast::doctor

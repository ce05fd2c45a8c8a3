// SPDX-License-Identifier: Apache-2.0
// What the logs of a fit were of, and what the fit set, as parameters of the model (engine/fitted_kind.hpp): forecasts
// with the fitted values know by it how far they are like the logs.
#pragma once

#include "fit/fit.hpp"

namespace fabricast::fit {

/// Kinds, counts, sizes and shares of the fitted rows of `fit`.
ParameterSet record_of_logs(Dataset& data, const FitResult& fit);

/// What a parameter was before a fit set it to `value`, relative to that, with its interval.
Parameter record_of_value(const Parameter& before, double value);

}  // namespace fabricast::fit

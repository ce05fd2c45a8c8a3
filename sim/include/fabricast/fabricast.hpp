// SPDX-License-Identifier: Apache-2.0
// Everything a program needs to load scenarios, simulate them and compare with logs.
#pragma once

#include "fabricast/calibration.hpp"
#include "fabricast/diagnostic.hpp"
#include "fabricast/load.hpp"
#include "fabricast/measurement.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/result.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/setting_hints.hpp"
#include "fabricast/simulate.hpp"
#include "fabricast/topology.hpp"
#include "fabricast/training.hpp"
#include "fabricast/units.hpp"
#include "fabricast/validation.hpp"
#include "fabricast/virtualization.hpp"

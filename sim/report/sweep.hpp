// SPDX-License-Identifier: Apache-2.0
// Sweeps as text, JSON, CSV, lines of JSON and a page.
#pragma once

#include <string>
#include <vector>

#include "fabricast/sweep.hpp"

namespace fabricast::report {

std::string sweep_text(const SweepReport& sweep);
/// One document, schema fabricast/sweep/1.
std::string sweep_json(const SweepReport& sweep);
/// One line per design.
std::string sweep_csv(const SweepReport& sweep);
/// One line per design, as stores keep it.
std::string sweep_lines(const SweepReport& sweep);
/// One file without network access.
std::string sweep_html(const SweepReport& sweep);

/// The plan's distinct figures in the order of columns.
std::vector<Metric> columns_of(const SweepReport& sweep);
/// "at least 20000 images_per_second"
std::string constraint_text(const Constraint& constraint, const std::string& currency);
/// Designs that are not feasible, by the kind of their first reason: its words without numbers. Most first.
struct Refusal {
  DesignStatus status = DesignStatus::infeasible;
  std::string example;    ///< the first design's reason
  std::size_t first = 0;  ///< its number
  std::size_t count = 0;
};
std::vector<Refusal> refusals_of(const SweepReport& sweep);
/// "N GPUs need N B" of "64 GPUs need 1.5e9 B": what reasons of one kind have in common.
std::string without_numbers(const std::string& reason);

/// Every input of every design once, by path.
std::vector<std::pair<std::string, std::string>> inputs_of(const SweepReport& sweep);
std::string currency_of(const SweepReport& sweep);
/// How many designs have each status or miss a constraint, in words.
std::string outcome_text(const SweepReport& sweep);

}  // namespace fabricast::report

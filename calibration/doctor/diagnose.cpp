// SPDX-License-Identifier: Apache-2.0
// Which cause explains the logs: every cause is simulated, all logs together decide (scoring.hpp). Where healthy runs
// are given, a row's time under a cause is the healthy time x forecast under the cause / healthy forecast: the
// forecast's own error drops out, and what is left is the scatter of two runs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "doctor/baselines.hpp"
#include "doctor/loss.hpp"
#include "doctor/next_tests.hpp"
#include "doctor/patients.hpp"
#include "doctor/scoring.hpp"
#include "doctor/virtual_costs.hpp"

namespace fabricast {

namespace doctor {

namespace {

constexpr double k_words = 4;           ///< of the score, for a log that names the cause
constexpr double k_same = 0.004;        ///< |ln| of two forecasts that cannot be told apart
constexpr double k_least_gain = 8;      ///< of the score: one in thousands by chance
constexpr double k_much_left = 0.8;     ///< of the mean |ln| may be left under a cause that leaves little
constexpr double k_left = 0.6;          ///< of it may be left under the cause
constexpr double k_tight = 0.05;        ///< what is left when the cause is the whole story
constexpr double k_least_share = 0.04;  ///< of rows that must be slower
/// A log whose median row takes this much longer (ln) is slow, whatever else: of systems that a fit has not seen one
/// point in ten is off by more than 40 % of its time, one in twenty to this side [docs/VALIDATION.md, one system left
/// out].
constexpr double k_far = 0.51;
constexpr std::size_t k_most_findings = 5;

/// Median measured time per size, in the order of the patient's sizes.
std::vector<double> measured_of(const Patient& patient) {
  std::map<Bytes, std::vector<double>> by_size;
  for (const auto& row : patient.log.rows) by_size[row.size].push_back(row.time.seconds());
  std::vector<double> out;
  for (const auto size : patient.sizes) { out.push_back(upper_median(std::move(by_size[size]))); }
  return out;
}

/// One cause (or none) over all patients.
struct Hypothesis {
  const Cause* cause = nullptr;  ///< null: healthy
  std::vector<std::vector<Duration>> times;
  double score = 0;
  double error = 0;                         ///< mean |ln|
  std::array<Errors, k_bases.size()> of{};  ///< by basis
  std::vector<std::string> words;
};

class Doctor {
 public:
  Doctor(std::vector<Patient> patients, const DoctorOptions& options)
      : patients_(std::move(patients)), options_(options) {
    for (const auto& patient : patients_) measured_.push_back(measured_of(patient));
  }

  Diagnosis diagnose() {
    for (const auto& patient : patients_) healthy_.times.push_back(times_of(patient, patient.base));
    judge(healthy_);
    const bool tells_hosts =
        patients_.size() > 1 && std::any_of(patients_.begin(), patients_.end(), [](const Patient& p) {
          return !p.base.scenario.workloads.front().devices.empty();
        });
    causes_ = causes_for(patients_.front().base, tells_hosts);
    std::vector<const Cause*> unseen;
    for (const auto& cause : causes_) {
      if (options_.stop != nullptr && options_.stop->load()) break;
      bool applies = false;
      if (auto one = test(cause, applies))
        found_.push_back(std::move(*one));
      else if (applies)
        unseen.push_back(&cause);
    }
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    out_.num_causes = static_cast<int>(found_.size());
    out_.error_healthy = healthy_.error;
    summarize_healthy();
    list_covered();
    out_.virtualization = virtual_cost(patients_, measured_);
    out_.is_explained = is_sick();
    out_.is_below_baseline = is_below_baseline();
    if (out_.is_explained || out_.is_below_baseline || is_far()) write_findings();
    out_.is_explained = out_.is_explained || out_.is_healthy;
    out_.hidden = hidden_causes(patients_.front().base, unseen);
    return std::move(out_);
  }

 private:
  /// Of a case of the patient: its forecast, by as much off as the healthy one is from healthy runs; empty when there
  /// is no forecast.
  static std::vector<Duration> times_of(const Patient& patient, const Case& one) {
    auto times = forecast(one, patient.sizes);
    for (std::size_t i = 0; i < times.size() && i < patient.expected.size(); ++i)
      times[i] = from_seconds(times[i].seconds() * patient.expected[i].over_forecast);
    return times;
  }

  [[nodiscard]] bool has_baseline(std::size_t p, std::size_t i) const {
    return i < patients_[p].expected.size() && !patients_[p].expected[i].baseline.empty();
  }
  [[nodiscard]] Basis basis_of(std::size_t p, std::size_t i) const {
    if (!has_baseline(p, i)) return Basis::forecast;
    return patients_[p].sizes[i] >= k_large ? Basis::large_run : Basis::small_run;
  }

  /// ln(measured / forecast) of one log's rows.
  [[nodiscard]] Residuals residuals(const Hypothesis& one, std::size_t p) const {
    Residuals out;
    for (std::size_t i = 0; i < one.times[p].size(); ++i) {
      if (measured_[p][i] > 0 && one.times[p][i].ps > 0)
        out[at(basis_of(p, i))].push_back(std::log(measured_[p][i] / one.times[p][i].seconds()));
    }
    return out;
  }

  void judge(Hypothesis& one) const {
    for (std::size_t p = 0; p < patients_.size(); ++p) {
      const auto r = residuals(one, p);
      one.score += score_of(r);
      for (const auto basis : k_bases) add(r[at(basis)], basis, one.of[at(basis)]);
    }
    Errors all;
    for (const auto& errors : one.of) {
      all.sum += errors.sum;
      all.n += errors.n;
    }
    one.error = all.mean();
  }

  /// Nothing when the cause changes no row of the logs; `applies`: it exists on the cluster.
  std::optional<Hypothesis> test(const Cause& cause, bool& applies) const {
    Hypothesis one;
    one.cause = &cause;
    bool is_other = false;
    for (std::size_t p = 0; p < patients_.size(); ++p) {
      auto changed = patients_[p].base;
      const bool applies_here = cause.apply(changed);
      applies = applies || applies_here;
      auto times = applies_here ? times_of(patients_[p], changed) : healthy_.times[p];
      if (times.empty()) times = healthy_.times[p];  // refused there: sendrecv knows no tree
      is_other = is_other || distance(times, healthy_.times[p]) > k_same;
      one.times.push_back(std::move(times));
      for (const auto& words : patients_[p].words) {
        const auto tab = words.find('\t');
        if (words.substr(0, tab) == cause.id) one.words.push_back(patients_[p].log.file + ": " + words.substr(tab + 1));
      }
    }
    if (!is_other) return std::nullopt;
    judge(one);
    one.score += std::log(cause.prior) + (one.words.empty() ? 0 : k_words);
    return one;
  }

  /// Largest |ln| between two forecasts.
  static double distance(const std::vector<Duration>& a, const std::vector<Duration>& b) {
    if (a.size() != b.size()) return 9;
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      most = std::max(most, std::abs(std::log(a[i].seconds() / b[i].seconds())));
    return most;
  }
  double distance(const Hypothesis& a, const Hypothesis& b) const {
    double most = 0;
    for (std::size_t p = 0; p < patients_.size(); ++p) most = std::max(most, distance(a.times[p], b.times[p]));
    return most;
  }

  void summarize_healthy() {
    std::vector<double> all;
    for (std::size_t p = 0; p < patients_.size(); ++p) {
      for (const auto& r : residuals(healthy_, p)) all.insert(all.end(), r.begin(), r.end());
    }
    out_.num_rows = static_cast<int>(all.size());
    if (!all.empty()) out_.slower = std::exp(upper_median(all)) - 1;
  }

  /// Which rows healthy runs serve.
  void list_covered() {
    if (std::all_of(patients_.begin(), patients_.end(), [](const Patient& one) { return one.expected.empty(); }))
      return;
    for (std::size_t p = 0; p < patients_.size(); ++p) {
      CoveredTable table{patients_[p].log.file, patients_[p].log.line, 0, {}};
      for (std::size_t i = 0; i < measured_[p].size(); ++i) {
        if (measured_[p][i] <= 0) continue;
        ++table.num_rows;
        if (!has_baseline(p, i)) table.by_forecast.push_back(patients_[p].sizes[i]);
      }
      out_.num_rows_with_baseline += table.num_rows - static_cast<int>(table.by_forecast.size());
      out_.covered.push_back(std::move(table));
    }
  }

  /// A cause explains what is slower to the last per cent, by far more than chance; or something is slower by more than
  /// healthy rows scatter, and the cause explains most of it.
  [[nodiscard]] bool is_sick() const {
    if (found_.empty()) return false;
    const auto& best = found_.front();
    const double gain = best.score - healthy_.score;
    return gain >= k_least_gain &&
           std::any_of(k_bases.begin(), k_bases.end(), [&](Basis basis) { return explains(best, basis); });
  }
  [[nodiscard]] bool explains(const Hypothesis& best, Basis basis) const {
    const auto& before = healthy_.of[at(basis)];
    const auto& left = best.of[at(basis)];
    const double after = left.mean();
    if (before.n == 0 || before.slow_share() < k_least_share) return false;
    const bool is_whole_story = left.shape() <= k_tight && left.shape() <= k_much_left * before.shape();
    const bool is_most_of_much = before.mean() >= scatter_of(basis).much && after <= k_left * before.mean();
    return is_whole_story || is_most_of_much || (!best.words.empty() && after <= k_left * before.mean());
  }

  /// The rows of some log that healthy runs serve are slower than those, as `expect --check` reads it; or the small
  /// ones, by more than two healthy runs ever are.
  [[nodiscard]] bool is_below_baseline() const {
    for (std::size_t p = 0; p < patients_.size(); ++p) {
      std::vector<LossRow> rows;
      for (std::size_t i = 0; i < measured_[p].size(); ++i) {
        if (measured_[p][i] <= 0 || !has_baseline(p, i)) continue;
        const double ratio = measured_[p][i] / healthy_.times[p][i].seconds();
        rows.push_back({patients_[p].sizes[i] >= k_large, ratio, ratio > 1 / (1 - k_baseline_margin)});
      }
      const auto small = residuals(healthy_, p)[at(Basis::small_run)];
      if (loss_of(rows).is_missed() || upper_median(small) > scatter_of(Basis::small_run).much) return true;
    }
    return false;
  }

  /// The median row, or that of the large ones, of some log is slower than forecasts of healthy systems are off.
  [[nodiscard]] bool is_far() const {
    for (std::size_t p = 0; p < patients_.size(); ++p) {
      std::vector<double> all, large;
      for (std::size_t i = 0; i < measured_[p].size(); ++i) {
        if (measured_[p][i] <= 0 || healthy_.times[p][i].ps <= 0) continue;
        all.push_back(std::log(measured_[p][i] / healthy_.times[p][i].seconds()));
        if (patients_[p].sizes[i] >= k_large) large.push_back(all.back());
      }
      if (!all.empty() && upper_median(all) > k_far) return true;
      if (!large.empty() && upper_median(large) > k_far) return true;
    }
    return false;
  }

  void write_findings() {
    out_.is_healthy = false;
    std::vector<const Hypothesis*> shown;
    for (const auto& one : found_) {
      if (one.score <= healthy_.score) break;
      const auto same = std::find_if(shown.begin(), shown.end(),
                                     [&](const Hypothesis* other) { return distance(*other, one) <= k_same; });
      if (same != shown.end()) {
        auto& finding = out_.findings[static_cast<std::size_t>(same - shown.begin())];
        finding.alike.push_back(one.cause->title + " (" + one.cause->place + ")");
        finding.alike_causes.push_back(one.cause->id);
        continue;
      }
      if (shown.size() == k_most_findings) continue;
      shown.push_back(&one);
      out_.findings.push_back(finding_of(one));
    }
    double sum = 0;
    for (const auto* one : shown) sum += std::exp(std::min(0.0, one->score - found_.front().score));
    for (std::size_t i = 0; i < shown.size(); ++i)
      out_.findings[i].weight = std::exp(std::min(0.0, shown[i]->score - found_.front().score)) / sum;
    if (shown.size() > 1) out_.next = next_test(patients_.front().base, shown[0]->cause, shown[1]->cause);
  }

  [[nodiscard]] Finding finding_of(const Hypothesis& one) const {
    Finding out;
    out.cause = one.cause->id;
    out.title = one.cause->title;
    out.place = one.cause->place;
    out.fix = one.cause->fix;
    out.words = one.words;
    out.error_before = healthy_.error;
    out.error_after = one.error;
    struct Gain {
      double gain;
      EvidenceRow row;
    };
    std::vector<Gain> gains;
    for (std::size_t p = 0; p < patients_.size(); ++p) {
      for (std::size_t i = 0; i < measured_[p].size(); ++i) {
        if (measured_[p][i] <= 0) continue;
        const double before = std::abs(std::log(measured_[p][i] / healthy_.times[p][i].seconds()));
        const double after = std::abs(std::log(measured_[p][i] / one.times[p][i].seconds()));
        int line = 0;
        for (const auto& row : patients_[p].log.rows) {
          if (row.size == patients_[p].sizes[i] && line == 0) line = row.line;
        }
        gains.push_back(
            {before - after,
             {patients_[p].log.file, line, patients_[p].sizes[i], from_seconds(measured_[p][i]), healthy_.times[p][i],
              one.times[p][i], has_baseline(p, i) ? patients_[p].expected[i].baseline : ""}});
      }
    }
    std::stable_sort(gains.begin(), gains.end(), [](const Gain& a, const Gain& b) { return a.gain > b.gain; });
    for (std::size_t i = 0; i < gains.size() && i < 3 && gains[i].gain > 0; ++i) out.evidence.push_back(gains[i].row);
    return out;
  }

  std::vector<Patient> patients_;
  const DoctorOptions& options_;
  std::vector<std::vector<double>> measured_;
  Hypothesis healthy_;
  std::vector<Cause> causes_;
  std::vector<Hypothesis> found_;
  Diagnosis out_;
};

}  // namespace

}  // namespace doctor

Result<Diagnosis> diagnose(const std::string& cluster, const std::vector<std::string>& logs,
                           const DoctorOptions& options) {
  Diagnostics warnings;
  std::vector<InputFile> inputs;
  auto patients = doctor::patients_of(cluster, logs, options, warnings, inputs);
  if (!patients) return tl::unexpected(patients.error());
  auto& sick = patients->sick;
  std::erase_if(sick, [&](const doctor::Patient& one) {
    const bool is_hopeless = doctor::forecast(one.base, one.sizes).empty();
    if (is_hopeless)
      warnings.push_back(
          {Severity::warning, {one.log.file, one.log.line, 0}, "this table cannot be forecast on the cluster", "", {}});
    return is_hopeless;
  });
  if (sick.empty()) {
    warnings.push_back(make_error("no log holds a table that the cluster can be forecast for"));
    return tl::unexpected(std::move(warnings));
  }
  auto baselines = options.baselines;
  baselines.insert(baselines.end(), options.bare_metal_baselines.begin(), options.bare_metal_baselines.end());
  if (!baselines.empty()) {
    auto faults = doctor::cover(sick, patients->healthy, baselines);
    if (!faults.empty()) return tl::unexpected(std::move(faults));
  }
  auto diagnosis = doctor::Doctor(std::move(sick), options).diagnose();
  diagnosis.warnings = std::move(warnings);
  diagnosis.inputs = std::move(inputs);
  return diagnosis;
}

}  // namespace fabricast
